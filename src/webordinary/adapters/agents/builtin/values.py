"""Texts that stand in a file by other rules than the page around them: front matter, script, attributes."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_NAME = re.compile(r"<(/?)([a-zA-Z][^\s/>]*+)")
_ATTRIBUTE = re.compile(
    r"""[\s/]*+(?:(?P<end>>)|(?P<name>=?[^\s/>=]*+)(?:\s*+=\s*+(?P<value>"[^"]*+"|'[^']*+'|(?!["'>])[^\s>]++)?+)?+)"""
)
_RAW = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in ("script", "style")}
_ENDLESS_NUMBER = re.compile(r"&#[0-9]{8,}+;?")


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag, or a comment or declaration, which have no name; offsets into the source."""

    start: int
    end: int
    name: str = ""
    closing: bool = False
    empty: bool = False
    attributes: dict[str, str] = field(default_factory=dict)


def tags_of(source: str) -> Iterator[Tag]:
    """All of them in order; what stands between them is text."""
    position = 0
    while (start := source.find("<", position)) >= 0:
        tag = _tag(source, start)
        position = tag.end if tag else start + 1
        if tag is None:
            continue
        yield tag
        if tag.name in _RAW and not tag.closing and not tag.empty:
            raw = _RAW[tag.name].search(source, tag.end)
            position = raw.start() if raw else len(source)


def unescaped(text: str) -> str:
    """The text with its character references read; a number that no character has is not computed."""
    return html.unescape(_ENDLESS_NUMBER.sub("\ufffd", text))


def _tag(source: str, start: int) -> Tag | None:
    """The tag that begins here; None if this is just a `<` in the text."""
    if source.startswith("<!--", start):
        return Tag(start, _after(source, "-->", start + 2))
    named = _NAME.match(source, start)
    if named is None:
        mark = source[start + 1 : start + 2]
        return Tag(start, _after(source, ">", start)) if mark and mark in "!?/" else None
    if named[1]:
        return Tag(start, _after(source, ">", named.end()), named[2].lower(), closing=True)
    return _opening(source, start, named)


def _opening(source: str, start: int, named: re.Match[str]) -> Tag:
    attributes: dict[str, str] = {}
    for found in _ATTRIBUTE.finditer(source, named.end()):
        if found["end"]:
            empty = found[0].endswith("/>")
            return Tag(start, found.end(), named[2].lower(), empty=empty, attributes=attributes)
        if found["name"]:
            attributes.setdefault(found["name"].lower(), _value(found["value"]))
    return Tag(start, len(source), named[2].lower(), attributes=attributes)


def _value(written: str | None) -> str:
    if not written:
        return ""
    return unescaped(written[1:-1] if written[0] in "\"'" else written)


def _after(source: str, mark: str, start: int) -> int:
    found = source.find(mark, start)
    return found + len(mark) if found >= 0 else len(source)


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


_BLOCK = re.compile(r"\A\ufeff?(?P<fence>---|\+\+\+)[ \t]*\r?\n(?P<body>.*?)^(?P=fence)[ \t]*(?:\r?\n|\Z)", re.S | re.M)
_JSON = re.compile(r"\A\ufeff?\{[ \t]*\r?\n.*?^\}[ \t]*(?:\r?\n|\Z)", re.S | re.M)
_YAML_TITLE = re.compile(r"^title[ \t]*:[ \t]++(?P<value>[^\r\n]*+)(?!\r?\n[ \t]+\S)", re.M)
_TOML_TITLE = re.compile(r"^title[ \t]*=[ \t]*(?P<value>[^\r\n]*)", re.M)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """Where the block ends and the page begins, and the title if it is a simple text."""

    end: int = 0
    title: Value | None = None


def read_front_matter(source: str) -> FrontMatter:
    """The block of a page; YAML between `---`, TOML between `+++`; JSON is stepped over."""
    block = _BLOCK.match(source)
    if block is None:
        json = _JSON.match(source)
        return FrontMatter(json.end() if json else 0)
    yaml = block["fence"] == "---"
    stop = block.end("body") if yaml else _first_table(source, block.start("body"), block.end("body"))
    found = (_YAML_TITLE if yaml else _TOML_TITLE).search(source, block.start("body"), stop)
    if found is None:
        return FrontMatter(block.end())
    read = yaml_value if yaml else toml_value
    return FrontMatter(block.end(), read(found["value"].rstrip(), found.start("value")))


def _first_table(source: str, start: int, end: int) -> int:
    table = re.compile(r"^[ \t]*\[", re.M).search(source, start, end)
    return table.start() if table else end
