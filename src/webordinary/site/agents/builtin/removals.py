"""Removals: only of text that is quoted exactly and stands in one place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from re import Match

from webordinary.site.agents.builtin.outcomes import Desk, Done, Outcome, Unclear
from webordinary.site.agents.builtin.page import Element, Page, Patch, Span
from webordinary.site.agents.builtin.pages import label, resolve

_BLOCKS = ("p", "li", "h2", "h3", "h4", "h5", "h6")
_NAMES = {"paragraph": ("p",), "item": ("li",), "heading": ("h2", "h3", "h4", "h5", "h6"), "": _BLOCKS}


def remove_text(match: Match[str], desk: Desk) -> Outcome | None:
    """Remove a whole paragraph, item or heading where the words are all of it; else just the words."""
    old, what = desk.quotes.literal(match["old"]), (match["what"] or "").split()[-1:]
    pages = desk.draft.sources()
    if match["page"]:
        named = resolve(match["page"], desk)
        if isinstance(named, Unclear):
            return named
        pages = [named]
    kind = what[0].lower() if what and what[0].lower() in _NAMES else ""
    found = [(name, place) for name in pages for place in _places(desk.draft.page(name), old, kind)]
    if not found:
        return Unclear(f"I did not find “{old}” on your site. Please copy it from the page exactly as it is there.")
    if len(found) > 1:
        places = ", ".join(dict.fromkeys(label(name, desk) for name, _ in found[:6]))
        return Unclear(f"“{old}” stands in {len(found)} places ({places}). Please quote more, or name the page.")
    (name, place), page = found[0], desk.draft.page(found[0][0])
    desk.draft.replace(name, _without(page, place) if isinstance(place, Element) else _cut(page, place))
    desk.page = name
    return Done(f"Removed “{old}” from {label(name, desk)}.")


def _places(page: Page, old: str, kind: str) -> Sequence[Element | Span]:
    """The blocks that say this and nothing else; if there are none, where the words stand."""
    wanted = " ".join(old.split())
    blocks = [e for e in page.all(*_NAMES[kind]) if not e.computed and page.words(e) == wanted]
    if blocks or kind:
        return blocks
    return [span for span in page.find(old) if not (span.element and span.element.inside("title", "h1"))]


def _without(page: Page, block: Element) -> Patch:
    """The block and its lines, with one of the empty lines around it."""
    source = page.source
    start = source.rfind("\n", 0, block.start) + 1
    line_end = source.find("\n", block.end)
    end = len(source) if line_end < 0 else line_end + 1
    if source[start : block.start].strip() or source[block.end : end].strip():
        return Patch(block.start, block.end, "")
    empty = re.compile(r"[ \t]*\r?\n").match(source, end)
    before = re.search(r"\n[ \t]*\r?\n\Z", source[max(0, start - 200) : start])
    return Patch(start, empty.end() if empty and (before or start == 0) else end, "")


def _cut(page: Page, span: Span) -> Patch:
    """The words, and the space that would be one too many."""
    source, start, end = page.source, span.start, span.end
    after_end = source[end : end + 1] in (".", ",", "!", "?", "<", "\n", "\r", "")
    if source[start - 1 : start] == " " and (source[end : end + 1] == " " or after_end):
        start -= 1
    elif source[end : end + 1] == " " and source[start - 1 : start] in (">", "\n", ""):
        end += 1
    return Patch(start, end, "")
