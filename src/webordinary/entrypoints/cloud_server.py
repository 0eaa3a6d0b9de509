"""The page of a system that runs on AWS: it looks, shows the sites, and on an emulator takes mails too."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from webordinary.adapters.local.free_ports import bound
from webordinary.app import sites
from webordinary.app.cloud import Cloud
from webordinary.app.cloud_operating import post_and_see, shown_sites
from webordinary.entrypoints.dashboard.feed import EventFeed
from webordinary.entrypoints.dashboard.ports import Dashboard
from webordinary.entrypoints.dashboard.serve import PageServer
from webordinary.entrypoints.dashboard.web import create_app
from webordinary.entrypoints.examples import examples
from webordinary.model.errors import Permanent

LOOK_SECONDS = 5.0
"""Nobody tells the page of news: it looks, while somebody has it open."""


def run_page(services: Cloud, scratch: Path, stop: threading.Event, ready: Callable[[], None]) -> None:
    """Serve the page until `stop` is set."""
    config, feed = services.config, EventFeed()
    sockets = [bound(config.host, port) for port in (config.port, config.preview_port)]
    page = PageServer(create_app(_dashboard(services, feed, scratch)), feed, sockets)
    page.start()
    try:
        ready()
        while not stop.wait(LOOK_SECONDS):
            feed.wake()
    finally:
        page.stop()


def _dashboard(services: Cloud, feed: EventFeed, scratch: Path) -> Dashboard:
    config = services.config
    return Dashboard(
        overview=services.overview,
        feed=feed,
        send_mail=lambda raw, mail_from, recipient: post_and_see(services, raw, mail_from, recipient),
        mail_of=lambda email_id: _unless_gone(lambda: services.raw_mails.load(email_id).raw),
        diff_of=lambda project_id, commit: sites.diff_of(services, project_id, commit),
        current_release=shown_sites(services, scratch),
        build_log_of=services.build_logs.of,
        blob_of=lambda digest: _unless_gone(lambda: services.blobs.get(digest)),
        port=config.port,
        preview_port=config.preview_port,
        domain=config.domain,
        mailbox=config.mailbox,
        intake=f"through the bucket {services.ports.raw_bucket}",
        examples=examples() if config.aws_endpoint else (),
        clock=services.clock.now,
    )


def _unless_gone(read: Callable[[], bytes]) -> bytes | None:
    with suppress(Permanent):
        return read()
    return None
