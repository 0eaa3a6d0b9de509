"""What the page shows, as plain values; templates only print it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from webordinary.entrypoints.dashboard.formats import Moment, duration, moment, plural
from webordinary.entrypoints.dashboard.steps import Progress, Step, finished, steps_of
from webordinary.model.jobs import Outcome
from webordinary.model.mail import Command
from webordinary.model.overview import JobSummary, MailSummary, PoolSnapshot, QueueSummary, WorkerSummary
from webordinary.pool.watchdog import unowned_too_long

_COMMAND_DONE = {
    Command.UNDO: "taken back on the edit site",
    Command.PUBLISH: "on the public site",
    Command.STATUS: "answered",
    Command.STOP: "stopped",
}


@dataclass(frozen=True, slots=True)
class StatusView:
    """How a mail stands, in a word or two; `tone` is good, busy, warn or bad."""

    label: str
    tone: str


@dataclass(frozen=True, slots=True)
class StepView:
    """A station with the time since the one before it."""

    name: str
    label: str
    progress: Progress
    took: str


@dataclass(frozen=True, slots=True)
class MailLine:
    """One mail in a list."""

    email_id: str
    subject: str
    sender: str
    project: str
    received: Moment
    status: StatusView
    steps: tuple[StepView, ...]
    answered_in: str


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker does now."""

    key: str
    email_id: str
    subject: str
    since: str


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker: what it does, and whom it keeps warm."""

    name: str
    pid: int
    busy: bool
    slots: int
    up_since: Moment
    tasks: tuple[Task, ...]
    claims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClaimView:
    """Who acts for whom."""

    key: str
    worker: str
    fence: int
    since: Moment
    live: bool


@dataclass(frozen=True, slots=True)
class QueueView:
    """The open jobs of one key."""

    key: str
    open: int
    running: int
    waiting: int
    waiting_for: str


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that a person must look at: what happened, and what to do."""

    what: str
    advice: str
    email_ids: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Home:
    """The whole system at a glance."""

    seq: int
    at: Moment
    alarms: tuple[Alarm, ...]
    in_flight: tuple[MailLine, ...]
    done: tuple[MailLine, ...]
    next_page: str
    workers: tuple[WorkerView, ...]
    claims: tuple[ClaimView, ...]
    queues: tuple[QueueView, ...]
    projects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Looked:
    """What one look at the system brought; `page` is newest first."""

    seq: int
    in_flight: Sequence[MailSummary]
    page: Sequence[MailSummary]
    pool: PoolSnapshot
    projects: Sequence[str]
    page_is_full: bool = False


def home_view(looked: Looked, now: datetime) -> Home:
    """Make the home page's values."""
    known = {mail.email_id: mail for mail in (*looked.in_flight, *looked.page)}
    mails = sorted(known.values(), key=lambda mail: (mail.received_at, mail.email_id), reverse=True)
    return Home(
        seq=looked.seq,
        at=moment(now, now),
        alarms=_alarms(looked.pool, now),
        in_flight=tuple(mail_line(mail, now) for mail in mails if not finished(mail)),
        done=tuple(mail_line(mail, now) for mail in mails if finished(mail)),
        next_page=looked.page[-1].email_id if looked.page_is_full else "",
        workers=tuple(_worker(worker, looked.pool, now) for worker in looked.pool.workers),
        claims=_claims(looked.pool, now),
        queues=tuple(_queue(queue, now) for queue in looked.pool.queues),
        projects=tuple(sorted(set(looked.projects))),
    )


def mail_line(mail: MailSummary, now: datetime) -> MailLine:
    """One mail with its way so far."""
    steps = steps_of(mail)
    return MailLine(
        email_id=mail.email_id,
        subject=mail.subject if mail.subject is not None else "(not read yet)",
        sender=mail.sender,
        project=mail.job.key.project_id if mail.job else "",
        received=moment(mail.received_at, now),
        status=status_of(mail, steps),
        steps=step_views(steps),
        answered_in=duration(mail.answered_at - mail.received_at) if mail.answered_at else "",
    )


def step_views(steps: Sequence[Step]) -> tuple[StepView, ...]:
    """Say how long each station took, counted from the one reached before it."""
    views, before = [], steps[0].at
    for step in steps:
        took = duration(step.at - before) if step.at and before and step is not steps[0] else ""
        views.append(StepView(step.name, step.label, step.progress, took))
        before = step.at or before
    return tuple(views)


def status_of(mail: MailSummary, steps: Sequence[Step]) -> StatusView:
    """The last station in a word, with how good that is."""
    if mail.dead_reason:
        return StatusView("given up", "bad")
    if steps[-1].progress is Progress.FAILED:
        return StatusView(steps[-1].label, "warn")
    if not finished(mail):
        return StatusView([step.label for step in steps if step.progress is Progress.DONE][-1], "busy")
    if mail.answered_at is None:
        return StatusView("ended without an answer", "warn")
    return _end_of(mail.job) if mail.job else StatusView("answered", "good")


def _end_of(job: JobSummary) -> StatusView:
    if job.outcome is None:
        return StatusView("answered", "good")
    if job.outcome is not Outcome.SUCCEEDED:
        return StatusView("not done", "warn")
    changed = job.result is not None and job.result.commit is not None
    if job.command is Command.UNDO and not changed:
        return StatusView("nothing to undo", "warn")
    if job.command is not Command.EDIT:
        return StatusView(_COMMAND_DONE[job.command], "good")
    if job.result is not None and job.result.question:
        return StatusView("answered", "good")  # with a question back
    return StatusView("on the edit site" if changed else "answered, nothing changed", "good")


def _worker(worker: WorkerSummary, pool: PoolSnapshot, now: datetime) -> WorkerView:
    tasks = tuple(
        Task(
            str(job.key),
            job.email_id,
            job.subject or "(no subject)",
            duration(now - job.started_at) if job.started_at else "",
        )
        for job in pool.running
        if job.worker == worker.worker
    )
    claims = tuple(str(claim.key) for claim in pool.claims if (claim.worker_id or claim.worker) == worker.worker)
    return WorkerView(worker.name, worker.pid, bool(tasks), worker.slots, moment(worker.started_at, now), tasks, claims)


def _claims(pool: PoolSnapshot, now: datetime) -> tuple[ClaimView, ...]:
    return tuple(
        ClaimView(
            str(claim.key),
            claim.worker,
            claim.fence,
            moment(claim.claimed_at, now),
            claim.lease_expires_at > now,
        )
        for claim in pool.claims
    )


def _queue(queue: QueueSummary, now: datetime) -> QueueView:
    waiting_for = duration(now - queue.waiting_since) if queue.waiting_since else ""
    return QueueView(str(queue.key), queue.open, queue.running, queue.open - queue.running, waiting_for)


def _alarms(pool: PoolSnapshot, now: datetime) -> tuple[Alarm, ...]:
    alarms = []
    if pool.dead_letter_count:
        letters = pool.dead_letters[:5]
        was = "was" if pool.dead_letter_count == 1 else "were"
        alarms.append(
            Alarm(
                f"{plural(pool.dead_letter_count, 'mail')} {was} given up: {letters[0].reason[:200]}",
                "The customer was told. Open the mail to see where it stopped; mend that, then redrive or drop it:",
                tuple(letter.email_id for letter in letters),
                ("webordinary dlq list", f"webordinary dlq redrive {letters[0].letter_id}"),
            )
        )
    if old := unowned_too_long(pool.queues, now):
        longest = max(now - queue.unowned_since for queue in old if queue.unowned_since)
        advice = "See what the workers do:" if pool.workers else "No worker lives. Start one:"
        command = "webordinary worker health" if pool.workers else "webordinary worker"
        names = ", ".join(str(queue.key) for queue in old[:5])
        what = f"No worker owns the work of {names}, for {duration(longest)} now."
        alarms.append(Alarm(what, advice, commands=(command, "webordinary queues")))
    return tuple(alarms)
