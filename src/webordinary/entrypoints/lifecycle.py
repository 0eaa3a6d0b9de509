"""From the first line to the last: run the work until it ends, a signal comes, or the parent is gone."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from webordinary.compose.container import profile_of
from webordinary.config import Config

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ENDED = b"\0"  # any other byte in the pipe is the number of a signal
KILLED, STUCK = 130, 1
Work = Callable[[threading.Event], None]


def run_until_stopped(
    work: Work,
    *,
    patience_seconds: float,
    parent: int | None = None,
    on_stop: Callable[[], None] = lambda: None,
    on_kill: Callable[[], None] = lambda: None,
) -> None:
    """Run `work` in a thread of its own and set its event on SIGINT, SIGTERM, SIGHUP or end of `parent`.

    The main thread only listens, because a handler that sets the event could meet the lock it needs. A second
    signal, or patience that runs out, ends this process at once; what matters is on disk at any instant.
    """
    with _told_by_signals() as (ears, mouth):
        stop = threading.Event()
        failures: list[BaseException] = []
        thread = threading.Thread(target=_guarded, args=(work, stop, failures, mouth), name="work", daemon=True)
        thread.start()
        _listen(ears, parent, stop, patience_seconds, on_stop, on_kill)
        thread.join()
    if failures:
        raise failures[0]


def _guarded(work: Work, stop: threading.Event, failures: list[BaseException], mouth: int) -> None:
    try:
        work(stop)
    except BaseException as problem:
        failures.append(problem)
    finally:
        os.write(mouth, ENDED)


def _listen(
    ears: int,
    parent: int | None,
    stop: threading.Event,
    patience_seconds: float,
    on_stop: Callable[[], None],
    on_kill: Callable[[], None],
) -> None:
    sources, deadline = [ears] + ([] if parent is None else [parent]), float("inf")
    while True:
        left = None if deadline == float("inf") else max(0.0, deadline - time.monotonic())
        ready = select.select(sources, [], [], left)[0]
        word = os.read(ears, 1) if ears in ready else b""
        if word == ENDED:
            return
        orphaned = parent in ready and not os.read(parent, 1024) if parent is not None else False
        if stop.is_set() and (word or not ready):
            on_kill()
            os._exit(KILLED if word else STUCK)
        if word or orphaned:
            sources, deadline = [ears], time.monotonic() + patience_seconds
            stop.set()
            on_stop()


@contextmanager
def _told_by_signals() -> Iterator[tuple[int, int]]:
    """A pipe that gets a byte for each signal, at once, whatever the main thread is about to do."""
    ears, mouth = os.pipe()
    os.set_blocking(mouth, False)
    before = signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)  # first: with the handlers alone, one would be lost
    handlers = {number: signal.signal(number, lambda *_: None) for number in SIGNALS}
    try:
        yield ears, mouth
    finally:
        signal.set_wakeup_fd(before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.close(ears)
        os.close(mouth)


def worker_stop_seconds(config: Config) -> float:
    """With itself: to save its work, and on AWS to see its last poll to the end."""
    return config.interrupt_grace_seconds + profile_of(config).worker_stop_seconds + 30.0


def supervisor_stop_seconds(config: Config) -> float:
    """With its workers."""
    return worker_stop_seconds(config) + 10.0


def up_stop_seconds(config: Config) -> float:
    """With its supervisor, which ends what did not stop, and with page and workflow."""
    return 2 * supervisor_stop_seconds(config)
