"""What the lambdas have at hand, whatever the backend; light to import, because a cold start waits for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from webordinary.mail.delivery import deliver_due
from webordinary.mail.intake import Accepted
from webordinary.mail.ports import Outbox, Transport
from webordinary.mail.prompt_outbox import PromptOutbox
from webordinary.model.events import Events
from webordinary.pool.ports import DeadLetters, Interruptions, Pool
from webordinary.pool.reconciler import Reconciler
from webordinary.workflow.answering import Answering
from webordinary.workflow.queueing import Queueing
from webordinary.workflow.reading import Mailroom, Reading
from webordinary.workflow.start import Workflows, start, start_missing
from webordinary.workflow.steps import Step, steps

Chore = Callable[[], int]
LONGEST_AWAITED = timedelta(days=21)
"""A mail expires after 30 days. A held one is looked at once a week, so it is given up while it is still there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LambdaServices:
    """The ports that steps, intake and reconciler need."""

    mailroom: Mailroom
    pool: Pool
    interruptions: Interruptions
    dead_letters: DeadLetters
    outbox: Outbox
    transport: Transport
    workflows: Workflows
    events: Events
    now: Callable[[], datetime]
    region: str
    expect_job: Callable[[str, str, int], None] = lambda job_id, key, order: None
    """Where a job lies, as the workflow was told: it saves the look for it."""
    raw_bucket: str
    """Where raw mails come to."""
    accept: Callable[[str, datetime], Sequence[Accepted]]
    """Note the raw mail of this key; again is harmless."""
    unnoted: Callable[[], Sequence[str]]
    """The keys of some raw mails that nobody has noted."""


def answering_of(services: LambdaServices) -> Answering:
    """The steps that end a mail; a reply leaves as soon as it is written, under a Message-ID of SES's."""
    threads, events, now = services.mailroom.threads, services.events, services.now
    outbox = PromptOutbox(services.outbox, services.transport, threads, events, now)
    return Answering(
        mailroom=services.mailroom,
        outbox=outbox,
        pool=services.pool,
        dead_letters=services.dead_letters,
        interruptions=services.interruptions,
        events=events,
        now=now,
        wake_outbox=outbox.deliver_written,
        renamed=True,
        longest_awaited=LONGEST_AWAITED,
    )


def steps_of(services: LambdaServices) -> Mapping[str, Step]:
    """The steps of the workflow by name; the same functions that the embedded engine calls."""
    events, now, answering = services.events, services.now, answering_of(services)
    return steps(
        Reading(services.mailroom, services.pool.jobs, events, now),
        Queueing(services.pool, services.interruptions, events, now, answering.tell_held),
        answering,
    )


def take(services: LambdaServices, key: str, received_at: datetime) -> None:
    """Accept a raw mail and start its workflow.

    Killed in between, it leaves a mail that nobody noted or that has no workflow: both are among the chores.
    """
    for mail in services.accept(key, received_at):
        start(mail.email_id, services.workflows, services.mailroom.raw_mails)


def chores_of(services: LambdaServices) -> Mapping[str, Chore]:
    """What the reconciler does each minute; each returns how much it had to do."""

    def send_hints() -> int:
        return Reconciler(services.pool, services.events).run_once(services.now())

    def send_replies() -> int:
        threads = services.mailroom.threads
        return deliver_due(services.outbox, services.transport, threads, services.now(), services.events)

    def start_workflows() -> int:
        return start_missing(services.workflows, services.mailroom.raw_mails)

    def take_unnoted() -> int:
        keys = services.unnoted()
        for key in keys:
            take(services, key, services.now())
        return len(keys)

    return {"hints": send_hints, "replies": send_replies, "workflows": start_workflows, "mails": take_unnoted}
