"""Jobs to items and back. An open job lies at its order, a settled one at minus that, so that open ones are a range."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from webordinary.adapters.aws.items import at, at_or_none, epoch, moment, moment_or_none
from webordinary.adapters.aws.pool.diary import Told, from_text, to_text
from webordinary.model.jobs import HeldBy, Job, JobResult, JobState, Outcome
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser

OPEN = "open"
OWES = "callback"
RETENTION_SECONDS = 30 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Record:
    """A job as it is stored. Every write makes a new revision, so that nobody overwrites what he did not see."""

    job: Job
    revision: int
    called_back: bool = False
    told: tuple[Told, ...] = ()
    """What workers told of it, for people."""

    @property
    def key(self) -> dict[str, object]:
        """Where it lies."""
        return key_of(self.job)


def key_of(job: Job) -> dict[str, object]:
    """Where a job in this state lies."""
    return {"projectUserId": str(job.key), "order": job.order if job.open else -job.order}


def counter_key(key: ProjectUser) -> dict[str, object]:
    """Where the last order that a key gave out lies."""
    return {"projectUserId": str(key), "order": 0}


def pointer_key(job_id: str) -> dict[str, object]:
    """What leads from a job's name to its place."""
    return {"projectUserId": f"job:{job_id}", "order": 0}  # no key has a colon, so none is called so


def pointer_of(job: Job) -> dict[str, object]:
    """The item that leads from a job's name to its place."""
    place = {"key": str(job.key), "at": key_of(job)["order"]}
    return {**pointer_key(job.job_id), **place, "expiresAt": _expires_at(job)}


def fields_of(record: Record, request: str | None = None) -> dict[str, object]:
    """A job as an item; `request` names the transaction that wrote it."""
    job = record.job
    return {
        **key_of(job),
        "jobId": job.job_id,
        "threadOrder": job.thread_order,
        "threadId": job.thread_id,
        "messageId": job.email_id,
        "command": str(job.command),
        "state": str(job.state),
        "recordedAt": moment(job.recorded_at),
        "attempts": job.attempts,
        "interruptions": job.interruptions,
        "containerId": job.worker,
        "fence": job.fence,
        "outcome": str(job.outcome) if job.outcome else None,
        "result": asdict(job.result) if job.result else None,
        "cancelRequested": job.cancel_requested or None,
        "taskToken": job.task_token,
        "preemptedToken": job.preempted_token,
        "calledBack": record.called_back or None,
        "queuedAt": moment_or_none(job.queued_at),
        "notBefore": moment_or_none(job.not_before),
        "held": str(job.held) if job.held else None,
        "claimedAt": moment_or_none(job.started_at),
        "settledAt": moment_or_none(job.settled_at),
        "openShard": OPEN if job.open else None,
        "owes": OWES if owes(record) else None,
        "expiresAt": _expires_at(job),
        "told": to_text(record.told),
        "revision": record.revision,
        "request": request,
    }


def record_of(fields: dict[str, Any]) -> Record:
    """An item as a job."""
    job = Job(
        job_id=fields["jobId"],
        key=ProjectUser.parse(fields["projectUserId"]),
        order=abs(fields["order"]),
        thread_order=fields["threadOrder"],
        thread_id=fields["threadId"],
        email_id=fields["messageId"],
        command=Command(fields["command"]),
        state=JobState(fields["state"]),
        recorded_at=at(fields["recordedAt"]),
        attempts=fields["attempts"],
        interruptions=fields["interruptions"],
        worker=fields.get("containerId"),
        fence=fields["fence"],
        outcome=Outcome(fields["outcome"]) if "outcome" in fields else None,
        result=_result_of(fields["result"]) if "result" in fields else None,
        cancel_requested=fields.get("cancelRequested", False),
        task_token=fields.get("taskToken"),
        preempted_token=fields.get("preemptedToken"),
        queued_at=at_or_none(fields.get("queuedAt")),
        not_before=at_or_none(fields.get("notBefore")),
        started_at=at_or_none(fields.get("claimedAt")),
        settled_at=at_or_none(fields.get("settledAt")),
        held=HeldBy(fields["held"]) if "held" in fields else None,
    )
    return Record(job, fields["revision"], fields.get("calledBack", False), from_text(fields.get("told")))


def owes(record: Record) -> bool:
    """A workflow waits to be told of this job."""
    settled = not record.job.open and record.job.task_token is not None and not record.called_back
    return settled or record.job.preempted_token is not None


def _expires_at(job: Job) -> int | None:
    return epoch(job.settled_at, RETENTION_SECONDS) if job.settled_at else None


def _result_of(fields: dict[str, Any]) -> JobResult:
    lists = {name: tuple(fields.get(name, ())) for name in ("changed_files", "pictures")}
    return JobResult(**{**fields, **lists, "cost_usd": float(fields.get("cost_usd", 0))})
