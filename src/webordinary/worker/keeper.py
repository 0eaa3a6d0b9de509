"""The lease keeper: renews from a thread that no job can block, and ends jobs whose right to run is gone."""

from __future__ import annotations

import logging
import threading

from webordinary.model.claims import Claim
from webordinary.model.errors import ClaimLost
from webordinary.model.names import ProjectUser
from webordinary.model.text import clean
from webordinary.worker.holdings import Holdings
from webordinary.worker.ports import Bell
from webordinary.worker.surroundings import Surroundings

_log = logging.getLogger(__name__)


class LeaseKeeper:
    """Knows until when this worker may trust its claims, on its own monotonic clock."""

    def __init__(self, around: Surroundings, holdings: Holdings) -> None:
        self._around, self._holdings = around, holdings
        self._trust_seconds = around.settings.lease - around.settings.lease_margin
        self._until: dict[tuple[ProjectUser, int], float] = {}
        self._guard = threading.Lock()

    def keep(self, stopped: Bell) -> None:
        """Renew until told that nothing is held any more."""
        while not stopped.wait(self._around.settings.renew):
            self.renew_once()

    def trust(self, key: ProjectUser, fence: int, confirmed_at: float) -> None:
        """A claim was confirmed by a call that began at `confirmed_at`."""
        with self._guard:
            self._until[key, fence] = confirmed_at + self._trust_seconds

    def trusted_until(self, key: ProjectUser, fence: int) -> float:
        """After this moment nobody may act under that claim without asking."""
        with self._guard:
            return self._until.get((key, fence), 0.0)

    def renew_once(self) -> None:
        """Renew everything held; end the jobs of what is lost."""
        claims = self._holdings.claims()
        still_mine = self._renew(claims)
        now = self._around.clock.monotonic()
        for claim in claims:
            if claim.key not in still_mine or now > self.trusted_until(claim.key, claim.fence):
                self._lose(claim)
        self._forget({(claim.key, claim.fence) for claim in claims}, now)

    def _renew(self, claims: list[Claim]) -> set[ProjectUser]:
        if not claims:
            return set()
        began = self._around.clock.monotonic()
        try:
            still_mine = self._around.pool.claims.renew(claims, self._around.clock.now())
        except Exception as problem:
            _log.warning("worker %s: renews nothing: %s: %s", self._around.worker_id, type(problem).__name__, problem)
            self._around.tell("ClaimRenewalFailed", error=clean(str(problem))[:500])
            return {claim.key for claim in claims}  # unknown: the trust simply runs out
        for claim in claims:
            if claim.key in still_mine:
                self.trust(claim.key, claim.fence, began)
        return still_mine

    def _lose(self, claim: Claim) -> None:
        holding = self._holdings.get(claim.key)
        if holding is None or holding.claim.fence != claim.fence:
            return  # it was released or yielded meanwhile
        if holding.hold:
            holding.hold.end(ClaimLost(claim.key, claim.worker, claim.fence))
        else:
            self._holdings.drop(claim)
        self._around.tell("ClaimRenewalFailed", key=claim.key, fence=claim.fence)

    def _forget(self, current: set[tuple[ProjectUser, int]], now: float) -> None:
        with self._guard:
            self._until = {known: until for known, until in self._until.items() if known in current or until > now}
