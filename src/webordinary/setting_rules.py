"""What the value of a setting may be: each rule reads a raw value, from a file, a variable or a flag."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

MAX_TEXT = 1000
_HOST_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_HOST_NAME = re.compile(rf"{_HOST_LABEL}(\.{_HOST_LABEL})*")
_WEB_ADDRESS = re.compile(r"https?://[^/\s]+")
_MAILBOX = re.compile(r"[a-z0-9.!#$%&'*/=?^_`{|}~-]{1,64}")
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True)
class SettingRule:
    """`read` returns the clean value or raises ValueError; `allowed` completes "must be …"."""

    read: Callable[[object], Any]
    allowed: str


def number(low: float, high: float, *, whole: bool = True) -> SettingRule:
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

    return SettingRule(read, f"a {'whole ' if whole else ''}number from {low:,} to {high:,}")


def flag() -> SettingRule:
    """A boolean: yes or no."""

    def read(raw: object) -> bool:
        if str(raw).lower() not in _TRUTH:
            raise ValueError(raw)
        return _TRUTH[str(raw).lower()]

    return SettingRule(read, "true or false")


def text() -> SettingRule:
    """One line of text, empty or not."""

    def read(raw: object) -> str:
        if not isinstance(raw, str) or len(raw) > MAX_TEXT or not raw.isprintable():
            raise ValueError(raw)
        return raw

    return SettingRule(read, f"one line of at most {MAX_TEXT} characters")


def colour() -> SettingRule:
    """A colour as six hexadecimal digits."""

    def read(raw: object) -> str:
        if not re.fullmatch(r"#[0-9a-fA-F]{6}", str(raw)):
            raise ValueError(raw)
        return str(raw).lower()

    return SettingRule(read, "a colour such as #9a4a2f")


def choice(*names: str) -> SettingRule:
    """One of a few words."""

    def read(raw: object) -> str:
        if raw not in names:
            raise ValueError(raw)
        return str(raw)

    return SettingRule(read, f"one of {', '.join(names)}")


def folder() -> SettingRule:
    """A folder, made absolute so that a later change of directory cannot move it."""

    def read(raw: object) -> Path:
        if not isinstance(raw, str | Path) or not str(raw) or "\0" in str(raw):
            raise ValueError(raw)
        return Path(os.path.normpath(Path(raw).expanduser().absolute()))

    return SettingRule(read, "the path of a folder")


def file_path() -> SettingRule:
    """A file, made absolute as `folder` is; or none."""

    def read(raw: object) -> str:
        if not isinstance(raw, str) or "\0" in raw or len(raw) > MAX_TEXT:
            raise ValueError(raw)
        return str(Path(raw).expanduser().absolute()) if raw else ""

    return SettingRule(read, "the path of a file, or empty")


def listen_address() -> SettingRule:
    """An IP address of this machine; 0.0.0.0 and :: stand for all of them."""

    def read(raw: object) -> str:
        return str(ip_address(str(raw)))

    return SettingRule(read, "an IP address of this machine, such as 127.0.0.1 or 0.0.0.0")


def host_name(*, empty: bool = False) -> SettingRule:
    """A host or domain name."""

    def read(raw: object) -> str:
        name = str(raw).lower()
        if not (_HOST_NAME.fullmatch(name) and len(name) <= 253) and not (empty and not name):
            raise ValueError(raw)
        return name

    return SettingRule(read, "a host name such as example.com" + (", or empty" if empty else ""))


def web_address() -> SettingRule:
    """Where a service answers, or nowhere."""

    def read(raw: object) -> str:
        if raw != "" and not (_WEB_ADDRESS.match(str(raw)) and len(str(raw)) <= MAX_TEXT and str(raw).isprintable()):
            raise ValueError(raw)
        return str(raw)

    return SettingRule(read, "an address such as http://127.0.0.1:4566, or empty")


def address() -> SettingRule:
    """A mail address without a plus: what follows a plus is ours to use."""

    def read(raw: object) -> str:
        local, _, domain = str(raw).lower().rpartition("@")
        if not _MAILBOX.fullmatch(local) or not _HOST_NAME.fullmatch(domain):
            raise ValueError(raw)
        return f"{local}@{domain}"

    return SettingRule(read, "a mail address such as edit@example.com")


def correspondent() -> SettingRule:
    """A mail address outside of this system, or none."""

    def read(raw: object) -> str:
        local, _, domain = str(raw).rpartition("@")
        known = _MAILBOX.fullmatch(local.lower().replace("+", "-")) and _HOST_NAME.fullmatch(domain.lower())
        if raw != "" and not known:
            raise ValueError(raw)
        return f"{local}@{domain.lower()}" if raw else ""

    return SettingRule(read, "a mail address such as ops@example.com, or empty")


def words(most: int, each: Callable[[str], object] = str, of: str = "words") -> SettingRule:
    """A list in the file; in a variable or flag, words separated by blanks and quoted as in a shell."""

    def read(raw: object) -> tuple[str, ...]:
        items = shlex.split(raw) if isinstance(raw, str) else raw
        if not isinstance(items, list | tuple) or len(items) > most:
            raise ValueError(raw)
        return tuple(str(each(item)) for item in items if isinstance(item, str) or _refuse(item))

    return SettingRule(read, f"a list of at most {most} {of}")


def absolute_path(raw: str) -> Path:
    """For lists of files and folders, which must not depend on where a command was started."""
    path = Path(raw).expanduser()
    if not path.is_absolute() or "\0" in raw:
        raise ValueError(raw)
    return path


def server_address(raw: str) -> str:
    """`127.0.0.1`, `127.0.0.1:5353`, `::1` or `[::1]:5353`."""
    host, port = raw, ""
    if raw.startswith("[") or raw.count(":") == 1:
        host, _, port = raw.rpartition(":")
        number(1, 65535).read(port)
    ip_address(host.strip("[]"))
    return raw


def _refuse(item: object) -> bool:
    raise ValueError(item)
