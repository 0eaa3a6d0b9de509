"""Rows to records: the one place that knows how points in time and results are written down."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import lru_cache
from importlib import resources
from operator import attrgetter
from typing import Any

from webordinary.model.claims import Claim, ClaimStatus
from webordinary.model.jobs import DeferReason, Job, JobOutcome, JobResult, JobState
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser

JOBS = """
SELECT job_id, key, ord, thread_ord, thread_id, email_id, command, state, recorded_at, attempts, interruptions,
  worker, fence, outcome, result, cancel_requested, task_token, preempted_token,
  queued_at, not_before, started_at, settled_at, held, outages
FROM jobs"""

_COLUMNS = tuple(column.strip() for column in JOBS.split("FROM", maxsplit=1)[0].replace("SELECT", "").split(","))
_ORDER = _COLUMNS.index("ord")
MOVE = "UPDATE jobs SET id = ?, ord = ? WHERE id = ?"

# A worker reads the same few words over and over, and these are on the path of every job.
_COMMANDS = {str(command): command for command in Command}
_STATES = {str(state): state for state in JobState}
_HELD_BY = {str(held): held for held in DeferReason}
_OUTCOMES = {str(outcome): outcome for outcome in JobOutcome}
_RESULT_FIELDS = tuple(field.name for field in fields(JobResult))
_result_values = attrgetter(*_RESULT_FIELDS)
json_text = json.JSONEncoder(ensure_ascii=False).encode


_FRAME = resources.files(__package__).joinpath("reply_frame.txt").read_bytes().replace(b"\n", b"\r\n")
"""What most replies have in common, as a preset dictionary: without it, it is nine tenths of a compressed reply.

Stored replies are read with it, so it never changes; a better one gets another first byte.
"""


def packed(text: bytes) -> bytes:
    """A written or parsed mail as it is stored."""
    compressor = zlib.compressobj(zdict=_FRAME)
    return b"\1" + compressor.compress(text) + compressor.flush()


def unpacked(stored: bytes) -> bytes:
    """The text again; rows of earlier versions hold it as it is, and no mail begins with such a byte."""
    match stored[:1]:
        case b"\0":
            return zlib.decompress(stored[1:])
        case b"\1":
            return zlib.decompressobj(zdict=_FRAME).decompress(stored[1:])
    return stored


def at(seconds: float) -> datetime:
    """A stored point in time."""
    return datetime.fromtimestamp(seconds, UTC)


def at_or_none(seconds: float | None) -> datetime | None:
    """A stored point in time that may not have come yet."""
    return None if seconds is None else at(seconds)


def job_of(row: Sequence[Any]) -> Job:
    """A row of JOBS; by place, because sqlite3 would search for each name."""
    (
        job_id, key, order, thread_order, thread_id, email_id, command, state, recorded_at, attempts, interruptions,
        worker, fence, outcome, result, cancel_requested, task_token, preempted_token,
        queued_at, not_before, started_at, settled_at, held, outages,
    ) = row  # fmt: skip
    project_user = ProjectUser.parse(key)
    return Job(
        job_id,
        project_user,
        order,
        thread_order,
        thread_id,
        email_id,
        _COMMANDS[command],
        _STATES[state],
        at(recorded_at),
        attempts,
        interruptions,
        worker,
        fence,
        _OUTCOMES[outcome] if outcome else None,
        result_of(result, project_user),
        bool(cancel_requested),
        task_token,
        preempted_token,
        at_or_none(queued_at),
        at_or_none(not_before),
        at_or_none(started_at),
        at_or_none(settled_at),
        _HELD_BY[held] if held else None,
        outages,
    )


@lru_cache(maxsize=256)
def _update(changed: tuple[int, ...]) -> str:
    """The statement that writes these fields of a job; unnamed columns cost no work on other indexes."""
    changes = ", ".join(f"{_COLUMNS[place]} = ?" for place in changed)
    return f"UPDATE jobs SET {changes} WHERE id = ?"  # noqa: S608 - names of this module, never of a caller


def save_changes(conn: sqlite3.Connection, before: Job, after: Job) -> None:
    """Write what a transition made of an open job, whose order is the id of its row."""
    changed = [place for place, value in enumerate(after) if value is not before[place]]
    if before.order != after.order:
        changed.remove(_ORDER)
        conn.execute(MOVE, (after.order, after.order, before.order))
    if changed:
        values = [_written(after[place]) for place in changed]
        conn.execute(_update(tuple(changed)), (*values, after.order))


def _written(value: object) -> object:
    write = _WRITTEN.get(type(value))
    return write(value) if write else value


def claim_of(row: sqlite3.Row) -> Claim:
    """A row of `claims`."""
    return Claim(
        key=ProjectUser.parse(row["key"]),
        worker=row["worker"],
        fence=row["fence"],
        beat=row["beat"],
        status=ClaimStatus(row["status"]),
        claimed_at=at(row["claimed_at"]),
        last_activity_at=at(row["last_activity_at"]),
        lease_expires_at=at(row["lease_expires_at"]),
    )


def result_text(result: JobResult) -> str:
    """A result as it is stored; what is empty is left out."""
    fields_with_values = zip(_RESULT_FIELDS, _result_values(result), strict=True)
    return json_text({name: value for name, value in fields_with_values if value or name == "summary"})


def result_of(text: str | None, key: ProjectUser) -> JobResult | None:
    """A stored result of a job of this key."""
    return None if text is None else JobResult.read(json.loads(text), key.user_id)


_WRITTEN: dict[type, Callable[[Any], object]] = {
    datetime: datetime.timestamp,
    JobResult: result_text,
    **dict.fromkeys(
        (JobState, JobOutcome, DeferReason), attrgetter("_value_")
    ),  # sqlite3 is slow with subclasses of str
}
