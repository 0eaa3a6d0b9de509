"""The claims of one worker: ClaimSet holds them, LeaseRenewer renews them, Claiming takes keys for free slots.

Claiming reads claim requests, observes the leases of other workers and takes over what they left. JobCancelToken tells
a running job to end.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import attrgetter

from webordinary.model.claims import WARM_PREFERENCE_SECONDS, Claim, ClaimRequest, ClaimStatus, StartedJob
from webordinary.model.errors import ClaimLost, JobTimedOut, WebOrdinaryError
from webordinary.model.events import EventKind
from webordinary.model.jobs import Job
from webordinary.model.names import ProjectUser
from webordinary.model.text import clean
from webordinary.pool.ports import Liveness, Pool
from webordinary.pool.transitions import next_job
from webordinary.worker.ports import Clock, StopEvent, WorkerDeps


class JobCancelToken:
    """The cancel token of one job. The lease renewer, an interrupt, a deadline or a person ends it; the first wins."""

    def __init__(self, started: StartedJob, clock: Clock, deadline: float, lease_until: Callable[[], float]) -> None:
        self.started = started
        self.worker, self.fence = started.claim.worker, started.claim.fence
        self.job_id = started.job.job_id
        self.deadline = deadline
        self._clock = clock
        self._lease_until = lease_until
        self.reason: WebOrdinaryError | None = None
        """Why the job must end; None while it may run. Set by `end`."""
        self._stops: list[Callable[[], None]] = []
        self._guard = threading.Lock()

    def check(self) -> None:
        """Raise the reason if the job must end."""
        now = self._clock.monotonic()
        if now > self._lease_until():
            claim = self.started.claim
            self.end(ClaimLost(claim.key, claim.worker, claim.fence, "its lease was not renewed in time"))
        elif now > self.deadline:
            self.end(JobTimedOut("the job used up its time"))
        if self.reason:
            raise self.reason

    def end(self, reason: WebOrdinaryError) -> None:
        """End the job for this reason; a lost claim replaces an earlier reason."""
        with self._guard:
            first = self.reason is None
            if first or isinstance(reason, ClaimLost):
                self.reason = reason
            stops = list(self._stops) if first else []
        for stop in stops:
            stop()

    @contextmanager
    def on_stop(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call `stop` as soon as the job must end."""
        with self._guard:
            ended = self.reason is not None
            self._stops.append(stop)
        if ended:
            stop()
        try:
            yield
        finally:
            with self._guard:
                self._stops.remove(stop)


class SavingToken:
    """The cancel token for saving the work of an ended job: only a lost claim ends it."""

    def __init__(self, token: JobCancelToken) -> None:
        self._token = token
        self.worker, self.fence, self.job_id = token.worker, token.fence, token.job_id

    def check(self) -> None:
        """Raise ClaimLost if the claim is lost; ignore other reasons."""
        try:
            self._token.check()
        except ClaimLost:
            raise
        except WebOrdinaryError:
            return

    @contextmanager
    def on_stop(self, stop: Callable[[], None]) -> Iterator[None]:
        """Never calls `stop`."""
        yield


@dataclass(slots=True)
class HeldClaim:
    """One claim. Without a token it is idle, and kept because its workspace is warm."""

    claim: Claim
    used_at: float
    token: JobCancelToken | None = None


class ClaimSet:
    """A worker's claims. Thread-safe: used by the loop, the slots and the lease renewer."""

    def __init__(self) -> None:
        self._held: dict[ProjectUser, HeldClaim] = {}
        self._news: set[ProjectUser] = set()
        self._late_news: set[ProjectUser] = set()
        self._unread: dict[ProjectUser, bool] = {}
        """Busy keys with an unread notification; True if a message came, False if only a periodic check is due."""
        self._abandoned: dict[tuple[ProjectUser, int], Claim] = {}
        self._guard = threading.Lock()

    def mark_busy(self, token: JobCancelToken, now: float, yielded: Claim | None = None) -> None:
        """A job runs under this claim. A claim that was yielded for it is removed in the same step."""
        claim = token.started.claim
        with self._guard:
            if yielded:
                self._forget(yielded)
            self._held[claim.key] = HeldClaim(claim, now, token)

    def mark_idle(self, claim: Claim, now: float, *, look: bool = True, last: bool = False) -> None:
        """The claim is idle. With `look`, its queue is read once more, for jobs with a later start.

        Notifications that came while the key was busy are kept. With `last`, the queue is read after the claim
        requests for unowned keys.
        """
        with self._guard:
            self._held[claim.key] = HeldClaim(claim, now)
            if look:
                self._news.add(claim.key)
            if last and claim.key in self._news:
                self._news.remove(claim.key)
                self._late_news.add(claim.key)

    def queue_late(self) -> bool:
        """Make the keys marked `last` due; True if there are any."""
        with self._guard:
            late, self._late_news = self._late_news, set()
            self._news |= late
            return bool(late)

    def remove(self, claim: Claim) -> None:
        """Remove a lost claim; a newer one for the same key stays."""
        with self._guard:
            self._forget(claim)

    def abandon(self, claim: Claim) -> None:
        """Stop serving a claim that the store may still assign to this worker; the loop releases it."""
        with self._guard:
            self._forget(claim)
            self._abandoned[claim.key, claim.fence] = claim

    def abandoned(self) -> list[Claim]:
        """Claims to release."""
        with self._guard:
            return list(self._abandoned.values())

    def released(self, claim: Claim) -> None:
        """The claim is released, or was lost before."""
        with self._guard:
            self._abandoned.pop((claim.key, claim.fence), None)

    def knows(self, claim: Claim) -> bool:
        """Whether this claim is busy, idle or abandoned."""
        with self._guard:
            held = self._held.get(claim.key)
            return (held is not None and held.claim.fence == claim.fence) or (claim.key, claim.fence) in self._abandoned

    def notify(self, keys: Iterable[ProjectUser]) -> None:
        """There may be work for these keys."""
        with self._guard:
            notified = set(keys)
            self._news |= notified
            self._unread |= dict.fromkeys(notified, True)

    def notify_all(self) -> None:
        """There may be work for any key: messages can be lost."""
        with self._guard:
            self._news |= self._held.keys()
            self._unread = dict.fromkeys(self._held, False) | self._unread

    def idle_notified(self) -> list[HeldClaim]:
        """Idle claims with a notification. Those of busy keys are kept until the key is idle."""
        with self._guard:
            idle = []
            for key in sorted(self._news):
                held = self._held.get(key)
                if held and held.token:
                    continue
                self._news.remove(key)
                if held:
                    idle.append(held)
            return idle

    def busy_notified(self) -> list[tuple[JobCancelToken, bool]]:
        """Running jobs whose key has an unread notification, each once; True if a message came."""
        with self._guard:
            unread, self._unread = self._unread, {}
            busy = []
            for key, heard in sorted(unread.items()):
                held = self._held.get(key)
                if held and held.token:
                    busy.append((held.token, heard))
            return busy

    def get(self, key: ProjectUser) -> HeldClaim | None:
        """The claim of a key; None if this worker has none."""
        with self._guard:
            return self._held.get(key)

    def running(self) -> list[JobCancelToken]:
        """The jobs under way."""
        with self._guard:
            return [held.token for held in self._held.values() if held.token]

    def idle(self) -> list[HeldClaim]:
        """Idle claims, the least recently used first."""
        with self._guard:
            return sorted((held for held in self._held.values() if not held.token), key=attrgetter("used_at"))

    def jobs(self) -> dict[ProjectUser, Job | None]:
        """Every key of this worker, with its running job."""
        with self._guard:
            return {key: held.token.started.job if held.token else None for key, held in self._held.items()}

    def claims(self) -> list[Claim]:
        """Every claim of this worker."""
        with self._guard:
            return [held.claim for held in self._held.values()]

    def _forget(self, claim: Claim) -> None:
        held = self._held.get(claim.key)
        if held and held.claim.fence == claim.fence:
            del self._held[claim.key]


_log = logging.getLogger(__name__)


_LOOK_UPS = 3
"""Look-ups after a failed call: two find a claim, one more covers a request that the store served late."""


class LeaseRenewer:
    """Renews the claims, and knows on the monotonic clock until when each is confirmed."""

    def __init__(self, deps: WorkerDeps, claim_set: ClaimSet) -> None:
        self._deps, self._claim_set = deps, claim_set
        self._trust_seconds = deps.settings.lease - deps.settings.lease_margin
        self._until: dict[tuple[ProjectUser, int], float] = {}
        self._unknown: set[tuple[ProjectUser, int]] = set()
        """Claims that the store, at the last look-up, listed for this worker and that `ClaimSet` did not."""
        self._look_ups_due = 0
        self._guard = threading.Lock()

    def run(self, stopped: StopEvent) -> None:
        """Renew until `stopped` is set."""
        while not stopped.wait(self._deps.settings.renew):
            self.renew_once()

    def confirm(self, key: ProjectUser, fence: int, confirmed_at: float) -> None:
        """A claim was confirmed by a call that began at `confirmed_at`."""
        with self._guard:
            self._until[key, fence] = confirmed_at + self._trust_seconds

    def confirmed_until(self, key: ProjectUser, fence: int) -> float:
        """After this moment no job may act under that claim."""
        with self._guard:
            return self._until.get((key, fence), 0.0)

    def renew_once(self) -> None:
        """Renew all claims; end the jobs of lost ones."""
        claims = self._claim_set.claims()
        still_mine = self._renew(claims)
        now = self._deps.clock.monotonic()
        for claim in claims:
            if claim.key not in still_mine or now > self.confirmed_until(claim.key, claim.fence):
                self._lose(claim)
        self._forget({(claim.key, claim.fence) for claim in claims}, now)
        if self._look_ups_due:
            self._abandon_unknown()

    def expect_unknown_claims(self) -> None:
        """Look claims up in the store at the next renewals: a call that may have taken one failed.

        Without such a failure the store and `ClaimSet` agree; a look-up at each renewal would only cost calls.
        """
        self._look_ups_due = _LOOK_UPS

    def _renew(self, claims: list[Claim]) -> set[ProjectUser]:
        if not claims:
            return set()
        began = self._deps.clock.monotonic()
        try:
            still_mine = self._deps.pool.claims.renew(claims, self._deps.clock.now())
        except Exception as problem:
            _log.warning("worker %s: renews nothing: %s: %s", self._deps.worker_id, type(problem).__name__, problem)
            self._deps.emit(EventKind.CLAIM_RENEWAL_FAILED, error=clean(str(problem))[:500])
            return {claim.key for claim in claims}  # unknown: their confirmation expires
        for claim in claims:
            if claim.key in still_mine:
                self.confirm(claim.key, claim.fence, began)
        return still_mine

    def _lose(self, claim: Claim) -> None:
        held = self._claim_set.get(claim.key)
        if held is None or held.claim.fence != claim.fence:
            return  # it was released or yielded meanwhile
        if held.token:
            held.token.end(ClaimLost(claim.key, claim.worker, claim.fence))
        else:
            self._claim_set.abandon(claim)
        self._deps.emit(EventKind.CLAIM_RENEWAL_FAILED, key=claim.key, fence=claim.fence)

    def _abandon_unknown(self) -> None:
        """Abandon claims that the store lists for this worker and that no slot serves: their confirmation was lost.

        Only at the second look-up: the store has a claim a moment before `ClaimSet` has it.
        """
        try:
            held = self._deps.pool.claims.held_by(self._deps.worker_id)
        except Exception as problem:
            _log.warning("worker %s: cannot read its own claims: %s", self._deps.worker_id, problem)
            return
        self._look_ups_due -= 1
        unknown = {(claim.key, claim.fence): claim for claim in held if not self._claim_set.knows(claim)}
        for seen_twice in unknown.keys() & self._unknown:
            _log.warning("%s: held in the store under fence %d and served by no slot; released", *seen_twice)
            self._claim_set.abandon(unknown[seen_twice])
            self._deps.wakeups.poke()
        self._unknown = set(unknown)

    def _forget(self, current: set[tuple[ProjectUser, int]], now: float) -> None:
        with self._guard:
            self._until = {known: until for known, until in self._until.items() if known in current or until > now}


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

    def begin_anew(self, key: ProjectUser) -> None:
        """The lease of this key is observed from now on: while the store takes no writes, no beat can change."""
        if sight := self._seen.get(key):
            sight.since = self._clock.monotonic()

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
        free_slots: Callable[[], int],
        on_started: Callable[[StartedJob, float], None],
        on_own: Callable[[Claim], bool],
    ) -> None:
        self._deps = deps
        self._free_slots, self._on_started, self._on_own = free_slots, on_started, on_own
        self._watch = LeaseObserver(deps.clock, deps.pool.liveness, deps.settings.lease)
        self._foreign: set[ProjectUser] = set()
        self._offered_at: dict[ProjectUser, float] = {}

    def serve_waiting_keys(self) -> None:
        """Claim waiting keys while there is a free slot."""
        for key in sorted(self._foreign):
            if self._free_slots() > 0:
                self._recheck(key)
        while self._free_slots() > 0:
            offers, are_all = self._offers()
            if not any(self._claim(offer.key, None) for offer in offers) and (are_all or not self._take_any()):
                return  # other workers won all the races

    def next_check_at(self) -> float | None:
        """When, on the monotonic clock, a key of another worker should be checked again."""
        if not (self._offered_at or self._foreign):
            return None
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
        if not self._foreign:
            return False
        now = self._deps.clock.monotonic()
        ends = [self._watch.over_at(key) for key in list(self._foreign)]
        return any(at is not None and at <= now for at in ends)

    def end_round(self) -> None:
        """The reconciler has passed every claim with work to `is_over`."""
        self._watch.forget_unseen()

    def _offers(self) -> tuple[Sequence[ClaimRequest], bool]:
        """Keys to claim, the longest waiting first, and whether these are all that wait."""
        offers = self._deps.pool.hints.receive(self._deps.clock.now(), self._foreign, _HINTS_AT_ONCE)
        if self._offered_at:
            offered = {offer.key for offer in offers}
            self._offered_at = {key: at for key, at in self._offered_at.items() if key in offered}
        return [offer for offer in offers if not self._reserved_for_other(offer)], len(offers) < _HINTS_AT_ONCE

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
        try:
            return self._claim(claim.key, claim)
        except Exception:
            self._watch.begin_anew(claim.key)
            raise


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
