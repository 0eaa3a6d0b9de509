"""How a worker on AWS sleeps: threads long-poll for it, one for the unclaimed queue and one for each key it holds.

A poll under way cannot be called back, so a key's thread stays on its input queue while a job runs: every mail, stop
and interrupt sends a ticket there. To change to another queue with each job would leave the worker deaf, each time,
for what is left of a poll.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import LONG_POLL_SECONDS
from webordinary.adapters.aws.pool.claim_requests import SqsClaimRequests
from webordinary.adapters.aws.pool.queues import Queues, asks_to_end, is_old
from webordinary.model.errors import Backoff, WebOrdinaryError
from webordinary.model.jobs import Job
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import DRAIN

SAID_AGAIN_SECONDS = 300.0


class LogThrottle:
    """Limits the log lines of one poll. `failures` counts failures in a row; a repeated message is logged rarely."""

    def __init__(self, what: str, log: logging.Logger, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._what, self._log, self._monotonic = what, log, monotonic
        self._words, self._said_at, self._began = "", 0.0, 0.0
        self.failures = 0

    def met(self, problem: Exception) -> None:
        """Count a failure."""
        now, words = self._monotonic(), str(problem)
        self._began = self._began if self.failures else now
        self.failures += 1
        if words != self._words or now - self._said_at >= SAID_AGAIN_SECONDS:
            self._words, self._said_at = words, now
            since = f" ({self.failures} times in {now - self._began:.0f} s)" if self.failures > 1 else ""
            self._log.warning("%s: %s%s", self._what, words, since)

    def over(self) -> None:
        """Reset the count after a success."""
        if self.failures:
            lasted = self._monotonic() - self._began
            self._log.warning("%s works again, after %d failures in %.0f s", self._what, self.failures, lasted)
            self._words, self.failures = "", 0


SHORTEST_ROUND_SECONDS = 1.0
"""Whatever answers long polls at once and empty is not asked in a frenzy."""
_BACKOFF = Backoff(0.5, cap=30.0)

_log = logging.getLogger(__name__)
_Target = ProjectUser | None
"""A key's input queue; None is the unclaimed queue."""


class PollingWakeups:
    """Starts a thread for what the worker attends to; a thread ends with its poll when it is not wanted any more."""

    def __init__(
        self,
        queues: Queues,
        hints: SqsClaimRequests,
        slots: int,
        poll_seconds: int = LONG_POLL_SECONDS,
        troubled: Callable[[str], None] = lambda _: None,
        worker: str = "",
    ) -> None:
        """`troubled` gets the problem of a failing poll, and an empty text once a poll succeeds."""
        self._queues, self._hints, self._poll_seconds, self._troubled = queues, hints, poll_seconds, troubled
        self._worker = worker
        # The unclaimed queue, a key for each slot, and as many polls again that only run out.
        self._most_threads = 2 * slots + 2
        self._heard: dict[str, None] = {}
        self._news = threading.Condition()
        self._guard = threading.Lock()
        self._targets: tuple[_Target, ...] = ()
        self._free = 0
        self._started: dict[ProjectUser, Job | None] = {}
        self._polling: set[_Target] = set()
        self._threads: list[threading.Thread] = []
        self._closed = threading.Event()
        self._rng = random.Random()  # noqa: S311 - jitter, not a secret

    def wait(self, seconds: float, held: Mapping[ProjectUser, Job | None], free: int) -> Sequence[str]:
        """Poll the queues and sleep until a message comes or the time is over."""
        self.attend(held, free)
        return self.sleep(seconds)

    def sleep(self, seconds: float) -> Sequence[str]:
        """Sleep until something is heard or the time is over."""
        with self._news:
            self._news.wait_for(lambda: self._heard, max(0.0, min(seconds, threading.TIMEOUT_MAX)))
            heard = list(self._heard)
            self._heard.clear()
        self._hints.listened = True  # with a slot that became free meanwhile the worker attends again in a moment
        return heard

    def poke(self) -> None:
        self._hear("poke")

    def drain(self) -> None:
        """Let the worker end once its running jobs are done."""
        self._hear(DRAIN)

    def keys_changed(self) -> None:
        """Wakes the loop: the queues to poll have changed."""
        self.poke()

    def attend(self, held: Mapping[ProjectUser, Job | None], free: int) -> None:
        """Poll for the keys held and, with free slots, for keys that wait."""
        with self._guard:
            self._free = free
            self._started = {key: job or self._started.get(key) for key, job in held.items()}
            self._targets = () if self._closed.is_set() else ((None, *held) if free > 0 else tuple(held))
            self._start_missing()
        self._hints.listened = free > 0
        self._hints.use_up(held)
        if free <= 0:
            self._hints.give_back()

    def close(self) -> None:
        """Poll no more, and wait for the polls under way: what they bring is given back at once.

        A message received by a process that ends stays invisible until its visibility timeout.
        """
        self._closed.set()
        self.attend({}, 0)
        deadline = time.monotonic() + self._poll_seconds + 1
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _hear(self, message: str) -> None:
        with self._news:
            self._heard[message] = None
            self._news.notify_all()

    def _start_missing(self) -> None:
        for target in self._targets:
            if target not in self._polling and len(self._polling) < self._most_threads:
                self._polling.add(target)
                name = f"poll {target or 'unclaimed'}"
                thread = threading.Thread(target=self._poll, args=(target,), name=name, daemon=True)
                self._threads = [*(one for one in self._threads if one.is_alive()), thread]
                thread.start()

    def _poll(self, target: _Target) -> None:
        trouble = LogThrottle(f"polling for {target or 'keys that wait'}", _log)
        try:
            while self._goes_on(target):
                began = time.monotonic()
                try:
                    came = self._round(target)
                except WebOrdinaryError as problem:
                    trouble.met(problem)
                    self._troubled(str(problem))
                    self._closed.wait(_BACKOFF.delay(trouble.failures, self._rng))
                else:
                    if trouble.failures:
                        self._troubled("")
                    trouble.over()
                    if not came:
                        self._closed.wait(max(0.0, SHORTEST_ROUND_SECONDS - (time.monotonic() - began)))
        finally:
            with self._guard:
                self._polling.discard(target)  # the next `attend` starts it again

    def _goes_on(self, target: _Target) -> bool:
        with self._guard:
            if target in self._targets:
                return True
            self._polling.discard(target)
            self._start_missing()
            return False

    def _round(self, target: _Target) -> bool:
        return self._poll_unclaimed() if target is None else self._poll_input(target)

    def _poll_unclaimed(self) -> bool:
        came = self._hints.collect(self._free, self._poll_seconds)
        if not came:
            return False
        with self._guard:  # no more of them until the worker attends again: it may have no slot left after these
            free, self._targets = self._free, tuple(target for target in self._targets if target)
        if free > 0:
            self._hear("unclaimed")
        else:
            self._hints.give_back()  # the slots were taken meanwhile
        return True

    def _poll_input(self, key: ProjectUser) -> bool:
        """Tickets only wake: they are deleted at once, as one in flight would hold back all others of its key."""
        queue = names.queues_of(key).input
        tickets = self._queues.receive(queue, wait_seconds=self._poll_seconds)
        with self._guard:
            ours, started = key in self._targets, self._started.get(key)
        if not ours:
            self._queues.give_back(queue, tickets)  # they are for the key's present owner
            return bool(tickets)
        if any(asks_to_end(ticket.body, self._worker) for ticket in tickets):
            self.drain()
        if not all(is_old(ticket.body, started) for ticket in tickets):
            self._hear(f"ticket {key}")
        self._queues.delete(queue, tickets)
        return bool(tickets)
