"""A new paragraph on a page."""

from __future__ import annotations

from re import Match

from webordinary.site.agents.builtin.html import Element, Page, escape
from webordinary.site.agents.builtin.outcomes import Desk, Done, Outcome, Unclear
from webordinary.site.agents.builtin.pages import label, resolve

_SHOWN = 60


def add_paragraph(match: Match[str], desk: Desk) -> Outcome | None:
    """Add it below the page's running text."""
    groups = match.groupdict()
    name = resolve(groups["page"] or groups["page2"], desk)
    if isinstance(name, Unclear):
        return name
    text = desk.quotes.literal(groups["new"] or groups["new2"] or groups["new3"])
    page = desk.draft.page(name)
    last = _last_of_running_text(page)
    if last is not None:
        indent = page.source[page.source.rfind("\n", 0, last.start) + 1 : last.start]
        lead = f"\n{indent}" if not indent.strip() else "\n"
        desk.draft.replace(name, last.end, last.end, f"{lead}<p>{escape(text)}</p>")
    else:
        end = page.first("main") or page.first("body")
        place = end.inner_end if end else len(page.source)
        desk.draft.replace(name, place, place, f"<p>{escape(text)}</p>\n")
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return Done(f"Added the paragraph “{shown}” to {label(name)}.")


def _last_of_running_text(page: Page) -> Element | None:
    """The last paragraph of the element that holds most of them: the text, not a card or the footer."""
    groups: dict[int, list[Element]] = {}
    for paragraph in page.all("p"):
        if not paragraph.inside("footer", "nav", "header"):
            groups.setdefault(id(paragraph.parent), []).append(paragraph)
    return max(groups.values(), key=len)[-1] if groups else None
