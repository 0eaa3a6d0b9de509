"""Foreign leases: whether another worker's claim is over is seen, not read from a clock of its own."""

from __future__ import annotations

from dataclasses import dataclass

from webordinary.model.claims import Claim
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import Liveness
from webordinary.worker.ports import Clock


@dataclass(slots=True)
class _Sight:
    claim: Claim
    since: float


class LeaseWatch:
    """Remembers, of the claims it was shown, since when their beat stands still."""

    def __init__(self, clock: Clock, liveness: Liveness, lease_seconds: float) -> None:
        self._clock, self._liveness, self._lease = clock, liveness, lease_seconds
        self._seen: dict[ProjectUser, _Sight] = {}
        self._shown: set[ProjectUser] = set()

    def see(self, claim: Claim) -> bool:
        """Look at a claim that is not held here; True if it has ended."""
        self._shown.add(claim.key)
        sight = self._seen.get(claim.key)
        if sight is None or not _same(sight.claim, claim):
            self._seen[claim.key] = sight = _Sight(claim, self._clock.monotonic())
        return self._liveness.is_dead(claim.worker) or self._clock.monotonic() - sight.since >= self._lease

    def forget(self, key: ProjectUser) -> None:
        """The key is free, ours, or without work."""
        self._seen.pop(key, None)

    def forget_unseen(self) -> None:
        """Forget the claims that nobody showed since this was last called."""
        self._seen = {key: sight for key, sight in self._seen.items() if key in self._shown}
        self._shown.clear()

    def over_at(self, key: ProjectUser) -> float | None:
        """When, on the monotonic clock, this claim would be over if its beat stands still."""
        sight = self._seen.get(key)
        return sight.since + self._lease if sight else None


def _same(one: Claim, other: Claim) -> bool:
    return (one.worker, one.fence, one.beat) == (other.worker, other.fence, other.beat)
