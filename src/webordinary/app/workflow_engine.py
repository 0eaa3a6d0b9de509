"""The workflow engine of one machine, and how its replies leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from webordinary.adapters.local.maildir import MaildirTransport
from webordinary.adapters.local.relay import RelaySettings, RelayTransport
from webordinary.app.embedded import Embedded
from webordinary.app.services import Services
from webordinary.asl.engine import Engine
from webordinary.asl.ports import Execution
from webordinary.config import Config
from webordinary.mail.ports import Transport
from webordinary.workflow.answering import Answering
from webordinary.workflow.definition import embedded
from webordinary.workflow.queueing import Queueing
from webordinary.workflow.reading import Reading
from webordinary.workflow.steps import Step, steps


def answering_of(services: Services, wake_outbox: Callable[[], None]) -> Answering:
    """The steps that end a mail."""
    return Answering(
        services.mailroom,
        services.outbox,
        services.pool,
        services.dead_letters,
        services.interruptions,
        services.events,
        services.clock.now,
        wake_outbox,
    )


def steps_of(services: Services, answering: Answering) -> Mapping[str, Step]:
    """The steps of the workflow by name; the embedded engine and the lambdas call these functions."""
    now = services.clock.now
    return steps(
        Reading(services.mailroom, services.jobs, services.events, now),
        Queueing(services.pool, services.interruptions, services.events, now, answering.tell_held),
        answering,
    )


def engine(services: Embedded, wake_outbox: Callable[[], None]) -> Engine:
    """The workflow engine on the one workflow file; one process of a data folder runs it."""
    answering = answering_of(services, wake_outbox)
    handlers = steps_of(services, answering)

    def abandon(execution: Execution) -> None:
        started_with = execution.input if isinstance(execution.input, dict) else {"emailId": execution.name}
        error = f"workflow {execution.status}: {execution.error}"
        answering.abandon(started_with, error, execution.cause or "")

    return Engine(services.executions, embedded(), handlers, clock=services.clock, on_finished=abandon)


def transport(config: Config) -> Transport:
    """How replies leave: through the operator's relay, or into the Maildir outbox."""
    if not config.relay_host:
        return MaildirTransport(config.data / "outbox")
    return RelayTransport(
        RelaySettings(
            host=config.relay_host,
            port=config.relay_port,
            sender=config.mailbox,
            starttls=config.relay_starttls,
            user=config.relay_user,
            password=config.relay_password,
        )
    )
