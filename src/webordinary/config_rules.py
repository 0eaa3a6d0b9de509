"""What a setting may be: each rule reads a raw value and can say what is allowed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

_MAX_TEXT = 1000
_HOST_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_HOST_NAME = re.compile(rf"{_HOST_LABEL}(\.{_HOST_LABEL})*")
_WEB_ADDRESS = re.compile(r"https?://[^/\s]+")
_MAILBOX = re.compile(r"[a-z0-9.!#$%&'*/=?^_`{|}~-]{1,64}")
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True)
class Rule:
    """`read` returns the clean value or raises ValueError; `allowed` completes "must be …"."""

    read: Callable[[object], Any]
    allowed: str


def number(low: float, high: float, *, whole: bool = True) -> Rule:
    """A number within bounds, both included."""

    def read(raw: object) -> float:
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise ValueError(raw)
        if not low <= float(raw) <= high:
            raise ValueError(raw)
        value = int(raw) if whole else float(raw)
        if value != float(raw):
            raise ValueError(raw)
        return value

    return Rule(read, f"a {'whole ' if whole else ''}number from {low:,} to {high:,}")


def flag() -> Rule:
    """Yes or no."""

    def read(raw: object) -> bool:
        if str(raw).lower() not in _TRUTH:
            raise ValueError(raw)
        return _TRUTH[str(raw).lower()]

    return Rule(read, "true or false")


def text() -> Rule:
    """One line of text, empty or not."""

    def read(raw: object) -> str:
        if not isinstance(raw, str) or len(raw) > _MAX_TEXT or not raw.isprintable():
            raise ValueError(raw)
        return raw

    return Rule(read, f"one line of at most {_MAX_TEXT} characters")


def choice(*names: str) -> Rule:
    """One of a few words."""

    def read(raw: object) -> str:
        if raw not in names:
            raise ValueError(raw)
        return str(raw)

    return Rule(read, f"one of {', '.join(names)}")


def folder() -> Rule:
    """A folder, made absolute so that a later change of directory cannot move it."""

    def read(raw: object) -> Path:
        if not isinstance(raw, str | Path) or not str(raw) or "\0" in str(raw):
            raise ValueError(raw)
        return Path(raw).expanduser().absolute()

    return Rule(read, "the path of a folder")


def loopback() -> Rule:
    """An address of this machine itself: the page has no login."""

    def read(raw: object) -> str:
        if not ip_address(str(raw)).is_loopback:
            raise ValueError(raw)
        return str(raw)

    return Rule(read, "an address of this machine itself, 127.0.0.1 or ::1")


def host_name(*, empty: bool = False) -> Rule:
    """A host or domain name."""

    def read(raw: object) -> str:
        name = str(raw).lower()
        if not (_HOST_NAME.fullmatch(name) and len(name) <= 253) and not (empty and not name):
            raise ValueError(raw)
        return name

    return Rule(read, "a host name such as example.com" + (", or empty" if empty else ""))


def web_address() -> Rule:
    """Where a service answers, or nowhere."""

    def read(raw: object) -> str:
        if raw != "" and not (_WEB_ADDRESS.match(str(raw)) and len(str(raw)) <= _MAX_TEXT and str(raw).isprintable()):
            raise ValueError(raw)
        return str(raw)

    return Rule(read, "an address such as http://127.0.0.1:4566, or empty")


def address() -> Rule:
    """A mail address without a plus: what follows a plus is ours to use."""

    def read(raw: object) -> str:
        local, _, domain = str(raw).lower().rpartition("@")
        if not _MAILBOX.fullmatch(local) or not _HOST_NAME.fullmatch(domain):
            raise ValueError(raw)
        return f"{local}@{domain}"

    return Rule(read, "a mail address such as edit@example.com")


def correspondent() -> Rule:
    """Somebody else's mail address, or none."""

    def read(raw: object) -> str:
        local, _, domain = str(raw).rpartition("@")
        known = _MAILBOX.fullmatch(local.lower().replace("+", "-")) and _HOST_NAME.fullmatch(domain.lower())
        if raw != "" and not known:
            raise ValueError(raw)
        return f"{local}@{domain.lower()}" if raw else ""

    return Rule(read, "a mail address such as ops@example.com, or empty")


def words(most: int, each: Callable[[str], object] = str, of: str = "words") -> Rule:
    """A list in the file; in a variable or flag, words separated by blanks and quoted as in a shell."""

    def read(raw: object) -> tuple[str, ...]:
        items = shlex.split(raw) if isinstance(raw, str) else raw
        if not isinstance(items, list | tuple) or len(items) > most:
            raise ValueError(raw)
        return tuple(str(each(item)) for item in items if isinstance(item, str) or _refuse(item))

    return Rule(read, f"a list of at most {most} {of}")


def absolute_path(raw: str) -> Path:
    """For lists of files and folders, which must not depend on where a command was started."""
    path = Path(raw).expanduser()
    if not path.is_absolute() or "\0" in raw:
        raise ValueError(raw)
    return path


def _refuse(item: object) -> bool:
    raise ValueError(item)
