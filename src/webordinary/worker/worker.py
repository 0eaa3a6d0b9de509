"""The generic worker: claims whichever key has work, serves it in order, keeps it warm, gives it up."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from webordinary.model.claims import Claim, Started
from webordinary.model.errors import ClaimLost, InvalidName, Stopped
from webordinary.model.names import ProjectUser
from webordinary.model.text import clean
from webordinary.pool.reconciler import Reconciler
from webordinary.pool.release import release
from webordinary.pool.rules import next_due_at
from webordinary.worker.breaker import Breaker
from webordinary.worker.claiming import Claiming
from webordinary.worker.hold import RunningHold
from webordinary.worker.holdings import Holding, Holdings
from webordinary.worker.keeper import LeaseKeeper
from webordinary.worker.limits import Limits
from webordinary.worker.slot import Slot
from webordinary.worker.surroundings import Surroundings

_log = logging.getLogger(__name__)
_QUICK_SECONDS = 2.5
_RETRY_SECONDS = 1.0
Carry = Callable[[Slot, RunningHold], None]
"""Serves a slot, from a job that has begun on, beside the worker's loop; pokes the loop when the slot is free."""


class Worker:
    """One process's worth of service. `run_once` is the unit; `run` only repeats it."""

    def __init__(self, around: Surroundings, carry: Carry | None = None) -> None:
        """`carry` runs the slots; each in a thread of its own, if not said otherwise."""
        self._around = around
        self._carry = carry or self._carry_in_a_thread
        self._holdings = Holdings()
        self._keeper = LeaseKeeper(around, self._holdings)
        self._limits = Limits(around, self._holdings)
        self._claiming = Claiming(around, self._has_free_slot, self._begin_claimed, self._hear_of_own)
        self._stopping, self._ended = around.threads.bell(), around.threads.bell()
        self._breaker = Breaker(around.dice)
        self._reconciler = Reconciler(around.pool, around.events, self._claiming.is_over, self._is_held)
        self._reconcile_at = 0.0
        self._retry_at: dict[ProjectUser, float] = {}

    def run(self) -> None:
        """Serve until told to stop; then finish or save what runs, and release everything."""
        self._around.threads.spawn("lease-keeper", lambda: self._keeper.keep(self._ended))
        self._around.tell("WorkerStarted", slots=self._around.settings.slots)
        while not self._stopping.wait(0):
            self._run_once_guarded()
        self._wind_down()
        self._ended.ring()
        self._around.tell("WorkerStopped")

    def stop(self) -> None:
        """Take no more; called from a signal handler or another thread."""
        self._stopping.ring()
        self._around.wakeups.poke()

    def run_once(self) -> None:
        """Sleep until there is something to do, and do it."""
        self._around.wakeups.attend(self._holdings.jobs(), self._free_slots())
        self.react(self._around.wakeups.wait(self.seconds_to_wait()))

    def react(self, heard: Sequence[str]) -> None:
        """Do what there is to do now, and come back at once."""
        self._hear(heard)
        self._release_abandoned_keys()
        self._limits.enforce()
        self._serve_held_keys()
        self._claiming.serve_waiting_keys()
        if self._holdings.end_of_line():
            self._around.wakeups.poke()
        self._release_idle_keys()
        self._reconcile()

    def _run_once_guarded(self) -> None:
        try:
            self.run_once()
        except Exception as problem:
            if self._breaker.failed():
                self._around.tell("BreakerOpened", error=clean(f"{type(problem).__name__}: {problem}")[:500])
            _log.warning("worker %s: %s: %s", self._around.worker_id, type(problem).__name__, problem)
            self._stopping.wait(self._breaker.pause_seconds())
            self._holdings.tell_all()  # what was heard may be lost with the round that failed
            self._around.wakeups.poke()
        else:
            if self._breaker.succeeded():
                self._around.tell("BreakerClosed")

    def _hear(self, heard: Sequence[str]) -> None:
        for message in heard:
            word, _, rest = message.partition(" ")
            if word == "ticket":
                self._news_for(rest)
            elif word == "died":
                self._reconcile_at = 0.0

    def _news_for(self, key: str) -> None:
        try:
            self._holdings.tell([ProjectUser.parse(key)])
        except InvalidName:
            _log.warning("ignored a ticket for %r", key)

    def _is_held(self, key: ProjectUser) -> bool:
        return self._holdings.get(key) is not None

    def _hear_of_own(self, claim: Claim) -> bool:
        """There may be work for a claim of this worker; False if it is not held here."""
        holding = self._holdings.get(claim.key)
        if holding is None or holding.claim.fence != claim.fence:
            return False
        self._holdings.tell([claim.key])
        return True

    def seconds_to_wait(self) -> float:
        """How long there is nothing to do, unless something is heard."""
        moments = [self._reconcile_at, *self._retry_at.values()]
        moments += [held.used_at + self._around.settings.idle_release for held in self._holdings.idle()[:1]]
        if limit := self._limits.next_look():
            moments.append(limit)
        if self._has_free_slot() and (look := self._claiming.next_look()):
            moments.append(look)
        return max(0.0, min(moments) - self._around.clock.monotonic())

    def _has_free_slot(self) -> bool:
        return self._free_slots() > 0

    def _free_slots(self) -> int:
        return self._around.settings.slots - len(self._holdings.running())

    def _serve_held_keys(self) -> None:
        self._notice_retries()
        for holding in self._holdings.idle_with_news():
            if self._has_free_slot():
                self._serve_next(holding)
            else:
                self._holdings.tell([holding.claim.key])

    def _notice_retries(self) -> None:
        now = self._around.clock.monotonic()
        due = [key for key, at in self._retry_at.items() if at <= now]
        for key in due:
            del self._retry_at[key]
        self._holdings.tell(due)

    def _serve_next(self, holding: Holding) -> None:
        around, claim = self._around, holding.claim
        try:
            job = around.pool.claims.start_next(claim, around.clock.now())
        except ClaimLost:
            self._holdings.drop(claim)
            return
        except Exception:
            # Perhaps a job was started and only the answer is lost: under this fence nobody would run it.
            self._holdings.abandon(claim)
            raise
        if job:
            self._run_in_slot(Started(claim, job))
        elif due := next_due_at(around.pool.jobs.open_jobs(claim.key)):
            pause = max(0.05, (due - around.clock.now()).total_seconds())
            self._retry_at[claim.key] = around.clock.monotonic() + pause

    def _begin_claimed(self, started: Started, claimed_at: float) -> None:
        self._keeper.trust(started.claim.key, started.claim.fence, claimed_at)
        self._run_in_slot(started)
        self._give_up_coldest()

    def _run_in_slot(self, started: Started) -> None:
        slot = Slot(self._around, self._holdings, self._keeper, self._stopping)
        try:
            self._carry(slot, slot.begin(started))
        except BaseException:
            self._holdings.abandon(started.claim)  # else its lease is renewed, and nobody runs its job
            raise

    def _carry_in_a_thread(self, slot: Slot, hold: RunningHold) -> None:
        def serve() -> None:
            try:
                slot.serve(hold)
            finally:
                self._around.wakeups.poke()

        self._around.threads.spawn(f"slot {hold.started.claim.key}", serve)

    def _give_up_coldest(self) -> None:
        """An idle claim is only warmth: it goes when its slot is wanted."""
        surplus = len(self._holdings.claims()) - self._around.settings.slots
        for holding in self._holdings.idle()[: max(0, surplus)]:
            self._release(holding.claim, "ClaimYielded")

    def _release_abandoned_keys(self) -> None:
        """Those that nobody serves; one that cannot be released is tried again until it has run out."""
        for claim in self._holdings.abandoned():
            released, now = self._try_to_release(claim), self._around.clock.monotonic()
            if released or now > self._keeper.trusted_until(claim.key, claim.fence):
                self._holdings.released(claim)
            else:
                self._retry_at[claim.key] = now + _RETRY_SECONDS

    def _release_idle_keys(self) -> None:
        now = self._around.clock.monotonic()
        for holding in self._holdings.idle():
            if now - holding.used_at >= self._around.settings.idle_release:
                self._release(holding.claim, "ClaimReleased")

    def _try_to_release(self, claim: Claim) -> bool:
        try:
            self._release(claim, "ClaimReleased")
        except Exception as problem:
            _log.warning("%s: not released, so its lease must run out: %s", claim.key, problem)
            return False
        return True

    def _release(self, claim: Claim, kind: str) -> None:
        around = self._around
        held = self._holdings.get(claim.key)
        idle_ms = round((around.clock.monotonic() - held.used_at) * 1000, 1) if held else 0.0
        self._holdings.drop(claim)
        self._retry_at.pop(claim.key, None)
        release(claim, around.pool, around.clock.now())
        around.tell(kind, key=claim.key, fence=claim.fence, idle_ms=idle_ms)

    def _reconcile(self) -> None:
        now = self._around.clock.monotonic()
        if now < self._reconcile_at:
            return
        self._reconcile_at = now + self._around.settings.reconcile
        self._holdings.tell_all()
        self._reconciler.run_once(self._around.clock.now())
        self._claiming.end_round()

    def _wind_down(self) -> None:
        """Let quick jobs finish, save the others, release every key."""
        clock, settings = self._around.clock, self._around.settings
        self._around.wakeups.attend({}, 0)
        self._wait_for_slots(clock.monotonic() + min(_QUICK_SECONDS, settings.stop_grace / 4))
        for hold in self._holdings.running():
            hold.end(Stopped("the worker is stopping"))
        self._wait_for_slots(clock.monotonic() + settings.stop_grace)
        self._release_abandoned_keys()
        for holding in self._holdings.idle():
            self._try_to_release(holding.claim)

    def _wait_for_slots(self, deadline: float) -> None:
        while self._holdings.running() and self._around.clock.monotonic() < deadline:
            self._around.wakeups.wait(deadline - self._around.clock.monotonic())
