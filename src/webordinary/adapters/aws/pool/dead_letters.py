"""Dead letters in DynamoDB: one partition of numbered letters, and a mark with each mail so that it dies once."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import ConditionFailed, Dynamo, Fields, at, delete, moment, put, update
from webordinary.model.errors import Transient
from webordinary.model.jobs import DeadLetter

if TYPE_CHECKING:
    from types_boto3_dynamodb.type_defs import TransactWriteItemTypeDef as Write

PARTITION = "dead-letters"
COUNTER = {"emailId": "dead-letters-counter", "part": "-"}
COUNT = "ADD #last :one"
ALL = "#emailId = :partition"
OF_RUNS = "#emailId = :mail AND #part BETWEEN :first AND :last"
NEW = "attribute_not_exists(#emailId)"
THERE = "attribute_exists(#emailId)"

_CLEARED_AT_ONCE = 40
_LOOKED_THROUGH = 10_000


class AwsDeadLetters:
    """See DeadLetters. An item stays until an operator drops it or redrives its mail."""

    def __init__(self, dynamo: Dynamo, table: str = names.MAILS) -> None:
        self._dynamo, self._table = dynamo, table

    def add(self, email_id: str, job_id: str | None, reason: str, now: datetime, redrives: int = 0) -> None:
        what = f"giving up mail {email_id}"
        mark = _mark(email_id, redrives, reason)
        if self._dynamo.get(what, (self._table, mark)) is None:
            letter = DeadLetter(self._next_number(what), email_id, job_id, reason, now, redrives)
            fields = {**_fields_of(letter), "mark": mark["part"]}
            writes = [
                put(self._table, {**mark, "letterId": letter.letter_id}, NEW),
                put(self._table, fields, NEW),
            ]
            self._dynamo.transact(what, writes, str(uuid.uuid4()))

    def all(self, limit: int) -> Sequence[DeadLetter]:
        return [letter_of(fields) for fields in self._newest(limit)]

    def get(self, letter_id: int) -> DeadLetter | None:
        fields = self._find(letter_id)
        return letter_of(fields) if fields else None

    def remove(self, letter_id: int) -> bool:
        fields = self._find(letter_id)
        if fields is None:
            return False
        writes = [
            delete(self._table, _place(letter_id), THERE),
            delete(self._table, {"emailId": fields["mail"], "part": fields["mark"]}),
        ]
        return self._dynamo.transact(f"dropping dead letter {letter_id}", writes, str(uuid.uuid4())) is None

    def clear(self, email_id: str, redrives: int) -> None:
        what = f"clearing the dead letters of mail {email_id}"
        runs = {"mail": email_id, "first": "dead#", "last": f"dead#{redrives:06d}~"}
        while marks := self._dynamo.query(what, self._table, OF_RUNS, runs, _CLEARED_AT_ONCE):
            writes: list[Write] = []
            for mark in marks:
                writes.append(delete(self._table, {"emailId": email_id, "part": mark["part"]}))
                writes.append(delete(self._table, _place(mark["letterId"])))
            self._dynamo.transact(what, writes, str(uuid.uuid4()))

    def of_mail(self, start: str, limit: int) -> Sequence[DeadLetter]:
        """The letters of the mails whose id begins so, the newest first."""
        found = [letter_of(fields) for fields in self._newest(_LOOKED_THROUGH) if fields["mail"].startswith(start)]
        return found[:limit]

    def _newest(self, limit: int) -> list[Fields]:
        what, values = "reading the dead letters", {"partition": PARTITION}
        return self._dynamo.query(what, self._table, ALL, values, limit, newest=True)

    def _find(self, letter_id: int) -> Fields | None:
        return self._dynamo.get(f"reading dead letter {letter_id}", (self._table, _place(letter_id)))

    def _next_number(self, what: str) -> int:
        counted = self._dynamo.write(what, update(self._table, COUNTER, COUNT, one=1))
        if isinstance(counted, ConditionFailed):
            raise Transient(f"{what}: letters cannot be counted")
        return int(counted["last"])


def letter_of(fields: Fields) -> DeadLetter:
    """An item as a letter."""
    return DeadLetter(
        letter_id=fields["letterId"],
        email_id=fields["mail"],
        job_id=fields.get("jobId"),
        reason=fields["reason"],
        died_at=at(fields["diedAt"]),
        redrives=fields["redrives"],
    )


def _fields_of(letter: DeadLetter) -> Fields:
    return {
        **_place(letter.letter_id),
        "letterId": letter.letter_id,
        "mail": letter.email_id,
        "jobId": letter.job_id,
        "reason": letter.reason,
        "diedAt": moment(letter.died_at),
        "redrives": letter.redrives,
    }


def _place(letter_id: int) -> Mapping[str, object]:
    return {"emailId": PARTITION, "part": f"{letter_id:012d}"}


def _mark(email_id: str, redrives: int, reason: str) -> dict[str, object]:
    """The same mail with the same reason after as many redrives has the same mark."""
    digest = hashlib.sha256(reason.encode()).hexdigest()[:32]
    return {"emailId": email_id, "part": f"dead#{redrives:06d}#{digest}"}
