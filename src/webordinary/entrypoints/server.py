"""The server half of `up`: mail intake, workflow engine, outbox and page, in one process."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from webordinary.adapters.local.free_ports import bound
from webordinary.adapters.local.frozen_writers import FrozenWriters
from webordinary.adapters.local.wake import Listener
from webordinary.adapters.local.wakeups import ENGINE, EngineWakeups
from webordinary.app import sites, upkeep, workflow_engine
from webordinary.app.embedded import Embedded
from webordinary.asl.engine import Engine
from webordinary.asl.runner import EngineRunner
from webordinary.entrypoints.dashboard.feed import EventFeed
from webordinary.entrypoints.dashboard.metrics import exposition
from webordinary.entrypoints.dashboard.ports import Dashboard
from webordinary.entrypoints.dashboard.serve import PageServer
from webordinary.entrypoints.dashboard.web import create_app
from webordinary.entrypoints.examples import examples
from webordinary.entrypoints.smtp import client
from webordinary.entrypoints.smtp.server import SmtpServer, SmtpSettings
from webordinary.entrypoints.watchman import Watchman
from webordinary.mail.delivery import deliver_due
from webordinary.mail.intake import Accepted, accept
from webordinary.model.errors import Permanent, WebOrdinaryError
from webordinary.model.mail import Envelope
from webordinary.pool.tally import Meter
from webordinary.workflow.start import start, start_missing

_log = logging.getLogger(__name__)
PAGE = "page"
OUTBOX_LOOK_SECONDS = 30.0
SWEEP_SECONDS = 60.0
HOUSEKEEPING_SECONDS = 3600.0


def run_server(services: Embedded, stop: threading.Event, ready: Callable[[], None]) -> None:
    """Serve until `stop` is set; `ready` is called when mail is taken and the page answers."""
    with ExitStack() as closing:
        outbox = OutboxSender(services)
        engine = workflow_engine.engine(services, outbox.wake)
        ear = services.bus.listen(ENGINE)
        closing.callback(ear.close)
        wakeups = EngineWakeups(ear)
        runner = EngineRunner(engine, wakeups.wait, wakeups.wake)
        start_missing(engine, services.raw_mails)

        _beside(closing, "workflow", runner.run, runner.stop)
        _beside(closing, "outbox", outbox.run, outbox.stop)
        meter = Meter(services.tallies)
        closing.callback(_save_counts, meter)
        watchman = Watchman(services, outbox.wake)
        _beside(closing, "watchman", watchman.run, watchman.stop)
        frozen = FrozenWriters(services.db.path, services.config.lease_seconds)
        _beside(closing, "frozen-writers", frozen.run, frozen.stop)
        sweeper = Sweeper(services, engine, wakeups.wake, meter)
        _beside(closing, "sweeper", sweeper.run, sweeper.stop)
        smtp = _smtp_server(services, engine, wakeups.wake)
        smtp.start()
        closing.callback(smtp.stop)
        _serve_page(services, meter, closing)
        ready()
        stop.wait()


def _beside(closing: ExitStack, name: str, run: Callable[[], None], stop: Callable[[], None]) -> None:
    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    closing.callback(thread.join, 10)
    closing.callback(stop)


def _save_counts(meter: Meter) -> None:
    with suppress(WebOrdinaryError):  # saved before, it counts on from there
        meter.save()


def _smtp_server(services: Embedded, engine: Engine, wake: Callable[[], None]) -> SmtpServer:
    config = services.config
    settings = SmtpSettings(services.mailroom.mailbox, config.host, config.smtp_port, config.max_mail_bytes)

    def keep(raw: bytes, envelopes: Sequence[Envelope]) -> Sequence[Accepted]:
        return accept(raw, envelopes, services.raw_mails, services.events)

    def begin(email_id: str) -> None:
        start(email_id, engine, services.raw_mails)
        wake()

    return SmtpServer(settings, keep, begin, services.clock.now)


def _serve_page(services: Embedded, meter: Meter, closing: ExitStack) -> None:
    config = services.config
    feed = EventFeed()
    sockets = [bound(config.host, port) for port in (config.port, config.preview_port)]
    page = PageServer(create_app(_dashboard(services, meter, feed)), feed, sockets)
    page.start()
    closing.callback(page.stop)
    bell = FeedBell(services.bus.listen(PAGE), feed)
    _beside(closing, "page-bell", bell.run, bell.stop)


def _dashboard(services: Embedded, meter: Meter, feed: EventFeed) -> Dashboard:
    config, now = services.config, services.clock.now

    def send_mail(raw: bytes, mail_from: str, recipient: str) -> str:
        answer = client.send(raw, mail_from, recipient, config.host, config.smtp_port)
        return client.email_id_in(answer)

    return Dashboard(
        overview=services.overview,
        feed=feed,
        send_mail=send_mail,
        mail_of=lambda email_id: _unless_gone(lambda: services.raw_mails.load(email_id).raw),
        diff_of=lambda project_id, commit: sites.diff_of(services, project_id, commit),
        current_release=services.releases.current,
        build_log_of=services.build_logs.of,
        blob_of=lambda digest: _unless_gone(lambda: services.blobs.get(digest)),
        port=config.port,
        preview_port=config.preview_port,
        domain=config.domain,
        mailbox=config.mailbox,
        intake=f"on port {config.smtp_port} of this machine",
        examples=examples(),
        metrics=lambda: exposition(upkeep.levels_of(services), meter.read(), now()),
        clock=now,
    )


def _unless_gone(read: Callable[[], bytes]) -> bytes | None:
    try:
        return read()
    except Permanent:
        return None


@dataclass
class FeedBell:
    """Rings the page's feed when another process has stored events."""

    listener: Listener
    feed: EventFeed
    stopping: bool = False

    def run(self) -> None:
        """Ring at every wake-up."""
        while not self.stopping:
            self.listener.wait(None)
            self.feed.wake()

    def stop(self) -> None:
        """Ring no more."""
        self.stopping = True
        self.listener.poke()
        self.listener.close()


class OutboxSender:
    """Delivers replies as they are written, and tries again those that did not leave."""

    def __init__(self, services: Embedded) -> None:
        self._services = services
        self._transport = workflow_engine.transport(services.config)
        self._woken = threading.Event()
        self._stopping = False

    def wake(self) -> None:
        """A reply was written."""
        self._woken.set()

    def stop(self) -> None:
        """Deliver no more."""
        self._stopping = True
        self._woken.set()

    def run(self) -> None:
        """Deliver until stopped."""
        while not self._stopping:
            self._deliver()
            self._woken.wait(OUTBOX_LOOK_SECONDS)
            self._woken.clear()

    def _deliver(self) -> None:
        services = self._services
        try:
            while deliver_due(
                services.outbox, self._transport, services.threads, services.clock.now(), services.events
            ):
                pass
        except Exception:
            _log.exception("replies wait in the outbox; trying again in %.0f s", OUTBOX_LOOK_SECONDS)


class Sweeper:
    """Starts the workflows of mails that a crash left without one, and keeps house."""

    def __init__(self, services: Embedded, engine: Engine, wake_engine: Callable[[], None], meter: Meter) -> None:
        self._services, self._engine, self._wake_engine, self._meter = services, engine, wake_engine, meter
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Sweep no more."""
        self._stopping.set()

    def run(self) -> None:
        """Sweep each minute, keep house each hour."""
        tidied_at = 0.0
        while not self._stopping.is_set():
            try:
                if start_missing(self._engine, self._services.raw_mails):
                    self._wake_engine()
                if time.monotonic() - tidied_at > HOUSEKEEPING_SECONDS or not tidied_at:
                    tidied_at = time.monotonic()
                    self._meter.save()  # first: what is forgotten after this was counted
                    upkeep.keep_house(self._services)
            except Exception:
                _log.exception("sweeping failed; trying again in %.0f s", SWEEP_SECONDS)
            self._stopping.wait(SWEEP_SECONDS)
