"""Where a mail is on its way: received, queued, claimed, edited, on the edit site, answered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from webordinary.model.jobs import JobState, Outcome
from webordinary.model.mail import Command
from webordinary.model.overview import JobSummary, MailSummary


class Progress(StrEnum):
    """A step is behind us, under way, still to come, left out, or where the mail stopped."""

    DONE = "done"
    ACTIVE = "active"
    WAITING = "waiting"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Step:
    """One station; `at` is when the mail came through."""

    name: str
    label: str
    progress: Progress
    at: datetime | None = None


_Station = tuple[str, str, datetime | None]  # name, label, when it was reached

_EDITED = {Command.UNDO: "taken back"}
_ON_THE_EDIT_SITE = "on the edit site"
_SHOWN = {Command.PUBLISH: "on the public site"}
_NEVER_QUEUED = (Command.STATUS, Command.STOP)


def steps_of(mail: MailSummary) -> tuple[Step, ...]:
    """The way of one mail, as far as it is known."""
    for kind, name in (("MailRefused", "refused"), ("MailHeld", "held")):
        if at := mail.milestones.get(kind):
            return (_received(mail), Step(name, name, Progress.FAILED, at))
    stations = _stations(mail)
    reached = [at is not None for _, _, at in stations]
    last = max((i for i, done in enumerate(reached) if done), default=-1)
    over = finished(mail)
    steps = [_received(mail)]
    for i, (name, label, at) in enumerate(stations):
        if at is not None:
            progress = Progress.DONE
        elif i < last or over:
            progress = Progress.SKIPPED
        else:
            progress = Progress.ACTIVE if i == last + 1 else Progress.WAITING
        steps.append(Step(name, label, progress, at))
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
    """An interrupted job starts again: what happened under an earlier start is not where it stands."""
    at = mail.milestones.get(kind)
    running = job.state in (JobState.RUNNING, JobState.SETTLED)
    return at if at and running and (job.started_at is None or at >= job.started_at) else None


def _changed(job: JobSummary) -> bool:
    # Events may reach the disk a moment later than the settled record, which is the truth.
    return job.outcome is Outcome.SUCCEEDED and job.result is not None and job.result.commit is not None


def _received(mail: MailSummary) -> Step:
    return Step("received", "received", Progress.DONE, mail.received_at)


def _given_up(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Mark the first station that the mail never came through."""
    stop = next((i for i, step in enumerate(steps) if step.progress is not Progress.DONE), len(steps))
    return tuple(Step(step.name, "given up", Progress.FAILED) if i == stop else step for i, step in enumerate(steps))
