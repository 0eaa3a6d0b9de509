"""Rows to records: the one place that knows how points in time and results are written down."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import fields
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from webordinary.model.claims import Claim, ClaimStatus
from webordinary.model.jobs import Job, JobResult, JobState, Outcome
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser

# A worker reads the same few keys and words over and over, and these are on the path of every job.
key_of = lru_cache(maxsize=4096)(ProjectUser.parse)
_COMMANDS = {str(command): command for command in Command}
_STATES = {str(state): state for state in JobState}
_OUTCOMES = {str(outcome): outcome for outcome in Outcome}
_RESULT_FIELDS = tuple(field.name for field in fields(JobResult))
json_text = json.JSONEncoder(ensure_ascii=False).encode


def at(seconds: float) -> datetime:
    """A stored point in time."""
    return datetime.fromtimestamp(seconds, UTC)


def at_or_none(seconds: float | None) -> datetime | None:
    """A stored point in time that may not have come yet."""
    return None if seconds is None else at(seconds)


def job_of(row: sqlite3.Row) -> Job:
    """A row of `jobs`."""
    return _job(_named(row))


def started_job_of(row: sqlite3.Row, claim: Claim, now: float) -> Job:
    """A row of `jobs` as it was just before the job started under `claim`."""
    fields = _named(row)
    started = {"state": "running", "worker": claim.worker, "fence": claim.fence, "started_at": now, "not_before": None}
    return _job(fields | started | {"attempts": fields["attempts"] + 1})


def _named(row: sqlite3.Row) -> dict[str, Any]:
    """Fetched by name one by one, sqlite3 would search the list of columns for each."""
    return dict(zip(row.keys(), row, strict=True))


def _job(fields: dict[str, Any]) -> Job:
    return Job(
        job_id=fields["job_id"],
        key=key_of(fields["key"]),
        order=fields["ord"],
        thread_order=fields["thread_ord"],
        thread_id=fields["thread_id"],
        email_id=fields["email_id"],
        command=_COMMANDS[fields["command"]],
        state=_STATES[fields["state"]],
        recorded_at=at(fields["recorded_at"]),
        attempts=fields["attempts"],
        interruptions=fields["interruptions"],
        worker=fields["worker"],
        fence=fields["fence"],
        outcome=_OUTCOMES[fields["outcome"]] if fields["outcome"] else None,
        result=result_of(fields["result"]),
        cancel_requested=bool(fields["cancel_requested"]),
        task_token=fields["task_token"],
        preempted_token=fields["preempted_token"],
        queued_at=at_or_none(fields["queued_at"]),
        not_before=at_or_none(fields["not_before"]),
        started_at=at_or_none(fields["started_at"]),
        settled_at=at_or_none(fields["settled_at"]),
    )


def claim_of(row: sqlite3.Row) -> Claim:
    """A row of `claims`."""
    return Claim(
        key=key_of(row["key"]),
        worker=row["worker"],
        fence=row["fence"],
        beat=row["beat"],
        status=ClaimStatus(row["status"]),
        claimed_at=at(row["claimed_at"]),
        last_activity_at=at(row["last_activity_at"]),
        lease_expires_at=at(row["lease_expires_at"]),
    )


def result_text(result: JobResult) -> str:
    """A result as it is stored."""
    return json_text({name: getattr(result, name) for name in _RESULT_FIELDS})


def result_of(text: str | None) -> JobResult | None:
    """A stored result."""
    if text is None:
        return None
    fields = json.loads(text)
    lists = {name: tuple(fields.get(name, ())) for name in ("changed_files", "pictures")}
    return JobResult(**{**fields, **lists})
