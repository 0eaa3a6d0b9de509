"""The workflow engine of one machine, and the background services of `up` on a data folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from webordinary.adapters.files.liveness import FrozenWriters
from webordinary.adapters.files.stores import SESSIONS, forget_homes
from webordinary.adapters.files.transports import MaildirTransport
from webordinary.adapters.files.wake import ENGINE, EngineWakeups
from webordinary.adapters.git.mirrors import maintain_mirrors, tend_origins
from webordinary.adapters.mailboxes import DropFolder, ImapMailbox
from webordinary.adapters.otlp import OtlpExporter
from webordinary.adapters.sqlite.dead_letters import LETTERS
from webordinary.asl.engine import Engine
from webordinary.asl.ports import Execution
from webordinary.asl.runner import EngineRunner
from webordinary.compose.container import Runnable
from webordinary.compose.embedded import MIRRORS, ORIGINS, EmbeddedContainer
from webordinary.compose.mailboxes import imap_settings, intake_of
from webordinary.compose.steps import answering_of, steps_of
from webordinary.model.errors import Backoff, MachineFaultRetries, WebOrdinaryError
from webordinary.model.mail import TransportKind
from webordinary.model.names import ProjectUser
from webordinary.pool.metrics import MetricsRecorder, Sampling
from webordinary.services.alert_mailer import AlertMailer
from webordinary.services.loop import Loop, Service
from webordinary.services.mail_duties import Acknowledgements, CallbackDelivery, MissingWorkflows, TraceExporter
from webordinary.services.mail_intake import MailReader
from webordinary.services.upkeep import DeadWorkers, PackedOrigins, Retention
from webordinary.workflow.answering import Uptime
from webordinary.workflow.definition import REPEATABLE, embedded
from webordinary.workflow.start import BrokenExecution, start_missing

RETRIES = Backoff(1.0, cap=300.0)
"""The delays before an execution that could not be advanced is tried again."""


def engine(services: EmbeddedContainer, wake_outbox: Callable[[], None] = lambda: None) -> Engine:
    """The workflow engine on the one workflow file; one process of a data folder runs it."""
    answering = answering_of(services, wake_outbox, Uptime(services.clock.now, services.clock.monotonic))

    def abandon(execution: Execution) -> None:
        started_with = execution.input if isinstance(execution.input, dict) else {"emailId": execution.name}
        ended = BrokenExecution(execution.name, execution.status, execution.error or "", execution.cause or "")
        answering.abandon(started_with, ended)

    return Engine(
        services.executions,
        embedded(),
        steps_of(services, answering),
        clock=services.clock,
        repeatable=REPEATABLE,
        on_finished=abandon,
        calls_again=MachineFaultRetries(services.clock.monotonic).calls_again,
    )


PAGE = "page"
ALERT_SECONDS, SWEEP_SECONDS, RETENTION_SECONDS = 30.0, 60.0, 3600.0
UNADMITTED_DAYS = 3
DROP_FOLDER_SECONDS = 1.0
SAMPLING_SECONDS = 60.0
INDEX_SECONDS = 10.0
"""The index catches up when it is asked, too: this keeps a burst from waiting for the first look."""
ACKNOWLEDGE_SECONDS = 15.0
TRACE_SECONDS = 5.0


def background_services(container: EmbeddedContainer, closing: ExitStack, page: Service) -> Sequence[Runnable]:
    """Engine, outbox and duties; `closing` releases what they listen on."""
    config, now = container.config, container.clock.now

    def heard(topic: str) -> EngineWakeups:
        listener = container.bus.listen(topic)
        closing.callback(listener.close)
        return EngineWakeups(listener)

    def each(seconds: float, service: Service) -> Loop:
        return Loop(service, seconds, now)

    wakeups = heard(ENGINE)
    start_missing(container.workflows, container.raw_mails)
    container.mail_deps.parser.warm()
    closing.callback(_save_counts, container.meter)
    frozen = FrozenWriters(container.db.path, config.lease_seconds, lock_folder=config.data / MIRRORS)
    return (
        NamedRunner(container, wakeups),
        container.outbox_loop,
        container.offers_loop,
        Loop(alert_mailer(container), ALERT_SECONDS, now, heard(LETTERS)),
        each(ALERT_SECONDS, DeadWorkers(container.worker_rows, container.workers, container.events)),
        each(config.lease_seconds / 3, frozen),
        each(SWEEP_SECONDS, MissingWorkflows(container.workflows, container.raw_mails)),
        each(SWEEP_SECONDS, CallbackDelivery(container.pool)),
        each(SWEEP_SECONDS, PackedOrigins(lambda: tend_origins(config.data / ORIGINS))),
        each(INDEX_SECONDS, container.mail_index),
        each(SAMPLING_SECONDS, Sampling(container.metrics, container.pool_history)),
        each(RETENTION_SECONDS, retention(container)),
        Loop(page, None, now, heard(PAGE)),
        *mail_readers(container, closing),
        *acknowledgements(container),
        *traces(container),
    )


def traces(container: EmbeddedContainer) -> Iterator[Loop]:
    """The loop that exports traces, if the settings name a collector."""
    if endpoint := container.config.otlp_endpoint:
        yield Loop(TraceExporter(container.event_log, OtlpExporter(endpoint)), TRACE_SECONDS, container.clock.now)


def mail_readers(container: EmbeddedContainer, closing: ExitStack) -> Iterator[Loop]:
    """One loop for each place that mail is taken from."""
    config, now = container.config, container.clock.now
    mailbox, intake = container.mail_deps.mailbox, intake_of(container)
    if config.imap_host:
        source = ImapMailbox(imap_settings(config))
        closing.callback(source.close)
        reader = MailReader(TransportKind.IMAP, source, intake, mailbox, container.events)
        yield Loop(reader, config.imap_poll_seconds, now, source)
    if config.drop_folder:
        folder = DropFolder(Path(config.drop_folder), config.max_mail_bytes)
        yield Loop(
            MailReader(TransportKind.FOLDER, folder, intake, mailbox, container.events), DROP_FOLDER_SECONDS, now
        )


def acknowledgements(container: EmbeddedContainer) -> Iterator[Loop]:
    """The loop that acknowledges mails which wait long, unless the settings forbid it."""
    seconds = container.config.acknowledge_seconds
    if seconds:
        answering = answering_of(container, container.outbox_loop.wake)
        after = timedelta(seconds=seconds)
        service = Acknowledgements(partial(_with_open_jobs, container), container.jobs, answering.tell_waiting, after)
        yield Loop(service, ACKNOWLEDGE_SECONDS, container.clock.now)


def _with_open_jobs(container: EmbeddedContainer, now: datetime) -> list[ProjectUser]:
    return [queue.key for queue in container.overview.pool(now).queues if queue.open]


class NamedRunner(EngineRunner):
    """The workflow engine as a service."""

    name = "workflow"

    def __init__(self, container: EmbeddedContainer, wakeups: EngineWakeups) -> None:
        super().__init__(container.engine, wakeups.wait, wakeups.wake, delay=RETRIES.delay)


def alert_mailer(container: EmbeddedContainer) -> AlertMailer:
    """The mailer of alerts to the operator."""
    config = container.config
    return AlertMailer(
        alerts=container.alerts,
        overview=container.overview,
        event_log=container.event_log,
        operator=config.operator,
        mailbox=config.mailbox,
        page=config.public_url or f"http://127.0.0.1:{config.port}/",
        wake_outbox=container.outbox_loop.wake,
    )


def retention(container: EmbeddedContainer) -> Retention:
    """The retention of everything in the data folder."""
    data = container.config.data
    return Retention(
        metrics=container.meter,
        days=container.config.retention_days,
        forget=(
            container.jobs.forget,
            container.event_log.forget,
            container.interruptions.forget,
            container.executions.prune,
            lambda before: forget_mails(container, before, container.clock.now()),
            lambda before: forget_homes(data / SESSIONS, before),
            container.worker_rows.forget,
            container.alerts.forget,
            container.build_logs.forget,
            container.releases.forget_previews,
        ),
        maintain=lambda: maintain_mirrors(data / MIRRORS, data / "workspaces"),
    )


def forget_mails(container: EmbeddedContainer, before: datetime, now: datetime) -> int:
    """Delete mails past their retention: rows, raw mails, attachments, pictures and replies; returns their number."""
    unadmitted_before = max(before, now - timedelta(days=UNADMITTED_DAYS))
    forgotten = container.retention.forget(before, unadmitted_before)
    container.blobs.forget(before, container.retention.attached())
    MaildirTransport(container.config.data / "outbox").forget(before)
    return forgotten


def _save_counts(meter: MetricsRecorder) -> None:
    with suppress(WebOrdinaryError):  # counting goes on from the last save
        meter.save()
