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
    stop_seconds: float,
    parent: int | None = None,
    on_stop: Callable[[], None] = lambda: None,
    on_kill: Callable[[], None] = lambda: None,
) -> None:
    """Run `work` in a thread of its own and set its event on SIGINT, SIGTERM, SIGHUP or end of `parent`.

    The main thread only listens, because a handler that sets the event could meet the lock it needs. A second
    signal, or `stop_seconds` that run out, ends this process at once; what matters is on disk at any instant.
    """
    with _signal_pipe() as (read_fd, write_fd):
        stop = threading.Event()
        failures: list[BaseException] = []
        thread = threading.Thread(target=_guarded, args=(work, stop, failures, write_fd), name="work", daemon=True)
        thread.start()
        _listen(read_fd, parent, stop, stop_seconds, on_stop, on_kill)
        thread.join()
    if failures:
        raise failures[0]


def _guarded(work: Work, stop: threading.Event, failures: list[BaseException], write_fd: int) -> None:
    try:
        work(stop)
    except BaseException as problem:
        failures.append(problem)
    finally:
        os.write(write_fd, ENDED)


def _listen(
    read_fd: int,
    parent: int | None,
    stop: threading.Event,
    stop_seconds: float,
    on_stop: Callable[[], None],
    on_kill: Callable[[], None],
) -> None:
    sources, deadline = [read_fd] + ([] if parent is None else [parent]), float("inf")
    while True:
        left = None if deadline == float("inf") else max(0.0, deadline - time.monotonic())
        ready = select.select(sources, [], [], left)[0]
        word = os.read(read_fd, 1) if read_fd in ready else b""
        if word == ENDED:
            return
        orphaned = parent in ready and not os.read(parent, 1024) if parent is not None else False
        if stop.is_set() and (word or not ready):
            on_kill()
            os._exit(KILLED if word else STUCK)
        if word or orphaned:
            sources, deadline = [read_fd], time.monotonic() + stop_seconds
            stop.set()
            on_stop()


@contextmanager
def _signal_pipe() -> Iterator[tuple[int, int]]:
    """A pipe that gets a byte for each signal, at once, whatever the main thread is about to do."""
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    before = signal.set_wakeup_fd(
        write_fd, warn_on_full_buffer=False
    )  # first: with the handlers alone, one would be lost
    handlers = {number: signal.signal(number, lambda *_: None) for number in SIGNALS}
    try:
        yield read_fd, write_fd
    finally:
        signal.set_wakeup_fd(before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.close(read_fd)
        os.close(write_fd)


def worker_stop_seconds(config: Config) -> float:
    """With itself: to save its work, and on AWS to see its last poll to the end."""
    return config.interrupt_grace_seconds + profile_of(config).worker_stop_seconds + 30.0


def supervisor_stop_seconds(config: Config) -> float:
    """The time that a supervisor needs to stop, with its workers."""
    return worker_stop_seconds(config) + 10.0


def up_stop_seconds(config: Config) -> float:
    """With its supervisor, which ends what did not stop, and with page and workflow."""
    return 2 * supervisor_stop_seconds(config)
