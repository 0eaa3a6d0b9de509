"""A new item for a list on a page."""

from __future__ import annotations

import re
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
    found = [one for one in _lists(page) if not named or _is_called(page, one, named)]
    if len(found) != 1:
        return Unclear(_which(page, found or _lists(page), label(name, desk), named))
    if text in (page.words(item) for item in _items(page, found[0])):
        return AlreadySo(f"“{text}” is in the list on {label(name, desk)} already.")
    desk.draft.replace(name, *page.writing.item(page, found[0], text))
    return Done(f"Added “{text}” to the list on {label(name, desk)}.")


def _lists(page: Page) -> list[Element]:
    """The lists of the text; not menus, and not lists within lists."""
    return [
        one
        for one in page.all("ul", "ol")
        if not one.inside("nav", "header", "footer") and not (one.parent and one.parent.inside("li"))
        and _items(page, one)
    ]  # fmt: skip


def _items(page: Page, one: Element) -> list[Element]:
    return [item for item in page.all("li") if item.parent is one]


def _is_called(page: Page, one: Element, words: str) -> bool:
    """By the heading above it, or by how one of its items begins."""
    wanted = re.compile(rf"\b{re.escape(words.lower())}")
    above = [heading for heading in page.all(*_HEADINGS) if heading.start < one.start]
    if above and wanted.search(page.words(above[-1]).lower()):
        return True
    return any(wanted.match(page.words(item).lower()) for item in _items(page, one))


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
    words = page.words(_items(page, one)[0])
    return words if len(words) <= 60 else words[:59] + "…"
