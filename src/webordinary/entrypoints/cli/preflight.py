"""What `up` looks at before it starts, so that a problem has a sentence and not a traceback."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from webordinary.adapters.local.free_ports import bound, bound_anywhere
from webordinary.app.backends import AWS
from webordinary.config import Config, flag_of, variable_of
from webordinary.entrypoints.cli.exits import CommandFailed, Exit

OLDEST_SQLITE = (3, 37)  # STRICT tables


def require_programs() -> None:
    """Git and a recent SQLite must be there."""
    if shutil.which("git") is None:
        raise CommandFailed("git is not installed", "install it (Debian, Ubuntu: apt install git) and try again")
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise CommandFailed(
            f"this Python has SQLite {sqlite3.sqlite_version}", f"use one with SQLite {oldest} or newer"
        )


def require_writable(data: Path) -> None:
    """Make the data folder and try to write into it."""
    try:
        data.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=data) as trial:
            trial.write(b"webordinary")
    except OSError as problem:
        raise CommandFailed(
            f"the data folder {data} cannot be written ({problem.strerror})",
            "give this user access to it, make room, or name another folder with --data (make up DATA=…)",
        ) from problem


def with_free_ports(config: Config) -> Config:
    """Check that the ports are free; a port 0 becomes the number of a free one. On AWS nobody listens for SMTP."""
    names = ("port", "preview_port", *(() if config.backend == AWS else ("smtp_port",)))
    with ExitStack() as held:  # until all are known, so that no number is given twice
        free = {name: _free(held, config.host, getattr(config, name), name) for name in names}
        return replace(config, **{"smtp_port": 0} | free)


def _free(held: ExitStack, host: str, port: int, name: str) -> int:
    try:
        trial = held.enter_context(bound(host, port) if port else bound_anywhere(host))
    except OSError as problem:
        reason = "is in use" if problem.errno == errno.EADDRINUSE else f"cannot be opened ({problem.strerror})"
        others = f"{flag_of(name)}, {variable_of(name)} or make up {name.upper()}=…"
        raise CommandFailed(
            f"{name} {port} on {host} {reason}",
            f"stop what uses it, or choose another with {others}",
            Exit.IN_USE,
        ) from problem
    number: int = trial.getsockname()[1]
    return number
