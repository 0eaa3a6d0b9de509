"""A new paragraph on a page."""

from __future__ import annotations

from re import Match

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
    desk.draft.replace(name, page.writing.paragraph(page, text))
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return Done(f"Added the paragraph “{shown}” to {label(name, desk)}.")
