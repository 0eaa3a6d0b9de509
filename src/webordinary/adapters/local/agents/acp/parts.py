"""The plain values of one run over the protocol."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from webordinary.adapters.local.agents.telling import Narrator
from webordinary.site.task import AgentLimits


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an agent may touch, and who is told about it."""

    workspace: Path
    attachments: Path
    jailed: bool
    narrator: Narrator
    limits: AgentLimits


@dataclass(frozen=True, slots=True)
class AcpEnding:
    """How a run ended; `reason` is the protocol's stop reason, `capped` which of our caps was reached, in words."""

    reason: str
    last_message: str
    session: str
    total_cost_usd: float
    cost_usd: float
    capped: str

    @property
    def stopped(self) -> bool:
        """Whether it was interrupted."""
        return self.reason == "cancelled" and not self.capped
