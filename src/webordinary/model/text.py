"""Text from outside, as every store and page can hold it; made so where it comes in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u2028\u2029]")


def clean(text: str) -> str:
    """Without control characters; what is no Unicode text, such as a lone surrogate, becomes a question mark."""
    return _CONTROLS.sub("", text).encode("utf-8", "replace").decode("utf-8")


def is_text(name: str) -> bool:
    """Whether a name, as the file system or git gave it, is UTF-8."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


_PERSON = re.compile(r"([^\s@<>()\[\]{}\"',;:=|\\])[^\s@<>()\[\]{}\",;:=|\\]*@(?=[^\s@<>()\"',;:]{2,})")
_HOST = re.compile(r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})(?![\w.:]*\w)")


def masked(value: Any) -> Any:  # noqa: ANN401 - JSON
    """A JSON value for a log that others read: `s…@example.com`, `192.0.2.…` instead of people's addresses."""
    if isinstance(value, str):
        return _HOST.sub(_masked_host, _PERSON.sub(r"\1…@", value)) if "@" in value or _HOST.search(value) else value
    if isinstance(value, Mapping):
        return {masked(key): masked(part) for key, part in value.items()}
    return [masked(part) for part in value] if isinstance(value, (list, tuple)) else value


_SECRET = re.compile(
    r"(?P<head>\b(?:Bearer|Basic)\s+|://[^/\s:@]*:(?=[^\s/]*@)"
    r"|\b(?:[A-Za-z_]*(?:key|token|secret|password))\s*[=:]\s*[\"']?)[^\s\"'@,;]{4,}"
    r"|\b(?:sk-|gh[opsu]_|github_pat_|glpat-|xox[abp]-|AKIA|ASIA)[\w-]{8,}",
    re.IGNORECASE,
)


def without_secrets(text: str) -> str:
    """Text of an agent or a program for people to read: what looks like a key, token or password becomes dots."""
    return _SECRET.sub(lambda found: f"{found['head'] or ''}…", text)


def _masked_host(found: re.Match[str]) -> str:
    """Network without the host: three numbers of IPv4, two groups of IPv6. Other texts, such as times, stay."""
    try:
        ip = ip_address(found[0])
    except ValueError:
        return found[0]
    return ".".join(found[0].split(".")[:3]) + ".…" if ip.version == 4 else ":".join(ip.exploded.split(":")[:2]) + ":…"
