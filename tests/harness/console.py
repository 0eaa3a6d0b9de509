"""The console of a container, as its operator's browser sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.testclient import TestClient

from webordinary.compose.container import Container
from webordinary.entrypoints.dashboard.ports import Dashboard, EventFeed
from webordinary.entrypoints.dashboard.web import create_app
from webordinary.operations.console import Console

PAGE = "http://127.0.0.1:8080"
FORM = {"Origin": PAGE}


@contextmanager
def open_console(container: Container) -> Iterator[TestClient]:
    """With every action of the console, and without mails to send or show."""
    dashboard = Dashboard(
        overview=container.overview,
        feed=EventFeed(),
        send_mail=lambda *_: "",
        mail_of=lambda _: None,
        diff_of=lambda *_: "",
        current_release=container.current_site,
        console=Console(container),
        access=container.access,
    )
    with TestClient(create_app(dashboard), base_url=PAGE, follow_redirects=False) as client:
        yield client
