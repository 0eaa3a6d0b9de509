"""The page on real sockets: the live stream, and a quick end."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.unit.dashboard.tables import NOON, DashboardTables
from webordinary.entrypoints.dashboard import pages
from webordinary.entrypoints.dashboard.ports import EventFeed
from webordinary.entrypoints.dashboard.web import PageServer, create_app
from webordinary.entrypoints.running import bound


class Live:
    """A page being served, and its visitors."""

    def __init__(self, world: DashboardTables) -> None:
        sockets = [bound("127.0.0.1", 0), bound("127.0.0.1", 0)]
        self.port, preview_port = (sock.getsockname()[1] for sock in sockets)
        dashboard = world.dashboard(port=self.port, preview_port=preview_port)
        self.preview_port = preview_port
        self.server = PageServer(create_app(dashboard), world.feed, sockets)
        self.server.start()

    @contextmanager
    def visit(self, path: str, port: int = 0, **headers: str) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=30)
        try:
            connection.request("GET", path, headers={name.replace("_", "-"): v for name, v in headers.items()})
            yield connection.getresponse()
        finally:
            connection.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[DashboardTables]:
    world = DashboardTables(tmp_path)
    yield world
    world.database.close()


@pytest.fixture
def live(world: DashboardTables) -> Iterator[Live]:
    live = Live(world)
    yield live
    live.server.stop()


def messages(answer: http.client.HTTPResponse) -> Iterator[dict[str, str]]:
    """Server-sent events as they come; a comment is a message of its own."""
    message: dict[str, str] = {}
    for line in map(bytes.decode, iter(answer.readline, b"")):
        if line == "\n":
            yield message
            message = {}
        else:
            name, _, value = line.rstrip("\n").partition(": ")
            message[name] = value


def first_event(answer: http.client.HTTPResponse) -> dict[str, Any]:
    message = next(m for m in messages(answer) if "data" in m)
    return {**json.loads(message["data"]), "id": message["id"]}


def tell(world: DashboardTables, kind: str, email_id: str | None = None) -> None:
    world.event(kind, email_id, 0)
    world.feed.wake()


def test_an_open_page_hears_what_happens(world: DashboardTables, live: Live) -> None:
    email_id = world.mail("Hello")
    with live.visit("/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert next(messages(answer)) == {"retry": "2000"}
        tell(world, "JobQueued", email_id)
        event = first_event(answer)
    assert (event["kind"], event["email_id"]) == ("JobQueued", email_id)
    assert event["id"] == str(event["seq"]) == str(world.overview.last_seq())


def test_a_page_that_was_away_hears_what_it_missed(world: DashboardTables, live: Live) -> None:
    for kind in ("MailReceived", "JobQueued", "JobStarted"):
        tell(world, kind)
    with live.visit("/events?after=0", Last_Event_ID="2") as answer:
        assert first_event(answer)["kind"] == "JobStarted"
    with live.visit("/events?after=1") as answer:
        assert first_event(answer)["kind"] == "JobQueued"


def test_a_page_far_behind_is_told_to_look_afresh(world: DashboardTables, live: Live) -> None:
    for _ in range(pages.BATCH):
        world.event("ClaimRequested", None, 0)
    with live.visit("/events?after=0") as answer:
        message = next(m for m in messages(answer) if "data" in m)
    assert message == {"event": "behind", "id": str(pages.BATCH), "data": "{}"}


def test_a_quiet_stream_still_beats(world: DashboardTables, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "HEARTBEAT_SECONDS", 0.01)
    with live.visit("/events") as answer:
        assert {"": "still here"} in [next(messages(answer)) for _ in range(2)]


def test_the_number_of_streams_is_bounded(world: DashboardTables) -> None:
    world.feed = EventFeed(max_streams=1)
    live = Live(world)
    try:
        with live.visit("/events") as first:
            next(messages(first))
            with live.visit("/events") as second:
                assert (second.status, second.headers["retry-after"]) == (503, "10")
    finally:
        live.server.stop()


def test_the_server_ends_while_pages_listen(world: DashboardTables) -> None:
    live = Live(world)
    with live.visit("/events") as answer:
        next(messages(answer))
        live.server.stop()
        assert [m for m in messages(answer) if "data" in m] == []
    for thread in threading.enumerate():
        if thread.name in ("page-server", "page_0"):
            thread.join(60)
            assert not thread.is_alive()


def test_a_wake_before_and_after_serving_is_harmless(world: DashboardTables) -> None:
    world.feed.wake()
    live = Live(world)
    live.server.stop()
    world.feed.wake()


def test_the_second_port_is_another_origin_without_the_page(live: Live) -> None:
    with live.visit("/api/status", port=live.preview_port) as answer:
        assert b"Choose a site" in answer.read()
    with live.visit("/healthz") as answer:
        assert json.loads(answer.read())["ok"] is True


def test_a_port_in_use_is_found_out_before_anything_starts(live: Live) -> None:
    with pytest.raises(OSError, match="in use"):
        bound("127.0.0.1", live.port)


def test_the_feed_waits_for_an_open_page_before_it_listens_again(world: DashboardTables) -> None:
    rounds = [threading.Thread(target=world.feed.run_once, args=(NOON,)) for _ in range(2)]
    with world.feed.stream():
        rounds[0].start()
        rounds[0].join()
    rounds[1].start()
    rounds[1].join(0.05)
    assert rounds[1].is_alive(), "no page is open: there is nothing to wake"
    world.feed.close()
    rounds[1].join()
