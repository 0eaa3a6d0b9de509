"""Which workers there are: each says so now and then in the table of ownership, claim or no claim.

For people to look at. Nothing is decided by it: whether a claim is still somebody's, its own beat tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import Dynamo
from webordinary.adapters.aws.items import at, epoch, moment
from webordinary.adapters.aws.writes import put
from webordinary.model.overview import WorkerSummary

EACH_SECONDS = 180.0
BELIEVED = timedelta(seconds=EACH_SECONDS + 30)
"""Who has not been heard of for longer is not shown."""
GARBAGE_AFTER_SECONDS = 24 * 3600
_PREFIX = "worker:"
"""No key has a colon, so none is called so; `worker#ann` may be one."""


@dataclass(frozen=True, slots=True)
class Presence:
    """See above; one write each time."""

    dynamo: Dynamo
    table: str = names.OWNERSHIP

    def tell(self, worker: WorkerSummary, now: datetime) -> None:
        """This worker lives and works."""
        self._write(worker, now, gone=False)

    def leave(self, worker: WorkerSummary, now: datetime) -> None:
        """This worker ends in good order."""
        self._write(worker, now, gone=True)

    def _write(self, worker: WorkerSummary, now: datetime, *, gone: bool) -> None:
        fields = {
            "projectKey": f"{_PREFIX}{worker.worker}",
            "name": worker.name,
            "pid": worker.pid,
            "slots": worker.slots,
            "startedAt": moment(worker.started_at),
            "seenAt": moment(now),
            "gone": gone,
            "ttl": epoch(now, GARBAGE_AFTER_SECONDS),
        }
        self.dynamo.write(f"telling that {worker.worker} is there", put(self.table, fields))


def worker_in(row: Mapping[str, Any], now: datetime) -> WorkerSummary | None:
    """The worker that an item of the table tells of; None if it is another item, or old."""
    key = str(row["projectKey"])
    if not key.startswith(_PREFIX) or row["gone"] or at(row["seenAt"]) < now - BELIEVED:
        return None
    return WorkerSummary(key.removeprefix(_PREFIX), row["name"], row["pid"], row["slots"], at(row["startedAt"]))
