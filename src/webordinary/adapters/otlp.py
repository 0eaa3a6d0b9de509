"""Spans by OTLP over HTTP (extra `otel`), to any collector of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from importlib.util import find_spec
from urllib.parse import urlsplit

from webordinary.model.errors import Permanent, Transient
from webordinary.model.traces import TraceSpan

TIMEOUT_SECONDS = 10


class OtlpExporter:
    """Posts spans to `endpoint`, such as http://127.0.0.1:4318; `/v1/traces` is added where no path is given."""

    def __init__(self, endpoint: str) -> None:
        if not find_spec("opentelemetry.exporter.otlp.proto.http"):
            raise Permanent("otlp_endpoint needs the extra: pip install 'webordinary[otel]'")
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - an extra

        has_path = urlsplit(endpoint).path not in ("", "/")
        self._endpoint = endpoint if has_path else f"{endpoint.rstrip('/')}/v1/traces"
        self._exporter = OTLPSpanExporter(self._endpoint, timeout=TIMEOUT_SECONDS)

    def export(self, spans: Sequence[TraceSpan]) -> None:
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace import Event, ReadableSpan  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace.export import SpanExportResult  # noqa: PLC0415 - an extra
        from opentelemetry.trace import SpanContext, TraceFlags  # noqa: PLC0415 - an extra

        service = Resource({"service.name": "webordinary"})

        def context(span: TraceSpan, span_id: int) -> SpanContext:
            return SpanContext(span.trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

        readable = [
            ReadableSpan(
                name=span.name,
                context=context(span, span.span_id),
                parent=context(span, span.parent_id) if span.parent_id is not None else None,
                resource=service,
                attributes=span.attributes,
                events=[Event(name, timestamp=_nanoseconds(at)) for name, at in span.events],
                start_time=_nanoseconds(span.start),
                end_time=_nanoseconds(span.end),
            )
            for span in spans
        ]
        if self._exporter.export(readable) is not SpanExportResult.SUCCESS:
            raise Transient(f"traces cannot be exported to {self._endpoint}; is the collector up?")


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1000
