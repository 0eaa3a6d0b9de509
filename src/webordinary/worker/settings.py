"""A worker's times and sizes."""

from __future__ import annotations

from dataclasses import dataclass

from webordinary.model import claims


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds unless named otherwise. The lease margin covers a renewal that is under way."""

    slots: int = 4
    lease: float = claims.LEASE_SECONDS
    renew: float = claims.RENEW_SECONDS
    idle_release: float = claims.IDLE_RELEASE_SECONDS
    job_limit: float = claims.JOB_LIMIT_SECONDS
    stop_grace: float = 100.0
    reconcile: float = 20.0
    heartbeat: float = 60.0
    retry_base: float = 10.0

    @property
    def lease_margin(self) -> float:
        """How long before the lease's end a worker stops trusting it."""
        return min(5.0, self.lease / 6)
