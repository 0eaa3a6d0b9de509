"""A new item for a list on a page."""

from __future__ import annotations

import re
from bisect import bisect_left
from re import Match

from webordinary.site.agents.builtin.outcomes import AlreadySo, Desk, Done, Outcome, Unclear
from webordinary.site.agents.builtin.page import Element, Page
from webordinary.site.agents.builtin.pages import label, resolve

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_LISTED = 6


def add_item(match: Match[str], desk: Desk) -> Outcome | None:
    """Add it at the end of the page's list, or of the one that is named."""
    groups = match.groupdict()
    name = resolve(groups.get("page"), desk)
    if isinstance(name, Unclear):
        return name
    page, text = desk.draft.page(name), desk.quotes.literal(groups["new"])
    named = desk.quotes.literal(groups.get("called") or groups.get("about") or "")
    lists = _lists(page)
    found = _called(page, lists, named) if named else lists
    if len(found) != 1:
        return Unclear(_which(page, found or lists, label(name, desk), named))
    if text in (page.words(item) for item in page.children("li")[id(found[0])]):
        return AlreadySo(f"“{text}” is in the list on {label(name, desk)} already.")
    desk.draft.replace(name, page.writing.item(page, found[0], text))
    return Done(f"Added “{text}” to the list on {label(name, desk)}.")


def _lists(page: Page) -> list[Element]:
    """The lists of the text; not menus, and not lists within lists."""
    items = page.children("li")
    return [
        one
        for one in page.all("ul", "ol")
        if not one.inside("nav", "header", "footer") and not (one.parent and one.parent.inside("li"))
        and id(one) in items
    ]  # fmt: skip


def _called(page: Page, lists: list[Element], words: str) -> list[Element]:
    """Those with these words in the heading above, or with an item that begins with them."""
    wanted = re.compile(rf"\b{re.escape(words.lower())}")
    headings, items = page.all(*_HEADINGS), page.children("li")
    headed = [bool(wanted.search(page.words(heading).lower())) for heading in headings]
    above = (bisect_left(headings, one.start, key=lambda heading: heading.start) - 1 for one in lists)
    return [
        one
        for one, heading in zip(lists, above, strict=True)
        if (heading >= 0 and headed[heading]) or any(wanted.match(page.words(item).lower()) for item in items[id(one)])
    ]


def _which(page: Page, lists: list[Element], where: str, named: str) -> str:
    if not lists:
        return f"I found no list on {where}. To which page should it go?"
    firsts = "\n".join(f"- the list that begins with “{_first(page, one)}”" for one in lists[:_LISTED])
    known = f"no list “{named}”; it" if named else "more than one list; it"
    return (
        f"{where[:1].upper()}{where[1:]} has {known} has\n{firsts}\n"
        "Please say which one, for example: add “…” to the list that begins with "
        f"“{_first(page, lists[0])}”."
    )


def _first(page: Page, one: Element) -> str:
    words = page.words(page.children("li")[id(one)][0])
    return words if len(words) <= 60 else words[:59] + "…"
