"""The callbacks that jobs owe, in DynamoDB: a sparse index of the jobs whose workflow waits to be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import Refused
from webordinary.adapters.aws.pool.job_items import OWES, Record, fields_of, owes, record_of
from webordinary.adapters.aws.pool.job_table import UNCHANGED, JobTable
from webordinary.adapters.aws.writes import put, update
from webordinary.model.errors import Transient
from webordinary.model.jobs import Job

OWING = "#owes = :owes"
PAID = "SET #calledBack = :yes REMOVE #owes ADD #revision :one"
OWES_THIS_ALONE = """
#jobId = :job AND #taskToken = :token AND #state = :settled AND attribute_not_exists(#preemptedToken)"""

_TRIES = 8


class AwsOwedCallbacks:
    """Effects that follow from a job's record."""

    def __init__(self, table: JobTable) -> None:
        self._table, self._dynamo = table, table.dynamo

    def owed(self, limit: int) -> Sequence[Job]:
        """Jobs whose workflow waits to be told."""
        what = "looking for owed callbacks"
        found = self._dynamo.query(what, self._table.name, OWING, {"owes": OWES}, limit, index=names.OWED_INDEX)
        keys = [{"projectUserId": fields["projectUserId"], "order": fields["order"]} for fields in found]
        records = [record_of(fields) for fields in self._dynamo.get_all(what, self._table.name, keys)]
        return [record.job for record in records if owes(record)]

    def paid(self, job_id: str, token: str) -> None:
        """The workflow behind this token was told."""
        what = f"noting that job {job_id} was told"
        values = {"job": job_id, "token": token, "settled": "settled", "yes": True, "one": 1}
        for _ in range(_TRIES):
            place = self._table.place(job_id)
            written = self._dynamo.write(what, update(self._table.name, place, PAID, OWES_THIS_ALONE, **values))
            if not isinstance(written, Refused):
                return
            if not written.by[0]:
                self._table.missed(job_id, place)
            elif self._pay(what, record_of(written.by[0]), token):
                return
        raise Transient(f"job {job_id} changes faster than it can be written")

    def _pay(self, what: str, record: Record, token: str) -> bool:
        """What is not the plain case: a job that goes on, or owes word to two tokens. False if it changed meanwhile."""
        job = record.job
        told = replace(job, preempted_token=None) if job.preempted_token == token else job
        after = Record(told, record.revision + 1, record.called_back or job.task_token == token, record.told)
        if (after.job, after.called_back) == (job, record.called_back):
            return True
        write = put(self._table.name, fields_of(after), UNCHANGED, revision=record.revision)
        return not isinstance(self._dynamo.write(what, write), Refused)
