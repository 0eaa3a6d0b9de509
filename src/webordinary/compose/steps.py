"""The steps of the workflow over a container: the embedded engine and the lambdas call these functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta

from webordinary.compose.container import Container
from webordinary.mail.bounces import take_returned
from webordinary.mail.outbox import PromptOutbox
from webordinary.mail.ports import Outbox, ParserBusy
from webordinary.model.errors import Permanent
from webordinary.workflow.answering import Answering
from webordinary.workflow.queueing import Queueing
from webordinary.workflow.reading import HourlyLimits, Reading
from webordinary.workflow.start import start_released
from webordinary.workflow.steps import Step, steps


def answering_of(
    container: Container,
    wake_outbox: Callable[[], None] = lambda: None,
    uptime: Callable[[], timedelta] = lambda: timedelta.max,
) -> Answering:
    """The steps that end a mail; `wake_outbox` tells the sender of replies that one was written."""
    outbox: Outbox = container.outbox
    now, profile = container.clock.now, container.profile
    if profile.replies_leave_at_once:
        prompt = PromptOutbox(outbox, container.transport, container.threads, container.events, now)
        outbox, wake_outbox = prompt, prompt.deliver_written
    return Answering(
        mailroom=container.mailroom,
        outbox=outbox,
        pool=container.pool,
        dead_letters=container.dead_letters,
        interruptions=container.interruptions,
        events=container.events,
        now=now,
        wake_outbox=wake_outbox,
        renamed=profile.replies_leave_at_once,
        longest_awaited=profile.longest_awaited,
        uptime=uptime,
    )


def steps_of(container: Container, answering: Answering) -> Mapping[str, Step]:
    """The steps of the workflow by name."""
    events, now, config = container.events, container.clock.now, container.config

    def released(email_id: str) -> None:
        if container.profile.runs_engine:  # on AWS only intake and reconciler may start executions
            start_released(email_id, container.workflows, container.raw_mails)

    def came_back(email_id: str) -> None:
        if container.profile.runs_engine:
            with suppress(Permanent, ParserBusy):  # a report that cannot be read changes nothing
                returned = container.mailroom.parser.returned(container.raw_mails.head(email_id).raw)
                if returned:
                    take_returned(returned, container.outbox, container.threads, events)

    return steps(
        Reading(
            container.mailroom,
            container.pool.jobs,
            events,
            now,
            config.hourly_mails,
            HourlyLimits(config.hourly_project_mails, config.hourly_domain_mails),
            came_back,
            released,
        ),
        Queueing(container.pool, container.interruptions, events, now, answering.tell_held),
        answering,
    )
