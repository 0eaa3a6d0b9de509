"""Traces of answered mails, as a collector of OpenTelemetry receives them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webordinary.adapters.otlp import OtlpExporter
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.events import SqliteEventLog, append
from webordinary.entrypoints.http_server import HttpServer
from webordinary.model.errors import Transient
from webordinary.model.events import Event, EventKind
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import LoggedEvent
from webordinary.model.traces import spans_of
from webordinary.services.mail_duties import TraceExporter

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
MAIL = "ab" * 32
KEY = ProjectUser("amelia", "scott")
WAY = (
    EventKind.MAIL_RECEIVED, EventKind.MAIL_PARSED, EventKind.JOB_QUEUED, EventKind.JOB_STARTED,
    EventKind.JOB_INTERRUPTED, EventKind.JOB_REQUEUED, EventKind.JOB_STARTED, EventKind.JOB_SETTLED,
    EventKind.REPLY_SENT,
)  # fmt: skip


class Collector:
    """Receives traces by HTTP; answers with the status that a test sets."""

    def __init__(self) -> None:
        self.status, self.received = 200, list[ExportTraceServiceRequest]()
        self.app = Starlette(routes=[Route("/v1/traces", self._take, methods=["POST"])])

    async def _take(self, request: Request) -> Response:
        if self.status == 200:
            self.received.append(ExportTraceServiceRequest.FromString(await request.body()))
        return Response(status_code=self.status)

    def spans(self) -> dict[str, list[str]]:
        """The names of the spans by trace."""
        all_of_them = [
            span
            for one in self.received
            for resource in one.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        return {
            span.trace_id.hex(): [other.name for other in all_of_them if other.trace_id == span.trace_id]
            for span in all_of_them
        }


@pytest.fixture
def collector() -> Iterator[tuple[Collector, str]]:
    collector, sock = Collector(), socket.socket()
    sock.bind(("127.0.0.1", 0))
    server = HttpServer(collector.app, [sock], connections=10, grace_seconds=1, lifespan="off")
    server.start()
    yield collector, f"http://127.0.0.1:{sock.getsockname()[1]}"
    server.stop()


def happen(database: MemoryDatabase, email_id: str) -> None:
    for kind in WAY:
        append(database, Event(kind, email_id, "job-1", KEY, data={"sender": "scott@example.com"}))


def test_an_answered_mail_becomes_one_trace_with_its_steps_and_no_address(collector: tuple[Collector, str]) -> None:
    received, endpoint = collector
    database = MemoryDatabase()
    exporter = TraceExporter(SqliteEventLog(database), OtlpExporter(endpoint))
    happen(database, "cd" * 32)
    assert exporter.run_once(NOON) == 0, "it begins with what happens after its start"
    happen(database, MAIL)
    assert exporter.run_once(NOON) == 1
    [(_, names)] = received.spans().items()
    assert sorted(names) == ["job", "job", "mail", "queue", "queue", "read", "reply"]
    assert b"scott@example.com" not in received.received[0].SerializeToString()
    assert exporter.run_once(NOON) == 0


def test_a_collector_that_is_down_gets_the_trace_later(collector: tuple[Collector, str]) -> None:
    received, endpoint = collector
    database = MemoryDatabase()
    exporter = TraceExporter(SqliteEventLog(database), OtlpExporter(endpoint))
    exporter.run_once(NOON)
    happen(database, MAIL)
    received.status = 400
    with pytest.raises(Transient, match="is the collector up"):
        exporter.run_once(NOON)
    received.status = 200
    assert exporter.run_once(NOON) == 1


def test_a_step_that_is_done_twice_has_two_spans_within_the_mail() -> None:
    events = [
        LoggedEvent(seq, NOON + timedelta(seconds=seq), Event(kind, MAIL, "job-1", KEY)) for seq, kind in enumerate(WAY)
    ]
    whole, *steps = spans_of(events)
    assert [(one.name, (one.end - one.start).seconds) for one in steps] == [
        ("read", 1), ("queue", 1), ("job", 1), ("queue", 1), ("job", 1), ("reply", 1),
    ]  # fmt: skip
    assert {one.parent_id for one in steps} == {whole.span_id}
    assert len({one.span_id for one in (whole, *steps)}) == 7
    assert len(whole.events) == len(WAY)
