"""Claiming keys for free slots: claim requests, races, observed leases of other workers, takeovers, release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from webordinary.model.claims import WARM_PREFERENCE_SECONDS, Claim, ClaimRequest, ClaimStatus, StartedJob
from webordinary.model.events import EventKind
from webordinary.model.jobs import Job
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import Liveness, Pool
from webordinary.pool.transitions import next_job
from webordinary.worker.ports import Clock, WorkerDeps


@dataclass(slots=True)
class _Observation:
    claim: Claim
    since: float


class LeaseObserver:
    """Observes the claims of other workers: since when the beat of each has not changed."""

    def __init__(self, clock: Clock, liveness: Liveness, lease_seconds: float) -> None:
        self._clock, self._liveness, self._lease = clock, liveness, lease_seconds
        self._seen: dict[ProjectUser, _Observation] = {}
        self._shown: set[ProjectUser] = set()

    def see(self, claim: Claim) -> bool:
        """Observe a claim of another worker; True if it has ended."""
        self._shown.add(claim.key)
        sight = self._seen.get(claim.key)
        if sight is None or not _same(sight.claim, claim):
            self._seen[claim.key] = sight = _Observation(claim, self._clock.monotonic())
        if self._liveness.is_dead(claim.worker):
            sight.since = min(sight.since, self._clock.monotonic() - self._lease)
        return self._clock.monotonic() - sight.since >= self._lease

    def forget(self, key: ProjectUser) -> None:
        """Forget a key that is free, ours, or without work."""
        self._seen.pop(key, None)

    def forget_unseen(self) -> None:
        """Forget claims that were not observed since the last call."""
        self._seen = {key: sight for key, sight in self._seen.items() if key in self._shown}
        self._shown.clear()

    def over_at(self, key: ProjectUser) -> float | None:
        """When, on the monotonic clock, this claim ends if its beat does not change."""
        sight = self._seen.get(key)
        return sight.since + self._lease if sight else None


def _same(one: Claim, other: Claim) -> bool:
    return (one.worker, one.fence, one.beat) == (other.worker, other.fence, other.beat)


_HINTS_AT_ONCE = 16


class Claiming:
    """Claims waiting keys and passes each, with its first job started, to `on_started`."""

    def __init__(
        self,
        deps: WorkerDeps,
        has_free_slot: Callable[[], bool],
        on_started: Callable[[StartedJob, float], None],
        on_own: Callable[[Claim], bool],
    ) -> None:
        self._deps = deps
        self._has_free_slot, self._on_started, self._on_own = has_free_slot, on_started, on_own
        self._watch = LeaseObserver(deps.clock, deps.pool.liveness, deps.settings.lease)
        self._foreign: set[ProjectUser] = set()
        self._offered_at: dict[ProjectUser, float] = {}

    def serve_waiting_keys(self) -> None:
        """Claim waiting keys while there is a free slot."""
        for key in sorted(self._foreign):
            if self._has_free_slot():
                self._recheck(key)
        while self._has_free_slot():
            offers = self._offers()
            if not any(self._claim(offer.key, None) for offer in offers) and not (offers and self._take_any()):
                return

    def next_check_at(self) -> float | None:
        """When, on the monotonic clock, a key of another worker should be checked again."""
        warm = [at + WARM_PREFERENCE_SECONDS for at in self._offered_at.values()]
        watched = [at for key in self._foreign if (at := self._watch.over_at(key)) is not None]
        return min([*warm, *watched], default=None)

    def is_over(self, claim: Claim) -> bool:
        """For the reconciler: whether this claim has ended, as far as this worker observed."""
        mine = claim.worker == self._deps.worker_id and self._on_own(claim)
        over = not mine and self._watch.see(claim)
        if over:
            self._foreign.add(claim.key)
        return over

    def wants_slot(self) -> bool:
        """Whether a waiting key's claim has ended, as far as this worker observed. The slot then returns to the loop.

        A slot takes only keys that are free in the store; only the worker's loop takes over a claim.
        """
        now = self._deps.clock.monotonic()
        ends = [self._watch.over_at(key) for key in list(self._foreign)]
        return any(at is not None and at <= now for at in ends)

    def end_round(self) -> None:
        """The reconciler has passed every claim with work to `is_over`."""
        self._watch.forget_unseen()

    def _offers(self) -> Sequence[ClaimRequest]:
        offers = self._deps.pool.hints.receive(self._deps.clock.now(), self._foreign, _HINTS_AT_ONCE)
        offered = {offer.key for offer in offers}
        self._offered_at = {key: at for key, at in self._offered_at.items() if key in offered}
        return [offer for offer in offers if not self._reserved_for_other(offer)]

    def _reserved_for_other(self, offer: ClaimRequest) -> bool:
        """Reserve a key briefly for the worker that has its checkout, if that worker has a free slot."""
        other = offer.preferred
        if other is None or other == self._deps.worker_id:
            return False
        now = self._deps.clock.monotonic()
        since = self._offered_at.setdefault(offer.key, now)
        may_come = now - since < WARM_PREFERENCE_SECONDS and not self._deps.pool.liveness.is_dead(other)
        if may_come and self._deps.pool.claims.busy(other) < self._deps.settings.slots:
            return True
        del self._offered_at[offer.key]
        return False

    def _take_any(self) -> bool:
        """Claim the longest waiting key; used when other workers won all the races."""
        deps = self._deps
        began = deps.clock.monotonic()
        taken = deps.pool.claims.take_longest_waiting(deps.worker_id, deps.clock.now())
        if taken is None:
            return False
        self._begin(taken, began)
        return True

    def _begin(self, taken: StartedJob, began: float, over: Claim | None = None) -> None:
        self._forget(taken.claim.key)
        emit = partial(self._deps.emit, job=taken.job, fence=taken.claim.fence)
        waited_ms = self._deps.ms_since_queued(taken.job)
        if over:
            emit(EventKind.CLAIM_TAKEN_OVER, previous=over.worker, waited_ms=waited_ms)
        else:
            emit(EventKind.CLAIM_TAKEN, waited_ms=waited_ms)
        self._on_started(taken, began)

    def _claim(self, key: ProjectUser, over: Claim | None) -> bool:
        deps = self._deps
        left = [job.job_id for job in deps.pool.jobs.open_jobs(key)] if over else []
        began = deps.clock.monotonic()
        taken = deps.pool.claims.claim_and_start(key, deps.worker_id, deps.clock.now(), over)
        if isinstance(taken, StartedJob):
            if over:
                # A hung worker cannot end its own agents. Only after the takeover: before, it could have kept the key.
                deps.pool.liveness.end_survivors(over.worker, left)
            self._begin(taken, began, over)
            return True
        if isinstance(taken, Claim):
            return self._observe(taken)
        self._forget(key)
        return False

    def _observe(self, claim: Claim) -> bool:
        """The key has a claim: notify it if it is ours, else observe whether it has ended."""
        if claim.worker == self._deps.worker_id and self._on_own(claim):
            self._deps.pool.hints.acknowledge(claim.key)
            self._forget(claim.key)
            return False
        # Our claim that the ClaimSet does not know: the answer of the store was lost. It ends like a foreign one.
        self._deps.emit(EventKind.CLAIM_RACE_LOST, key=claim.key, to=claim.worker)
        self._foreign.add(claim.key)
        return self._watch.see(claim) and self._take_over(claim)

    def _recheck(self, key: ProjectUser) -> None:
        claim = self._deps.pool.claims.look(key)
        if claim is None or claim.status is not ClaimStatus.HELD or not self._deps.pool.jobs.open_jobs(key, limit=1):
            self._forget(key)
            self._claim(key, None)
        else:
            self._observe_again(claim)

    def _observe_again(self, claim: Claim) -> None:
        if claim.worker == self._deps.worker_id and self._on_own(claim):
            self._forget(claim.key)
        elif self._watch.see(claim):
            self._take_over(claim)

    def _forget(self, key: ProjectUser) -> None:
        self._foreign.discard(key)
        self._watch.forget(key)

    def _take_over(self, claim: Claim) -> bool:
        if self._deps.pool.liveness.is_dead(claim.worker):
            self._deps.pool.liveness.end_survivors(claim.worker)
        return self._claim(claim.key, claim)


def release(claim: Claim, pool: Pool, now: datetime) -> bool:
    """Release a key; True if it has open jobs, for which a claim request was sent.

    The key is claimable before its jobs are read. For a job that arrives in between, either this read finds it or its
    sender sends a claim request, because the key has no owner then.
    """
    if not pool.claims.begin_release(claim):
        return False
    waiting = _first_to_serve(claim, pool, now)
    if waiting:
        pool.hints.send(ClaimRequest.for_job(waiting, claim.worker, claim.fence, served_at=now), now)
        pool.tickets.notify_unclaimed()
    pool.claims.end_release(claim)
    return waiting is not None


def _first_to_serve(claim: Claim, pool: Pool, now: datetime) -> Job | None:
    """The job that the next owner can start now, else the one that it can start soonest."""
    jobs = pool.jobs.open_jobs(claim.key)
    ready = next_job(jobs, claim.fence + 1, now)
    return ready or min(jobs, key=lambda job: job.not_before or now, default=None)
