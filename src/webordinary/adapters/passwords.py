"""Passwords and tokens: the value of a setting, the content of a file, or the output of a program.

Each is a function that is called at every login, so that a rotated password needs no restart.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from webordinary.model.errors import Transient, reason_of

PROGRAM_SECONDS = 30.0
MAX_BYTES = 16 * 1024  # tokens of Microsoft 365 have about 2,500 bytes
Password = Callable[[], str]


def password_source(value: str = "", file: str = "", program: Sequence[str] = ()) -> Password:
    """The first of them that is given; raises Transient when called and nothing usable comes of it."""
    if program:
        return lambda: _printed_by(program)
    if file:
        return lambda: _content_of(Path(file))
    return lambda: value


def _content_of(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return _checked(opened.read(MAX_BYTES + 1), str(file))
    except OSError as problem:
        raise Transient(f"{file} cannot be read ({reason_of(problem)}): give this user access to it") from problem


def _printed_by(program: Sequence[str]) -> str:
    """What the program prints. Its complaints are not repeated: they may hold the secret."""
    name = program[0]
    try:
        done = subprocess.run(
            program, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROGRAM_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as problem:
        raise Transient(f"{name} printed no token within {PROGRAM_SECONDS:.0f} s: run it by hand") from problem
    except OSError as problem:
        raise Transient(f"{name} cannot be run ({reason_of(problem)}): correct the setting") from problem
    if done.returncode != 0:
        raise Transient(f"{name} ended with exit code {done.returncode} and no token: run it by hand")
    return _checked(done.stdout, name)


def _checked(data: bytes, source: str) -> str:
    """One line of printable text without its line end."""
    text = data.decode("utf-8", "replace").strip("\r\n")
    if not text or len(data) > MAX_BYTES or not text.isprintable():
        raise Transient(f"{source} must hold one line with the password or token, and nothing else")
    return text
