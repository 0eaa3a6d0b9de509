"""Titles and headings."""

from __future__ import annotations

import re
from re import Match

from webordinary.site.agents.builtin.astro import is_title
from webordinary.site.agents.builtin.outcomes import AlreadySo, Desk, Done, Outcome, Unclear
from webordinary.site.agents.builtin.page import Element, Page, Patch
from webordinary.site.agents.builtin.pages import label, resolve

_SEPARATOR = re.compile(r"((?<!\s)\s++(?:[|·•\u2013\u2014:-]|&[mn]dash;|&middot;)\s++)")
_LONGEST_TITLE = 1_000  # a longer one is not taken apart
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


def set_title(match: Match[str], desk: Desk) -> Outcome | None:
    """Set a page's title, and its main heading where that said the same."""
    name = resolve(match["page"] or match["of"], desk)
    if isinstance(name, Unclear):
        return name
    new = desk.quotes.literal(match["new"])
    page = desk.draft.page(name)
    title, heading = page.title, page.first("h1")
    if title is None:
        return _set(desk, name, heading, new, "heading") if heading else _no_such(desk, name, "title")
    if title.computed:
        return _filled_in(desk, name, "title")
    says = page.words(heading) if heading and not heading.computed else ""
    segment = _segment(page, title, says)
    patches, note = [retitled(page, title, segment, new)], ""
    if heading is not None and says and (segment is not None or says == page.words(title)):
        patches.append(page.filled(heading, new))
    else:
        note = _left_alone(page, heading, new)
    desk.draft.replace(name, *patches)
    if desk.draft.text(name) == page.source:
        return AlreadySo(f"The title of {label(name, desk)} is “{new}” already.")
    return Done(f"Changed the title of {label(name, desk)} to “{new}”.{note}")


def set_heading(match: Match[str], desk: Desk) -> Outcome | None:
    """Set a page's main heading, or the one that is quoted."""
    name = resolve(match["page"] or match["of"], desk)
    if isinstance(name, Unclear):
        return name
    page, new = desk.draft.page(name), desk.quotes.literal(match["new"])
    if match["old"] is None:
        heading = page.first("h1") or next(iter(page.all(*HEADINGS)), None)
        return _set(desk, name, heading, new, "heading") if heading else _no_such(desk, name, "heading")
    old = desk.quotes.literal(match["old"])
    found = [heading for heading in page.all(*HEADINGS) if page.words(heading).lower() == old.lower()]
    if len(found) == 1:
        return _set(desk, name, found[0], new, f"heading “{old}”")
    return None  # a plain change of text may still find it


def _set(desk: Desk, name: str, element: Element, new: str, what: str) -> Outcome:
    page = desk.draft.page(name)
    title = page.title
    if element.computed and title is not None and title.value is not None and is_title(page, element):
        element = title  # the heading shows the title, so that is the one to change
    if element.computed:
        return _filled_in(desk, name, what)
    if page.words(element) == new:
        return AlreadySo(f"The heading of {label(name, desk)} is “{new}” already.")
    desk.draft.replace(name, page.filled(element, new))
    return Done(f"Changed the {what} of {label(name, desk)} to “{new}”.")


def segments(page: Page, title: Element) -> list[str]:
    """The parts of a title such as `Pots · Amelia` as they are written, and what stands between them."""
    inner = title.value.words if title.value else page.source[title.inner_start : title.inner_end]
    return _SEPARATOR.split(inner) if len(inner) <= _LONGEST_TITLE else [inner]


def retitled(page: Page, title: Element, segment: int | None, new: str) -> Patch:
    """The title with new words for one part, or for all of it."""
    if segment is None:
        return page.filled(title, new)
    parts = segments(page, title)
    old = parts[segment]
    lead, trail = old[: len(old) - len(old.lstrip())], old[len(old.rstrip()) :]
    parts[segment] = lead + (new if title.value else page.writing.escape(new, title)) + trail
    if title.value:
        return page.filled(title, "".join(parts))
    return Patch(title.inner_start, title.inner_end, "".join(parts))


def _segment(page: Page, title: Element, heading: str) -> int | None:
    """Which part of `Pots · Amelia` the page's heading repeats."""
    parts = [part.strip() if title.value else page.writing.read(part) for part in segments(page, title)]
    return next((i for i in range(0, len(parts), 2) if heading and parts[i] == heading), None)


def _left_alone(page: Page, heading: Element | None, new: str) -> str:
    if heading is None or heading.computed or page.words(heading) == new:
        return ""
    return (
        f" The big heading on the page still says “{page.words(heading)}”; "
        "write “set the heading to …” if that should change as well."
    )


def _no_such(desk: Desk, name: str, what: str) -> Unclear:
    page = label(name, desk)
    return Unclear(f"{page[:1].upper()}{page[1:]} has no {what} that I could change. What should be changed instead?")


def _filled_in(desk: Desk, name: str, what: str) -> Unclear:
    return Unclear(f"The {what} of {label(name, desk)} comes from the site's program. Please ask your web person.")
