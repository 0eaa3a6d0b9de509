"""Exports a trace of each answered mail to a collector."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from webordinary.model.events import EventKind
from webordinary.model.traces import SpanExporter, spans_of
from webordinary.operations.ports import EventLog

AT_ONCE, MOST_EVENTS = 500, 1000


@dataclass(slots=True)
class TraceExporter:
    """Exports the mails that were answered since it was started; a collector that is down gets them later."""

    log: EventLog
    exporter: SpanExporter
    name: str = "traces"
    _seq: int | None = field(default=None, init=False)

    def run_once(self, now: datetime) -> int:
        if self._seq is None:
            self._seq = self.log.start_of_last(0)
        exported = 0
        while events := self.log.after(self._seq, AT_ONCE):
            answered = dict.fromkeys(
                one.event.email_id for one in events if one.event.kind == EventKind.REPLY_SENT and one.event.email_id
            )
            for email_id in answered:
                self.exporter.export(list(spans_of(self.log.after(0, MOST_EVENTS, email_id=email_id))))
            self._seq, exported = events[-1].seq, exported + len(answered)
        return exported
