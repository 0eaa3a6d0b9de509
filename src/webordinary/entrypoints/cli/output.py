"""Printing: aligned tables for people, one JSON value for scripts. And the exit codes of docs/operations.md."""

from __future__ import annotations

import json
import logging
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from typing import TextIO

from webordinary.entrypoints.dashboard.text import told
from webordinary.model.checks import CheckRun
from webordinary.model.errors import WebOrdinaryError
from webordinary.model.events import Event
from webordinary.model.snapshot import TimelineEntry, with_names


class Exit(IntEnum):
    """What a script may rely on."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_RUNNING = 3
    IN_USE = 4
    KILLED = 130


class CommandFailed(WebOrdinaryError):
    """What went wrong and what to do about it."""

    def __init__(self, what: str, todo: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(f"{what}; {todo}")
        self.what, self.todo, self.code = what, todo, code


def print_json(value: object) -> None:
    """One JSON value on one line, so that `logs --follow --json` can be read line by line."""
    print(json.dumps(value, default=_plain, ensure_ascii=False), flush=True)


class JsonLines(logging.Formatter):
    """One JSON object for each line of the log."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, logger and message; the traceback if there is one."""
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def log_as_json() -> None:
    """Write the log of this process as JSON from now on."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(JsonLines())


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns as wide as their widest cell; a word instead when there are no rows."""
    if not rows:
        return "  none"
    cells = [[clean(str(cell)) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(f"  {line}".rstrip() for line in lines)


def clean(text: str) -> str:
    """Text from a mail must not move the cursor or colour the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def line_of_check(look: CheckRun) -> str:
    """A check as people read it."""
    found = look.finding
    todo = f" — {found.todo}" if found.todo else ""
    return clean(f"{found.verdict:<4}  {found.what}{todo}")


def clock(at: datetime) -> str:
    """A point in time as the operator's watch shows it."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    return str(value)


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


SHORT_ID = 12


def entry_of(seq: int, at: datetime, event: Event) -> TimelineEntry:
    """An event as the page's timeline has it."""
    key = str(event.key) if event.key else None
    return TimelineEntry(seq, at, event.kind, event.email_id, key, event.worker, event.data)


def line_of(entry: TimelineEntry) -> str:
    """When, what, and its small values."""
    words, details = told(entry)
    return clean(f"{clock(entry.at)}  {words}{f' ({details})' if details else ''}")


def line_for(seq: int, at: datetime, event: Event, worker_names: Mapping[str, str]) -> str:
    """The same of an event of any mail, with the mail that it belongs to."""
    mail = f"  mail {event.email_id[:SHORT_ID]}" if event.email_id else ""
    return line_of(with_names(entry_of(seq, at, event), worker_names)) + mail


def confirm(question: str, kept: str, todo: str, about: str = "") -> None:
    """Ask before something is removed; raises CommandFailed (`kept`; `todo`) for any answer but yes."""
    if not sys.stdin.isatty():
        raise CommandFailed("this terminal cannot ask", "say --yes if you mean it", Exit.USAGE)
    if about:
        print(about)
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise CommandFailed(kept, todo)


def say(line: str) -> None:
    """A line for the person who runs the command, beside its result."""
    print(f"webordinary: {line}", file=sys.stderr, flush=True)


def find_program(name: str, todo: str) -> str:
    """The path of a program; raises CommandFailed."""
    if found := shutil.which(name):
        return found
    raise CommandFailed(f"{name} is not installed", todo)


def run_program(command: Sequence[str], folder: Path, env: Mapping[str, str], given: str | None = None) -> None:
    """Run it where its words are seen; `given` is read by it from its standard input."""
    done = subprocess.run(command, cwd=folder, env=env, input=given, text=True, check=False)
    if done.returncode:
        raise CommandFailed(
            f"`{shlex.join(command)}` ended with code {done.returncode}", "its words stand above; mend that, try again"
        )
