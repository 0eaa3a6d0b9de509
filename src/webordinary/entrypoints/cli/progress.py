"""Progress on stderr for what takes longer than a second; silent for what does not."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

QUIET_SECONDS = 1.0
LINE_SECONDS = 5.0
Report = Callable[[str], None]


@contextmanager
def progress(title: str, out: TextIO | None = None, now: Callable[[], float] = time.monotonic) -> Iterator[Report]:
    """Give a function to report with: one line rewritten on a terminal, a line now and then elsewhere."""
    out = out or sys.stderr
    line = _Line(title, out, out.isatty(), now)
    try:
        yield line.report
    finally:
        line.close()


class _Line:
    def __init__(self, title: str, out: TextIO, rewrite: bool, now: Callable[[], float]) -> None:
        self._title, self._out, self._rewrite, self._now = title, out, rewrite, now
        self._next = now() + QUIET_SECONDS
        self._shown = 0

    def report(self, text: str) -> None:
        now = self._now()
        if now < self._next:
            return
        self._next = now + (0.1 if self._rewrite else LINE_SECONDS)
        self._print(f"{self._title}: {text}")

    def _print(self, text: str) -> None:
        if self._rewrite:
            self._out.write("\r" + text[:100].ljust(self._shown))
            self._shown = len(text[:100])
        else:
            self._out.write(text + "\n")
        self._out.flush()

    def close(self) -> None:
        if self._rewrite and self._shown:
            self._out.write("\r" + " " * self._shown + "\r")
            self._out.flush()
