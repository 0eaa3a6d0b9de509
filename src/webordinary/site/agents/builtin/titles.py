"""Titles and headings."""

from __future__ import annotations

import re
from re import Match

from webordinary.site.agents.builtin.html import Element, Page, escape, visible_text
from webordinary.site.agents.builtin.outcomes import AlreadySo, Desk, Done, Outcome, Unclear
from webordinary.site.agents.builtin.pages import label, resolve

_SEPARATOR = re.compile(r"(\s+(?:[|·•\u2013\u2014:-]|&[mn]dash;|&middot;)\s+)")
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


def set_title(match: Match[str], desk: Desk) -> Outcome | None:
    """Set a page's title, and its main heading where that said the same."""
    name = resolve(match["page"] or match["of"], desk)
    if isinstance(name, Unclear):
        return name
    new = desk.quotes.literal(match["new"])
    page = desk.draft.page(name)
    title, heading = page.first("title"), page.first("h1")
    if title is None:
        return _set(desk, name, heading, new, "heading") if heading else _no_such(name, "title")
    before = page.source[title.inner_start : title.inner_end]
    segment = _segment(before, page.words(heading)) if heading else None
    after = _with_segment(before, segment, new)
    if heading is not None and (segment is not None or page.words(heading) == visible_text(before)):
        _fill(desk, name, heading, new)  # it stands after the title, so the title's place still holds
        note = ""
    else:
        note = _left_alone(page, heading, new)
    _fill_raw(desk, name, title, after)
    if desk.draft.text(name) == page.source:
        return AlreadySo(f"The title of {label(name)} is “{new}” already.")
    return Done(f"Changed the title of {label(name)} to “{new}”.{note}")


def set_heading(match: Match[str], desk: Desk) -> Outcome | None:
    """Set a page's main heading, or the one that is quoted."""
    name = resolve(match["page"] or match["of"], desk)
    if isinstance(name, Unclear):
        return name
    page, new = desk.draft.page(name), desk.quotes.literal(match["new"])
    if match["old"] is None:
        heading = page.first("h1") or next(iter(page.all(*HEADINGS)), None)
        return _set(desk, name, heading, new, "heading") if heading else _no_such(name, "heading")
    old = desk.quotes.literal(match["old"])
    found = [heading for heading in page.all(*HEADINGS) if page.words(heading).lower() == old.lower()]
    if len(found) == 1:
        return _set(desk, name, found[0], new, f"heading “{old}”")
    return None  # a plain change of text may still find it


def _set(desk: Desk, name: str, element: Element, new: str, what: str) -> Outcome:
    if desk.draft.page(name).words(element) == new:
        return AlreadySo(f"The heading of {label(name)} is “{new}” already.")
    _fill(desk, name, element, new)
    return Done(f"Changed the {what} of {label(name)} to “{new}”.")


def _segment(title: str, heading: str) -> int | None:
    """Which part of `Pots · Amelia` the page's heading repeats."""
    parts = _SEPARATOR.split(title)
    return next((i for i in range(0, len(parts), 2) if heading and visible_text(parts[i]) == heading), None)


def _with_segment(title: str, segment: int | None, new: str) -> str:
    if segment is None:
        return escape(new)
    parts = _SEPARATOR.split(title)
    lead = parts[segment][: len(parts[segment]) - len(parts[segment].lstrip())]
    trail = parts[segment][len(parts[segment].rstrip()) :]
    parts[segment] = lead + escape(new) + trail
    return "".join(parts)


def _left_alone(page: Page, heading: Element | None, new: str) -> str:
    if heading is None or page.words(heading) == new:
        return ""
    return (
        f" The big heading on the page still says “{page.words(heading)}”; "
        "write “set the heading to …” if that should change as well."
    )


def _fill(desk: Desk, name: str, element: Element, new: str) -> None:
    _fill_raw(desk, name, element, escape(new))


def _fill_raw(desk: Desk, name: str, element: Element, new: str) -> None:
    desk.draft.replace(name, element.inner_start, element.inner_end, new)


def _no_such(name: str, what: str) -> Unclear:
    return Unclear(f"{label(name).capitalize()} has no {what} that I could change. What should be changed instead?")
