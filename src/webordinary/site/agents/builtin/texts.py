"""Change this text to that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from re import Match

from webordinary.site.agents.builtin.outcomes import Desk, Done, Outcome, Unclear
from webordinary.site.agents.builtin.page import Page, Span
from webordinary.site.agents.builtin.pages import label, resolve

_EVERYWHERE = re.compile(
    r"\s+(?:everywhere|on\s+(?:all|every)\s+pages?|(?:on|across)\s+the\s+whole\s+site)\Z", re.IGNORECASE
)
_ON_PAGE = re.compile(r"\s+(?:on|in|at)\s+((?:the\s+|my\s+|our\s+)?[\w\s.-]{1,40}?(?:page|\.html?))\Z", re.IGNORECASE)
_TO = re.compile(r"\s+(?:to|with|by|into)\s+", re.IGNORECASE)
_NOUN = re.compile(
    r"\A(?:the|our|my)\s+(?:(?:text|words?|phrase|sentence|line|name|price|address|number|phone\s+number|e-?mail(?:\s+address)?)\s+)?",
    re.IGNORECASE,
)
_CONTEXT = 40
_LISTED = 6
_MAX_READINGS = 12


def replace_text(match: Match[str], desk: Desk) -> Outcome | None:
    """Replace text that stands in one place, or everywhere when the customer says so."""
    wish, everywhere = _cut(match["wish"], _EVERYWHERE)
    splits = list(islice(_splits(wish, desk), _MAX_READINGS + 1))
    if not splits:
        return None
    if len(splits) > _MAX_READINGS:
        return Unclear("I cannot tell which text is the old one. Please quote both: change “old text” to “new text”.")
    readings = [_reading(old, new, page, desk) for old, new, page in splits]
    clear = [reading for reading in readings if reading.hits and (len(reading.hits) == 1 or everywhere)]
    if clear:
        return _apply(max(clear, key=lambda reading: len(reading.old)), desk)
    several = [reading for reading in readings if reading.hits]
    if several:
        return Unclear(_places(max(several, key=lambda reading: len(reading.old)), desk))
    first = readings[0]
    where = f" on {label(first.pages[0], desk)}" if len(first.pages) == 1 else " on your site"
    return first.question or Unclear(
        f"I did not find the text “{first.old}”{where}. Please copy it from the page exactly as it is there."
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    """One way to read a wish, and where the site holds its old text."""

    old: str
    new: str
    pages: list[str]
    hits: list[tuple[str, Span]]
    question: Unclear | None = None


def _reading(old: str, new: str, page_words: str, desk: Desk) -> _Reading:
    pages = desk.draft.sources()
    if page_words:
        page = resolve(page_words, desk)
        if isinstance(page, Unclear):
            return _Reading(old, new, pages, [], page)
        pages = [page]
    return _Reading(old, new, pages, [(name, span) for name in pages for span in desk.draft.page(name).find(old)])


def _splits(wish: str, desk: Desk) -> Iterator[tuple[str, str, str]]:
    """Every way to read `old to new`, the most literal first; the site decides which one is meant."""
    for to in _TO.finditer(wish):
        left, right = wish[: to.start()], wish[to.end() :]
        if not left.strip() or not right.strip():
            continue
        right, page = _cut(right, _ON_PAGE)
        left, page_before = _cut(left, _ON_PAGE)
        new = re.sub(r"\A(?:say|read)\s+", "", right, flags=re.IGNORECASE)
        bare = _NOUN.sub("", left)
        for old in dict.fromkeys((left, bare)):
            if old.strip():
                yield desk.quotes.literal(old), desk.quotes.literal(new), page or page_before


def _apply(reading: _Reading, desk: Desk) -> Outcome:
    hits, old, new = reading.hits, reading.old, reading.new
    names = list(dict.fromkeys(name for name, _ in hits))
    for name, on_page in groupby(hits, key=lambda hit: hit[0]):
        page = desk.draft.page(name)
        spans = [(span, _cased(page.source[span.start : span.end], old, new)) for _, span in on_page]
        desk.draft.replace(name, *page.reworded(spans))
        if desk.draft.page(name).shape != page.shape:
            return Unclear(f"“{new}” means something special at that place of {label(name, desk)}. Any other words?")
    desk.page = names[0]
    where = label(names[0], desk) if len(names) == 1 else f"{len(names)} pages"
    times = f" in {len(hits)} places" if len(hits) > 1 else ""
    return Done(f"Changed “{old}” to “{new}” on {where}{times}.")


def _cased(found: str, old: str, new: str) -> str:
    """A sentence that began with a capital letter still does, unless the customer wrote it otherwise."""
    return new[:1].upper() + new[1:] if found[:1].isupper() and old[:1].islower() else new


def _places(reading: _Reading, desk: Desk) -> str:
    old, hits = reading.old, reading.hits
    lines = [f"- on {label(name, desk)}: “{_around(desk.draft.page(name), span)}”" for name, span in hits[:_LISTED]]
    if len(hits) > _LISTED:
        lines.append(f"- and {len(hits) - _LISTED} more")
    listing = "\n".join(lines)
    return (
        f"“{old}” stands in {len(hits)} places, so I have changed nothing yet:\n{listing}\n"
        "Please quote a longer piece of the text, name the page (“… on the about page”), or say “everywhere”."
    )


def _around(page: Page, span: Span) -> str:
    text = next(text for text in page.texts if text.start <= span.start < text.end)
    start, end = max(text.start, span.start - _CONTEXT), min(text.end, span.end + _CONTEXT)
    words = " ".join(page.source[start:end].split())
    return f"{'…' if start > text.start else ''}{words}{'…' if end < text.end else ''}"


def _cut(text: str, pattern: re.Pattern[str]) -> tuple[str, str]:
    found = pattern.search(text)
    if found is None:
        return text, ""
    return text[: found.start()], found[1] if pattern.groups else found[0]
