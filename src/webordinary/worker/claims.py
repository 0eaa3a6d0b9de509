"""ClaimSet: the claims of one worker, idle or busy. LeaseRenewer: renews them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from webordinary.model.claims import Claim
from webordinary.model.errors import ClaimLost
from webordinary.model.events import EventKind
from webordinary.model.jobs import Job
from webordinary.model.names import ProjectUser
from webordinary.model.text import clean
from webordinary.worker.cancellation import JobCancelToken
from webordinary.worker.ports import StopEvent, WorkerDeps


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
            news = sorted(self._news)
            idle = [self._held[key] for key in news if key in self._held and not self._held[key].token]
            self._news = {key for key in self._news if key in self._held and self._held[key].token}
            return idle

    def busy_notified(self) -> list[tuple[JobCancelToken, bool]]:
        """Running jobs whose key has an unread notification, each once; True if a message came."""
        with self._guard:
            unread, self._unread = self._unread, {}
            found = ((self._held.get(key), heard) for key, heard in sorted(unread.items()))
            return [(held.token, heard) for held, heard in found if held and held.token]

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
            return sorted((h for h in self._held.values() if not h.token), key=lambda h: h.used_at)

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
        holding = self._claim_set.get(claim.key)
        if holding is None or holding.claim.fence != claim.fence:
            return  # it was released or yielded meanwhile
        if holding.token:
            holding.token.end(ClaimLost(claim.key, claim.worker, claim.fence))
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
