"""What can come of one wish in a mail, and what every kind of edit is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from re import Match

from webordinary.site.agents.builtin.draft import Draft
from webordinary.site.agents.builtin.quotes import Quotes
from webordinary.site.task import AttachedFile


@dataclass(frozen=True, slots=True)
class Done:
    """It is in the draft; `summary` tells the customer."""

    summary: str


@dataclass(frozen=True, slots=True)
class AlreadySo:
    """The site is as wished."""

    text: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """It could mean several things, or something is missing: ask."""

    question: str


Outcome = Done | AlreadySo | Unclear


@dataclass(slots=True)
class Desk:
    """The draft being edited, the customer's files, and which page the mail spoke of last."""

    draft: Draft
    quotes: Quotes
    attachments: tuple[AttachedFile, ...] = ()
    page: str = ""
    used: set[str] = field(default_factory=set)


Edit = Callable[[Match[str], Desk], Outcome | None]
"""One kind of edit; None when, on a closer look, the wish is not of this kind."""
