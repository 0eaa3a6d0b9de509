"""The guard of one jail: lets its program in, looks at what it uses, and ends it when that is too much."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from socket import socket

from webordinary.adapters.local.jail.door import Door, Inmates
from webordinary.adapters.local.jail.limits import JailLimits
from webordinary.adapters.local.jail.usage import (
    disk_is_full,
    family,
    look_at_all_files,
    look_at_files,
    resident_bytes,
    scratch_use,
)

_log = logging.getLogger(__name__)
_EACH_SECONDS = 0.2
_FILES_EACH_SECONDS = 1.0
_SHARE = 0.05
"""Of one core, at most, goes into looking."""
_FIRST_TO_GO = "1000"


class Guard:
    """A thread for as long as the cell exists."""

    def __init__(
        self, door: Door, folders: tuple[Path, ...], limits: JailLimits, serve: Callable[[socket], None]
    ) -> None:
        self._door, self._folders, self._limits, self._serve = door, folders, limits, serve
        self._over, self._asked = threading.Event(), threading.Event()
        self._using = threading.Lock()
        self._inmates: Inmates | None = None
        self.admitted = False
        """Whether the program was let in."""
        self.reached = ""
        """Which limit was reached, in words."""
        self.disk_full = False
        """It was ended as the disk was full, and not by what it wrote itself."""
        self._thread = threading.Thread(target=self._watch, name="jail guard", daemon=True)
        self._thread.start()

    def interrupt(self) -> None:
        """Ask the program to stop; one that was not let in yet never begins."""
        self._asked.set()
        with self._using:
            if self._inmates is not None:
                self._inmates.interrupt()
            elif not self._over.is_set():
                self._door.lock()

    def end(self) -> bool:
        """End all that runs; True when nothing is left of it. Once."""
        self._over.set()
        self._door.lock()
        self._thread.join()
        with self._using:
            self._door.close()
            inmates, self._inmates = self._inmates, None
            if inmates is None:
                return True
            gone = inmates.end()
            inmates.forget()
            return gone

    def _watch(self) -> None:
        try:
            answered = self._door.answer()
        except OSError as problem:  # it died on the threshold
            _log.warning("a jail's program was not let in: %s", problem)
            return
        if answered is None:
            return
        visitor, inmates, listener = answered
        with suppress(OSError):
            Path(f"/proc/{inmates.leader}/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
        if listener is not None:
            self._serve(listener)
        self._inmates = inmates
        with visitor:
            if self._over.is_set() or self._asked.is_set():
                return
            with suppress(OSError):
                self._door.admit(visitor)
        self.admitted = True
        self._look(inmates)

    def _look(self, inmates: Inmates) -> None:
        pause, files_at = _EACH_SECONDS, time.monotonic() + _FILES_EACH_SECONDS
        while not self._over.wait(pause) and not inmates.gone(0):
            began = time.monotonic()
            reached = self._processes(inmates)
            if not reached and disk_is_full(self._folders[0], self._limits):
                pids = family(inmates.init, self._limits.processes)
                reached = look_at_all_files(self._folders, self._limits, pids)
                self.disk_full = not reached
            if not reached and began >= files_at:
                reached = look_at_files(self._folders, self._limits)
                took = time.monotonic() - began
                files_at = began + max(_FILES_EACH_SECONDS, took / _SHARE)
            if reached or self.disk_full:
                self.reached = reached
                inmates.end()
                return
            pause = max(_EACH_SECONDS, min(1.0, (time.monotonic() - began) / _SHARE))

    def _processes(self, inmates: Inmates) -> str:
        most = self._limits.processes
        pids = family(inmates.init, most)
        if len(pids) > most:
            return f"more than {most} processes"
        scratch, files = scratch_use(pids)
        if files > self._limits.files:
            return f"more than {self._limits.files:,} files"
        if resident_bytes(pids) + scratch > self._limits.memory_bytes:
            return f"more than {self._limits.memory_bytes // 1_000_000:,} MB of memory"
        return ""
