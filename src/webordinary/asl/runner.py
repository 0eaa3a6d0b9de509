"""Threads around an engine: each due execution is advanced by one of them, none by two at once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from webordinary.asl.engine import Engine
from webordinary.asl.errors import NotReady

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
_LOOK_AHEAD = 64  # due executions looked at beyond those in work and backed off


class Waker:
    """The simplest `wait` and `wake`: for one process. A wake that comes before the wait is not lost."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def wait(self, seconds: float | None) -> None:
        """Sleep until woken, or so many seconds at most."""
        self._event.wait(seconds)
        self._event.clear()

    def wake(self) -> None:
        """End the sleep that is going on, or the next one."""
        self._event.set()


class EngineRunner:
    """Keeps an engine going until told to stop.

    `wait(seconds)` returns after so many seconds (None = no limit) or as soon as `wake` is called: this
    runner does when a thread gets free, the app when it started an execution or a token was answered. It may
    return early for no reason. Broad `except` lives here: what breaks one execution delays only that one.
    """

    def __init__(
        self,
        engine: Engine,
        wait: Callable[[float | None], None],
        wake: Callable[[], None],
        threads: int = 4,
        *,
        delay: Callable[[int], float],
    ) -> None:
        self._engine, self._wait, self._wake, self._threads = engine, wait, wake, threads
        self._guard = threading.Lock()
        self._in_work: set[str] = set()
        self._back_off = FailedExecutions(delay)
        self._stopping = threading.Event()

    def run(self) -> None:
        """Advance due executions, sleep until the next is due. Returns after `stop`, once no advance is under way."""
        pool = self._started_pool()
        if pool is None:
            return
        with pool:
            while not self._stopping.is_set():
                try:
                    seconds = self._hand_out(pool)
                except Exception:
                    log.exception("the executions that are due could not be read; trying again")
                    seconds = RETRY_SECONDS
                if not self._stopping.is_set():
                    self._wait(seconds)

    def stop(self) -> None:
        """Take no more work. Callable from any thread, and from a signal handler."""
        self._stopping.set()
        self._wake()

    def _started_pool(self) -> ThreadPoolExecutor | None:
        """A pool with all threads started; None if `stop` came before they could start."""
        while not self._stopping.is_set():
            pool = ThreadPoolExecutor(self._threads, thread_name_prefix="workflow")
            try:
                self._start_all_threads(pool)
            except RuntimeError as problem:
                pool.shutdown(cancel_futures=True)
                log.warning("workflows wait for %d threads: %s; give this machine more memory", self._threads, problem)
                self._wait(RETRY_SECONDS)
            else:
                return pool
        return None

    def _start_all_threads(self, pool: ThreadPoolExecutor) -> None:
        """Start them while there is memory for threads: an execution whose thread does not start would be lost."""
        all_started = threading.Barrier(self._threads + 1)
        try:
            for _ in range(self._threads):
                pool.submit(all_started.wait)
        except RuntimeError:
            all_started.abort()
            raise
        all_started.wait()

    def _hand_out(self, pool: ThreadPoolExecutor) -> float | None:
        """Give due executions to free threads.

        Returns the seconds until the next timer or the end of a back-off; None if only a wake can bring work.
        """
        now = self._engine.clock.now()
        with self._guard:
            passed_over = self._in_work | self._back_off.until_later(now)
            free = self._threads - len(self._in_work)
            back_off_ends = self._back_off.next_end(now)
        if free <= 0:
            return None  # the thread that gets free wakes us
        due, next_at = self._engine.store.due(now, len(passed_over) + _LOOK_AHEAD)
        for name in [name for name in due if name not in passed_over][:free]:
            with self._guard:
                self._in_work.add(name)
            pool.submit(self._advance, name)
        known = [time for time in (next_at, back_off_ends) if time is not None]
        return max(0.0, (min(known) - now).total_seconds()) if known else None

    def _advance(self, name: str) -> None:
        problem = False
        try:
            self._engine.advance(name)
        except NotReady as waiting:
            problem = True
            log.warning("execution %s waits: %s", name, waiting)
        except Exception:
            problem = True
            log.exception("execution %s could not be advanced; it will be tried again", name)
        finally:
            with self._guard:
                self._in_work.discard(name)
                if problem:
                    self._back_off.add(name, self._engine.clock.now())
                else:
                    self._back_off.forgive(name)
            self._wake()


class FailedExecutions:
    """Executions whose last advance failed. `delay` maps the number of earlier failures to seconds."""

    def __init__(self, delay: Callable[[int], float]) -> None:
        self._delay = delay
        self._ends: dict[str, tuple[datetime, int]] = {}

    def add(self, name: str, now: datetime) -> None:
        """Count a failure."""
        failures = self._ends[name][1] if name in self._ends else 0
        self._ends[name] = (now + timedelta(seconds=self._delay(failures)), failures + 1)

    def forgive(self, name: str) -> None:
        """Forget the failures of an execution."""
        self._ends.pop(name, None)

    def until_later(self, now: datetime) -> set[str]:
        """The executions that wait for their next try."""
        return {name for name, (end, _) in self._ends.items() if end > now}

    def next_end(self, now: datetime) -> datetime | None:
        """The time of the earliest next try."""
        return min((end for end, _ in self._ends.values() if end > now), default=None)
