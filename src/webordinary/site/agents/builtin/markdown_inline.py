"""What a visitor reads in a line of Markdown, and where."""

from __future__ import annotations

import re

from webordinary.site.agents.builtin.page import HIDDEN, Element, Span
from webordinary.site.agents.builtin.tags import unescaped

IMAGE = re.compile(
    r"!\[(?P<alt>(?:[^\[\]\\]|\\.){0,500})\]\([ ]?(?P<src><[^<>\n]{0,500}>|[^\s()]{0,500}+)(?P<rest>[^()\n]{0,500})\)"
)
_MARKUP = re.compile(
    rf"{re.sub('[?]P<[a-z]+>', '?:', IMAGE.pattern)}"
    r"|(?<!\\)\]\((?:(?!\]\(|\n[ \t]*\r?\n)[^)]){0,500}\)|(?<!\\)\]\[[^\]\n]{0,500}\]|(?<!\\)[\[\]]"
    r"|(?<!\\)[*~|]+|(?<![\w\\])_++(?=\S)|(?:(?<=[^\s\\_])|(?<=\\_))_++(?!\w)"
    r"|</?[A-Za-z][^<>]*>|<[a-z][a-z0-9+.-]*:[^<>\s]*>"
    rf"|{HIDDEN}+|(?<!\\)\{{[^{{}}\n]*\}}"
    r"|^[ \t]*(?:>[ \t]?)+|(?<![ ])[ ]{2,}+\r?\n|\\\r?\n",
    re.MULTILINE,
)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_SET_ASIDE = 0xF0000  # where an escaped mark waits, as a private character, until the others are read
_CODE = re.compile(r"(?<!`)(`++)(.{1,500}?)(?<!`)\1(?!`)", re.DOTALL)


def texts_of(readable: str, start: int, end: int, element: Element) -> list[Span]:
    """The stretches of text between the marks of Markdown."""
    spans, position = [], start
    for mark in _MARKUP.finditer(readable, start, end):
        spans.append(Span(position, mark.start(), element))
        position = mark.end()
    spans.append(Span(position, end, element))
    return [span for span in spans if span.start < span.end and readable[span.start : span.end].strip()]


def read_inline(fragment: str) -> str:
    """A fragment without its marks."""
    text = _ESCAPED.sub(lambda mark: chr(_SET_ASIDE + ord(mark[1])), fragment)
    text = _CODE.sub(lambda code: code[2], text)
    text = unescaped(_MARKUP.sub("", text))
    return " ".join(re.sub("[\U000f0021-\U000f007e]", lambda mark: chr(ord(mark[0]) - _SET_ASIDE), text).split())


def images_of(readable: str, start: int, end: int, parent: Element) -> list[Element]:
    """The images; the inner part of each is its address."""
    return [
        Element(
            "img",
            {"src": image["src"].strip("<>"), "alt": read_inline(image["alt"])},
            image.start(),
            image.start("src"),
            parent,
            image.end("src"),
            image.end(),
        )
        for image in IMAGE.finditer(readable, start, end)
    ]
