"""One line per event, in the words that the page uses too."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from webordinary.entrypoints.cli.output import clean, clock
from webordinary.entrypoints.dashboard.wording import details_of, words_for
from webordinary.model.events import Event
from webordinary.model.overview import TimelineEntry, with_names

SHORT_ID = 12


def entry_of(seq: int, at: datetime, event: Event) -> TimelineEntry:
    """An event as the page's timeline has it."""
    key = str(event.key) if event.key else None
    return TimelineEntry(seq, at, event.kind, event.email_id, key, event.worker, event.data)


def line_for(seq: int, at: datetime, event: Event, worker_names: Mapping[str, str]) -> str:
    """When, what, its small values, and the mail that it belongs to."""
    entry = with_names(entry_of(seq, at, event), worker_names)
    details = details_of(entry)
    mail = f"  mail {event.email_id[:SHORT_ID]}" if event.email_id else ""
    return clean(f"{clock(at)}  {words_for(entry)}{f' ({details})' if details else ''}{mail}")
