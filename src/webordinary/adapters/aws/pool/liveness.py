"""Workers on other machines: nothing of their processes can be seen, so their leases decide."""

from __future__ import annotations

from collections.abc import Collection


class RemoteLiveness:
    """Whether another worker is gone is told by its beat alone."""

    def is_dead(self, worker: str) -> bool:
        """Nobody can be certain."""
        return False

    def end_survivors(self, worker: str, jobs: Collection[str] | None = None) -> None:
        """Its programs end with its container; until then its fence keeps them from any effect."""
