"""Texts that stand in a file by other rules than the page around them: front matter, script, attributes."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from webordinary.site.agents.builtin.tags import unescaped

_PLAIN_YAML = re.compile(r"[^\W\d_](?:(?!: | #|:$).)*", re.DOTALL)
_YAML_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))


@dataclass(frozen=True, slots=True)
class Value:
    """One such text with its quotes, and how it is written with other words."""

    start: int
    end: int
    words: str
    spell: Callable[[str], str]
    quotes: int = 1
    literal: bool = True

    @property
    def inner_start(self) -> int:
        """Where its words begin."""
        return self.start + self.quotes

    @property
    def inner_end(self) -> int:
        """Where its words end."""
        return self.end - self.quotes


def yaml_value(raw: str, start: int) -> Value | None:
    """The text of a YAML line after its key; None for what is more than one plain or quoted text."""
    if raw[:1] == "'":
        quoted = re.match(r"'((?:[^']|'')*)'\s*(?:#.*)?\Z", raw)
        return quoted and _quoted(quoted, start, quoted[1].replace("''", "'"), _single_yaml)
    if raw[:1] == '"':
        return _json_like(raw, start)
    plain = re.split(r"(?<!\s)\s++#", raw, maxsplit=1)[0].rstrip()
    if not plain or plain[0] in "|>&*!%@`[]{},#?" or ": " in plain or plain.endswith(":"):
        return None
    return Value(start, start + len(plain), plain, _plain_yaml, quotes=0)


def toml_value(raw: str, start: int) -> Value | None:
    """The text of a TOML line after its key."""
    if raw[:3] in ("'''", '"""'):
        return None
    quoted = re.match(r"'([^']*)'\s*(?:#.*)?\Z", raw)
    return _quoted(quoted, start, quoted[1], _single_toml) if quoted else _json_like(raw, start)


def script_value(raw: str, start: int) -> Value | None:
    """A string of JavaScript without escapes and expressions."""
    quoted = re.match(r"(?P<quote>[\"'`])(?P<words>(?:(?!(?P=quote)|\\|\$\{).)*)(?P=quote)", raw, re.DOTALL)
    if quoted is None:
        return None
    mark = quoted["quote"]
    return Value(start, start + len(quoted[0]), quoted["words"], lambda words: _script(words, mark))


def attribute_value(raw: str, start: int) -> Value | None:
    """The quoted value of an HTML attribute."""
    quoted = re.fullmatch(r"\"([^\"]*)\"|'([^']*)'", raw, re.DOTALL)
    if quoted is None:
        return None
    inner, mark = raw[1:-1], raw[0]
    return Value(
        start,
        start + len(raw),
        unescaped(inner),
        lambda words: mark + html.escape(words) + mark,
        literal=html.escape(inner) == inner,
    )


def _json_like(raw: str, start: int) -> Value | None:
    quoted = re.match(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?\Z', raw)
    if quoted is None:
        return None
    try:
        words = json.loads(f'"{quoted[1]}"')
    except ValueError:
        return None  # an escape of YAML or TOML that is not one of JSON: left alone
    return _quoted(quoted, start, words, _double)


def _quoted(match: re.Match[str], start: int, words: str, spell: Callable[[str], str]) -> Value:
    end = start + match.end(1) + 1
    return Value(start, end, words, spell, literal=match[1] == words)


def _tame(words: str) -> str:
    return "".join(letter for letter in words if unicodedata.category(letter) != "Cc")


def _double(words: str) -> str:
    return json.dumps(_tame(words), ensure_ascii=False)


def _single_yaml(words: str) -> str:
    return "'" + _tame(words).replace("'", "''") + "'"


def _single_toml(words: str) -> str:
    return _double(words) if "'" in words else f"'{_tame(words)}'"


def _plain_yaml(words: str) -> str:
    words = _tame(words)
    safe = _PLAIN_YAML.fullmatch(words) and words.lower() not in _YAML_WORDS and words == words.strip()
    return words if safe else _double(words)


def _script(words: str, mark: str) -> str:
    return mark + re.sub(rf"[\\{mark}]|\$(?=\{{)", lambda found: "\\" + found[0], _tame(words)) + mark


def yaml_text(words: str) -> str:
    """A text that may stand as a key or a value of YAML."""
    return _plain_yaml(words)
