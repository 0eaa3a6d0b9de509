"""Traces, one for each mail, made from its stored events.

Ids follow from the mail's id, so that a trace that is exported twice is the same trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Protocol

from webordinary.model.events import EventKind
from webordinary.model.snapshot import LoggedEvent

STEPS: Mapping[str, tuple[frozenset[EventKind], frozenset[EventKind]]] = {
    "read": (frozenset({EventKind.MAIL_RECEIVED}), frozenset({EventKind.MAIL_PARSED})),
    "queue": (frozenset({EventKind.JOB_QUEUED, EventKind.JOB_REQUEUED}), frozenset({EventKind.JOB_STARTED})),
    "job": (frozenset({EventKind.JOB_STARTED}), frozenset({EventKind.JOB_SETTLED, EventKind.JOB_INTERRUPTED})),
    "agent": (frozenset({EventKind.WORKSPACE_PREPARED}), frozenset({EventKind.AGENT_FINISHED})),
    "build": (frozenset({EventKind.CHANGE_COMMITTED}), frozenset({EventKind.SITE_BUILT, EventKind.SITE_NOT_BUILT})),
    "publish": (frozenset({EventKind.SITE_BUILT}), frozenset({EventKind.SITE_PUBLISHED})),
    "reply": (frozenset({EventKind.JOB_SETTLED}), frozenset({EventKind.REPLY_SENT})),
}
"""Each step of a mail, with the events that begin and end it."""


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """A part of a trace. `parent_id` is None for the whole mail."""

    trace_id: int
    span_id: int
    parent_id: int | None
    name: str
    start: datetime
    end: datetime
    attributes: Mapping[str, str]
    events: Sequence[tuple[str, datetime]] = ()


class SpanExporter(Protocol):
    """Gives spans to a collector; raises Transient while it cannot be reached."""

    def export(self, spans: Sequence[TraceSpan]) -> None: ...


def spans_of(events: Sequence[LoggedEvent]) -> Iterator[TraceSpan]:
    """The trace of one mail: a span for the whole, with every event, and one for each step."""
    if not events:
        return
    email_id = events[0].event.email_id or ""
    trace_id, root = int(_digest(email_id)[:32], 16), int(_digest(email_id, "mail")[:16], 16)
    timeline = [(str(one.event.kind), one.at) for one in events]
    yield TraceSpan(trace_id, root, None, "mail", events[0].at, events[-1].at, _attributes(events), timeline)
    begun: dict[str, LoggedEvent] = {}
    for one in events:
        for name, (starts, ends) in STEPS.items():
            if one.event.kind in ends and (start := begun.pop(name, None)):
                span_id = int(_digest(email_id, name, str(start.seq))[:16], 16)
                yield TraceSpan(trace_id, span_id, root, name, start.at, one.at, _attributes([start, one]))
            if one.event.kind in starts:
                begun[name] = one


def _attributes(events: Sequence[LoggedEvent]) -> dict[str, str]:
    """Ids and outcome. Addresses and texts of customers stay here."""
    found: dict[str, str] = {}
    for one in events:
        known = {
            "email_id": one.event.email_id,
            "job_id": one.event.job_id,
            "key": str(one.event.key) if one.event.key else None,
            "worker": one.event.worker,
            "outcome": one.event.data.get("outcome"),
        }
        found |= {f"webordinary.{name}": str(value) for name, value in known.items() if value}
    return found


def _digest(*parts: str) -> str:
    return sha256("/".join(parts).encode()).hexdigest()
