"""S3 tells of raw mails: at least once each, their keys quoted, and with a test event first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote_plus

from aws_lambda_powertools.utilities.data_classes import S3Event

from webordinary.model.errors import Permanent

MAX_MAIL_BYTES = 41 * 1024 * 1024
"""SES takes 40 MB, and writes its own headers before them."""
_TEST_EVENT = "s3:TestEvent"


@dataclass(frozen=True, slots=True)
class Told:
    """An object that S3 tells of."""

    bucket: str
    key: str
    size: int
    at: datetime


def intake(event: dict[str, Any], bucket: str, take: Callable[[str, datetime], None]) -> dict[str, int]:
    """Take every mail of this event.

    One that fails does not hold up the others, but the event fails in the end: Lambda tries it again twice, and
    leaves it in the queue of dead letters then.
    """
    if event.get("Event") == _TEST_EVENT:
        return {"taken": 0}
    failed: list[Exception] = []
    objects = tuple(_objects(event))
    for told in objects:
        try:
            _check(told, bucket)
            take(told.key, told.at)
        except Exception as problem:
            failed.append(problem)
    if failed:
        raise failed[0]
    return {"taken": len(objects)}


def _objects(event: dict[str, Any]) -> Iterator[Told]:
    for record in S3Event(event).records:
        thing = record.s3.get_object
        at = datetime.fromisoformat(record.event_time)
        yield Told(record.s3.bucket.name, unquote_plus(thing.key), int(thing.get("size") or 0), at)


def _check(told: Told, bucket: str) -> None:
    if told.bucket != bucket:
        where = f"mails come to {bucket}: take this function out of the other's notifications"
        raise Permanent(f"{told.key} lies in {told.bucket}, and {where}")
    if told.size > MAX_MAIL_BYTES:
        size, most = told.size // 2**20, MAX_MAIL_BYTES // 2**20
        raise Permanent(f"{told.key} has {size} MB and a mail has at most {most}: SES did not bring it; remove it")
