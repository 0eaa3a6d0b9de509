"""The live stream: server-sent events, one per stored event, resumed by Last-Event-ID."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from webordinary.entrypoints.dashboard.ports import Dashboard, Readers
from webordinary.model.snapshot import TimelineEntry

HEARTBEAT_SECONDS = 15.0
PACE_SECONDS = 0.1
BATCH = 200
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class Stream:
    """`GET /events`: says that something happened and to which mail; the page fetches what it needs."""

    def __init__(self, dashboard: Dashboard, readers: Readers) -> None:
        self._overview, self._feed, self._look = dashboard.overview, dashboard.feed, readers.look

    async def open(self, request: Request) -> Response:
        """Open a stream, if there are not too many already."""
        if self._feed.full or self._feed.closed:
            return PlainTextResponse("Too many pages are open; close one.", 503, {"Retry-After": "10"})
        newest = await self._look(self._overview.last_seq)
        asked = request.headers.get("last-event-id") or request.query_params.get("after", "")
        seq = min(int(asked), newest) if asked.isdecimal() and len(asked) < 19 else newest
        return StreamingResponse(self._messages(seq), media_type="text/event-stream", headers=_HEADERS)

    async def _messages(self, seq: int) -> AsyncIterator[str]:
        with self._feed.stream():
            yield "retry: 2000\n\n"
            while True:
                bell = self._feed.bell  # taken before the look, so that no event falls between
                if self._feed.closed:
                    return
                entries = await self._look(self._overview.events_after, seq, BATCH)
                if not entries:
                    if not await _rung(bell):
                        yield ": still here\n\n"
                    continue
                if len(entries) == BATCH:
                    seq = await self._look(self._overview.last_seq)
                    yield f"event: behind\nid: {seq}\ndata: {{}}\n\n"  # one fresh look replaces the rest
                else:
                    seq = entries[-1].seq
                    yield "".join(map(_message, entries))
                await asyncio.sleep(PACE_SECONDS)  # under load, many events share one look


async def _rung(bell: asyncio.Event) -> bool:
    try:
        await asyncio.wait_for(bell.wait(), HEARTBEAT_SECONDS)
    except TimeoutError:
        return False
    return True


def _message(entry: TimelineEntry) -> str:
    data = json.dumps({"seq": entry.seq, "kind": entry.kind, "email_id": entry.email_id})
    return f"id: {entry.seq}\ndata: {data}\n\n"
