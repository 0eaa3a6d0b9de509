"""Looks at this machine: room, programs, ports, the mail server that replies leave through."""

from __future__ import annotations

import shutil
import smtplib
import socket
import sqlite3
import ssl
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from webordinary.model.checks import CheckResult, broken, doubtful, good
from webordinary.model.errors import Transient, reason_of

ENOUGH_BYTES, LEAST_BYTES = 2_000_000_000, 200_000_000
OLDEST_GIT = (2, 36)
_PROGRAM_SECONDS = 10.0
_RELAY_SECONDS = 10.0


def look_at_folder(data: Path) -> CheckResult:
    """Can we write where everything is kept, and is there room?"""
    if not data.exists():
        return broken(f"{data} is not there yet", "`webordinary up` makes it; or name another: --data")
    try:
        with tempfile.TemporaryFile(dir=data) as trial:
            trial.write(b"webordinary")
    except OSError as problem:
        return broken(
            f"{data} cannot be written ({problem.strerror})", "give this user access, or name another: --data"
        )
    free = shutil.disk_usage(data).free
    words = f"{data} can be written, {free / 1e9:,.1f} GB are free"
    if free < LEAST_BYTES:
        return broken(words, "make room: new mail is refused when the disk is full")
    if data.stat().st_mode & 0o077:
        return doubtful(f"{words}, but other users of this machine may look into it", f"chmod 700 {data}")
    return doubtful(words, "make room soon") if free < ENOUGH_BYTES else good(words)


def look_at_database(file: Path) -> CheckResult:
    """Is the database whole?"""
    if not file.is_file():
        return doubtful(f"{file.parent} holds no data yet", "start it once with `webordinary up`")
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            verdict = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as problem:
        verdict = str(problem)
    if verdict != "ok":
        return broken(f"{file} is damaged: {verdict}", "restore the last good backup with `webordinary restore`")
    return good(f"{file} is whole")


def look_at_git() -> CheckResult:
    """Is git there, and new enough?"""
    try:
        said = subprocess.run(
            ["git", "--version"], capture_output=True, text=True, timeout=_PROGRAM_SECONDS, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError) as problem:
        return broken(f"git does not run ({reason_of(problem)})", "install it (Debian, Ubuntu: apt install git)")
    numbers = tuple(int(part) for part in said.split()[-1].split(".")[:2] if part.isdecimal())
    if numbers < OLDEST_GIT:
        return doubtful(said, f"use git {'.'.join(map(str, OLDEST_GIT))} or newer")
    return good(said)


def look_at_port(host: str, port: int, name: str) -> CheckResult:
    """Could we listen there?"""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except OSError as problem:
        flag = "--" + name.replace("_", "-")
        return broken(f"{name} {port} on {host}: {problem.strerror}", f"stop what uses it, or choose another: {flag}")
    return good(f"{name} {port} is free")


def look_at_listener(host: str, port: int, name: str) -> CheckResult:
    """Does the running system answer there?"""
    try:
        socket.create_connection((host, port), timeout=_RELAY_SECONDS).close()
    except OSError as problem:
        return broken(f"{name} does not answer at {host}:{port} ({reason_of(problem)})", "restart `webordinary up`")
    return good(f"{name} {host}:{port} answers")


def look_at_relay(host: str, port: int, user: str, password: Callable[[], str], *, starttls: bool) -> CheckResult:
    """Does the mail server for replies let us in?"""
    try:
        with smtplib.SMTP(host, port, timeout=_RELAY_SECONDS) as relay:
            if starttls:
                relay.starttls(context=ssl.create_default_context())
            if user:
                relay.login(user, password())
            relay.noop()
    except (OSError, smtplib.SMTPException) as problem:
        todo = "check relay_host, relay_port and the login"
        return broken(f"{host}:{port} does not take our mail ({reason_of(problem)})", todo)
    except Transient as problem:
        return broken(str(problem), "correct relay_password_file")
    return good(f"replies leave through {host}:{port}")
