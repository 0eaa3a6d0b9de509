"""Finding work for a free slot: hints, races, foreign leases, takeovers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from webordinary.model.claims import WARM_PREFERENCE_SECONDS, Claim, ClaimRequest, ClaimStatus, Started
from webordinary.model.names import ProjectUser
from webordinary.worker.surroundings import Surroundings
from webordinary.worker.watch import LeaseWatch

_HINTS_AT_ONCE = 16


class Claiming:
    """Claims waiting keys and hands each, with its first job begun, to `on_started`."""

    def __init__(
        self,
        around: Surroundings,
        has_free_slot: Callable[[], bool],
        on_started: Callable[[Started, float], None],
        on_own: Callable[[Claim], bool],
    ) -> None:
        self._around = around
        self._has_free_slot, self._on_started, self._on_own = has_free_slot, on_started, on_own
        self._watch = LeaseWatch(around.clock, around.pool.liveness, around.settings.lease)
        self._in_the_way: set[ProjectUser] = set()
        self._offered_at: dict[ProjectUser, float] = {}

    def serve_waiting_keys(self) -> None:
        """Claim what waits while there is a slot for it."""
        for key in sorted(self._in_the_way):
            if self._has_free_slot():
                self._look_again(key)
        while self._has_free_slot():
            offers = self._offers()
            if not any(self._claim(offer.key, None) for offer in offers) and not (offers and self._take_any()):
                return

    def next_look(self) -> float | None:
        """When, on the monotonic clock, a key that was left alone is worth another look."""
        warm = [at + WARM_PREFERENCE_SECONDS for at in self._offered_at.values()]
        watched = [at for key in self._in_the_way if (at := self._watch.over_at(key)) is not None]
        return min([*warm, *watched], default=None)

    def is_over(self, claim: Claim) -> bool:
        """For the reconciler: has this claim ended, as far as this worker has seen?"""
        mine = claim.worker == self._around.worker_id and self._on_own(claim)
        return not mine and self._watch.see(claim)

    def end_round(self) -> None:
        """The reconciler has shown every claim that has work."""
        self._watch.forget_unseen()

    def _offers(self) -> Sequence[ClaimRequest]:
        offers = self._around.pool.hints.receive(self._around.clock.now(), self._in_the_way, _HINTS_AT_ONCE)
        offered = {offer.key for offer in offers}
        self._offered_at = {key: at for key, at in self._offered_at.items() if key in offered}
        return [offer for offer in offers if not self._left_to_another(offer)]

    def _left_to_another(self, offer: ClaimRequest) -> bool:
        """For a moment a key is left to the worker that still has its checkout, if that has a free slot."""
        other = offer.preferred
        if other is None or other == self._around.worker_id:
            return False
        now = self._around.clock.monotonic()
        since = self._offered_at.setdefault(offer.key, now)
        may_come = now - since < WARM_PREFERENCE_SECONDS and not self._around.pool.liveness.is_dead(other)
        if may_come and self._around.pool.claims.busy(other) < self._around.settings.slots:
            return True
        del self._offered_at[offer.key]
        return False

    def _take_any(self) -> bool:
        """Others were faster with all that was offered."""
        around = self._around
        began = around.clock.monotonic()
        taken = around.pool.claims.take_longest_waiting(around.worker_id, around.clock.now())
        if taken is None:
            return False
        self._begin(taken, began)
        return True

    def _begin(self, taken: Started, began: float, over: Claim | None = None) -> None:
        self._forget(taken.claim.key)
        tell = partial(self._around.tell, job=taken.job, fence=taken.claim.fence)
        waited_ms = self._around.ms_since_queued(taken.job)
        if over:
            tell("ClaimTakenOver", previous=over.worker, waited_ms=waited_ms)
        else:
            tell("ClaimTaken", waited_ms=waited_ms)
        self._on_started(taken, began)

    def _claim(self, key: ProjectUser, over: Claim | None) -> bool:
        around = self._around
        left = [job.job_id for job in around.pool.jobs.open_jobs(key)] if over else []
        began = around.clock.monotonic()
        taken = around.pool.claims.claim_and_start(key, around.worker_id, around.clock.now(), over)
        if isinstance(taken, Started):
            if over:
                # Who hangs cannot end its own agents. Not earlier: it might have woken and kept the key.
                around.pool.liveness.end_survivors(over.worker, left)
            self._begin(taken, began, over)
            return True
        if isinstance(taken, Claim):
            return self._meet(taken)
        self._forget(key)
        return False

    def _meet(self, claim: Claim) -> bool:
        """Somebody holds the key: it is me, or I watch whether that is over."""
        if claim.worker == self._around.worker_id and self._on_own(claim):
            self._around.pool.hints.acknowledge(claim.key)
            self._forget(claim.key)
            return False
        # A claim of mine that I do not hold is one whose confirmation was lost: it ends as a foreign one does.
        self._around.tell("ClaimRaceLost", key=claim.key, to=claim.worker)
        self._in_the_way.add(claim.key)
        return self._watch.see(claim) and self._take_over(claim)

    def _look_again(self, key: ProjectUser) -> None:
        claim = self._around.pool.claims.look(key)
        if claim is None or claim.status is not ClaimStatus.HELD or not self._around.pool.jobs.open_jobs(key, limit=1):
            self._forget(key)
            self._claim(key, None)
        else:
            self._meet_again(claim)

    def _meet_again(self, claim: Claim) -> None:
        if claim.worker == self._around.worker_id and self._on_own(claim):
            self._forget(claim.key)
        elif self._watch.see(claim):
            self._take_over(claim)

    def _forget(self, key: ProjectUser) -> None:
        self._in_the_way.discard(key)
        self._watch.forget(key)

    def _take_over(self, claim: Claim) -> bool:
        if self._around.pool.liveness.is_dead(claim.worker):
            self._around.pool.liveness.end_survivors(claim.worker)
        return self._claim(claim.key, claim)
