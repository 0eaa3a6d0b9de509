"""View models of the home page: mails with their progress, workers, claims, queues, alerts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from webordinary.entrypoints.dashboard.text import FormattedTime, duration, moment, plural
from webordinary.model.jobs import JobOutcome, JobState
from webordinary.model.mail import Command
from webordinary.model.snapshot import JobSummary, MailSummary, PoolSnapshot, QueueSummary, WorkerSummary
from webordinary.pool.alerts import unowned_too_long


class Progress(StrEnum):
    """The state of one step of a mail."""

    DONE = "done"
    ACTIVE = "active"
    WAITING = "waiting"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """One step of a mail's way; `took` is the time since the step before it."""

    name: str
    label: str
    progress: Progress
    took: str = ""


_RECEIVED = ProgressStep("received", "received", Progress.DONE)
_Station = tuple[str, str, datetime | None]  # name, label, when it was reached

_EDITED = {Command.UNDO: "taken back"}
_ON_THE_EDIT_SITE = "on the edit site"
_SHOWN = {Command.PUBLISH: "on the public site"}
_NEVER_QUEUED = (Command.STATUS, Command.STOP)


def steps_of(mail: MailSummary) -> tuple[ProgressStep, ...]:
    """The way of one mail, as far as it is known."""
    for kind, name in (("MailRefused", "refused"), ("MailDropped", "dropped"), ("MailHeld", "held")):
        if at := mail.milestones.get(kind):
            return (_RECEIVED, ProgressStep(name, name, Progress.FAILED, duration(at - mail.received_at)))
    stations = _stations(mail)
    last = max((i for i, (_, _, at) in enumerate(stations) if at), default=-1)
    upcoming = Progress.SKIPPED if finished(mail) else Progress.WAITING
    steps, before = [_RECEIVED], mail.received_at
    for i, (name, label, at) in enumerate(stations):
        if at is not None:
            steps.append(ProgressStep(name, label, Progress.DONE, duration(at - before)))
            before = at
        elif i < last:
            steps.append(ProgressStep(name, label, Progress.SKIPPED))
        else:
            is_next = i == last + 1 and upcoming is Progress.WAITING
            steps.append(ProgressStep(name, label, Progress.ACTIVE if is_next else upcoming))
    return _given_up(tuple(steps)) if mail.dead_reason else tuple(steps)


def finished(mail: MailSummary) -> bool:
    """Nothing more will happen to this mail by itself."""
    stopped = mail.dead_reason is not None or "MailRefused" in mail.milestones or "MailHeld" in mail.milestones
    return stopped or mail.ended or mail.answered_at is not None


def _stations(mail: MailSummary) -> list[_Station]:
    answered: _Station = ("answered", "answered", mail.answered_at)
    job = mail.job
    if job is not None and job.command in _NEVER_QUEUED:
        return [answered]
    if job is None:
        to_come: list[_Station] = [(name, name, None) for name in ("queued", "claimed", "edited")]
        return [*to_come, ("published", _ON_THE_EDIT_SITE, None), answered]
    started = job.started_at if job.state in (JobState.RUNNING, JobState.SETTLED) else None
    by = f"claimed by {job.worker}" if started and job.worker else "claimed"
    edited: _Station = ("edited", _EDITED.get(job.command, "edited"), _edited_at(mail, job))
    return [
        ("queued", "queued", job.queued_at if job.state is not JobState.PREPARING else None),
        ("claimed", by, started),
        *([] if job.command is Command.PUBLISH else [edited]),
        ("published", _SHOWN.get(job.command, _ON_THE_EDIT_SITE), _published_at(mail, job)),
        answered,
    ]


def _edited_at(mail: MailSummary, job: JobSummary) -> datetime | None:
    return _of_this_start(mail, job, "ChangeCommitted") or (job.settled_at if _changed(job) else None)


def _published_at(mail: MailSummary, job: JobSummary) -> datetime | None:
    return _of_this_start(mail, job, "SitePublished") or (job.settled_at if _changed(job) else None)


def _of_this_start(mail: MailSummary, job: JobSummary, kind: str) -> datetime | None:
    """When the event happened, unless that was under an earlier start of the job."""
    at = mail.milestones.get(kind)
    running = job.state in (JobState.RUNNING, JobState.SETTLED)
    return at if at and running and (job.started_at is None or at >= job.started_at) else None


def _changed(job: JobSummary) -> bool:
    # Events may reach the disk a moment later than the settled record, which is the truth.
    return job.outcome is JobOutcome.SUCCEEDED and job.result is not None and job.result.commit is not None


def _given_up(steps: tuple[ProgressStep, ...]) -> tuple[ProgressStep, ...]:
    """Mark the first step that the mail did not pass."""
    stop = next((i for i, step in enumerate(steps) if step.progress is not Progress.DONE), len(steps))
    return tuple(
        ProgressStep(step.name, "given up", Progress.FAILED) if i == stop else step for i, step in enumerate(steps)
    )


_COMMAND_DONE = {
    Command.UNDO: "taken back on the edit site",
    Command.PUBLISH: "on the public site",
    Command.STATUS: "answered",
    Command.STOP: "stopped",
}


@dataclass(frozen=True, slots=True)
class StatusView:
    """The state of a mail in a word or two; `tone` is good, busy, warn or bad."""

    label: str
    tone: str


@dataclass(frozen=True, slots=True)
class MailLine:
    """One mail in a list."""

    email_id: str
    subject: str
    sender: str
    project: str
    received: FormattedTime
    status: StatusView
    steps: tuple[ProgressStep, ...]
    answered_in: str


@dataclass(frozen=True, slots=True)
class RunningJobView:
    """A job that a worker runs now."""

    key: str
    email_id: str
    subject: str
    since: str


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker with its running jobs and its claims."""

    name: str
    pid: int
    busy: bool
    slots: int
    up_since: FormattedTime
    tasks: tuple[RunningJobView, ...]
    claims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A claim of a worker."""

    key: str
    worker: str
    fence: int
    since: FormattedTime
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
class AlertView:
    """A condition that needs a person: what happened, and what to do."""

    what: str
    advice: str
    email_ids: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HomeView:
    """The whole system at a glance."""

    seq: int
    at: FormattedTime
    alarms: tuple[AlertView, ...]
    in_flight: tuple[MailLine, ...]
    done: tuple[MailLine, ...]
    next_page: str
    workers: tuple[WorkerView, ...]
    claims: tuple[ClaimView, ...]
    queues: tuple[QueueView, ...]
    projects: tuple[str, ...]


def home_view(
    seq: int,
    mails: Sequence[MailSummary],
    pool: PoolSnapshot,
    projects: Sequence[str],
    now: datetime,
    *,
    next_page: str,
) -> HomeView:
    """The view of these mails and this pool; `seq` is the newest event that they include."""
    unique = {mail.email_id: mail for mail in mails}.values()
    newest_first = sorted(unique, key=lambda mail: (mail.received_at, mail.email_id), reverse=True)
    return HomeView(
        seq=seq,
        at=moment(now, now),
        alarms=_alarms(pool, now),
        in_flight=tuple(mail_line(mail, now) for mail in newest_first if not finished(mail)),
        done=tuple(mail_line(mail, now) for mail in newest_first if finished(mail)),
        next_page=next_page,
        workers=tuple(_worker(worker, pool, now) for worker in pool.workers),
        claims=_claims(pool, now),
        queues=tuple(_queue(queue, now) for queue in pool.queues),
        projects=tuple(sorted(set(projects))),
    )


def mail_line(mail: MailSummary, now: datetime) -> MailLine:
    """One mail with its progress."""
    steps = steps_of(mail)
    return MailLine(
        email_id=mail.email_id,
        subject=mail.subject if mail.subject is not None else "(not read yet)",
        sender=mail.sender,
        project=mail.job.key.project_id if mail.job else "",
        received=moment(mail.received_at, now),
        status=status_of(mail, steps),
        steps=steps,
        answered_in=duration(mail.answered_at - mail.received_at) if mail.answered_at else "",
    )


def status_of(mail: MailSummary, steps: Sequence[ProgressStep]) -> StatusView:
    """The last step that the mail reached, with its tone."""
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
    if job.outcome is not JobOutcome.SUCCEEDED:
        return StatusView("not done", "warn")
    if job.result is not None and job.result.question:
        return StatusView("asked back", "warn")
    changed = job.result is not None and job.result.commit is not None
    if job.command is Command.UNDO and not changed:
        return StatusView("nothing to undo", "warn")
    if job.command is not Command.EDIT:
        return StatusView(_COMMAND_DONE[job.command], "good")
    return StatusView("on the edit site" if changed else "answered, nothing changed", "good")


def _worker(worker: WorkerSummary, pool: PoolSnapshot, now: datetime) -> WorkerView:
    tasks = tuple(
        RunningJobView(
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


def _alarms(pool: PoolSnapshot, now: datetime) -> tuple[AlertView, ...]:
    alarms = []
    if pool.dead_letter_count:
        letters = pool.dead_letters[:5]
        was = "was" if pool.dead_letter_count == 1 else "were"
        alarms.append(
            AlertView(
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
        alarms.append(AlertView(what, advice, commands=(command, "webordinary queues")))
    return tuple(alarms)
