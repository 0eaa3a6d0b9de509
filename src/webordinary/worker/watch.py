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
    """Remembers the keys whose owner stands in the way, and since when its beat stands still."""

    def __init__(self, clock: Clock, liveness: Liveness, lease_seconds: float) -> None:
        self._clock, self._liveness, self._lease = clock, liveness, lease_seconds
        self._seen: dict[ProjectUser, _Sight] = {}

    def see(self, claim: Claim) -> bool:
        """Look at a foreign claim; True if it has ended."""
        sight = self._seen.get(claim.key)
        if sight is None or not _same(sight.claim, claim):
            self._seen[claim.key] = sight = _Sight(claim, self._clock.monotonic())
        return self._liveness.is_dead(claim.worker) or self._clock.monotonic() - sight.since >= self._lease

    def forget(self, key: ProjectUser) -> None:
        """The key is free, ours, or without work."""
        self._seen.pop(key, None)

    @property
    def keys(self) -> list[ProjectUser]:
        """What is watched."""
        return list(self._seen)

    def next_look(self) -> float | None:
        """When, on the monotonic clock, the first of them would be over if its beat stands still."""
        return min((sight.since + self._lease for sight in self._seen.values()), default=None)


def _same(one: Claim, other: Claim) -> bool:
    return (one.worker, one.fence, one.beat) == (other.worker, other.fence, other.beat)
