"""The table of ownership: one item a key. Only workers write it; when a customer leaves, the operator clears it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import (
    ConditionFailed,
    Dynamo,
    Fields,
    Place,
    at,
    delete,
    epoch,
    moment,
    put,
    update,
)
from webordinary.model.claims import LEASE_SECONDS, Claim, ClaimStatus, next_fence
from webordinary.model.errors import WebOrdinaryError
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import WorkerSummary

if TYPE_CHECKING:
    from types_boto3_dynamodb.type_defs import TransactWriteItemTypeDef as Write

GARBAGE_AFTER_SECONDS = 7 * 24 * 3600
MOST_CLAIMS = 100

# The fence grows although this write has not read the last one: where it would not, the item refuses and tells.
TAKEABLE = """
attribute_not_exists(#projectKey) OR (#status <> :held AND #fence < :fence)"""
OR_UNMOVED = """
 OR (#status = :held AND #containerId = :over_worker AND #fence = :over_fence AND #beat = :over_beat)"""

MINE = "#containerId = :worker AND #fence = :mine AND #status = :held"

RUNS = "SET #running = :job, #lastActivity = :now"
RESTS = "SET #lastActivity = :now REMOVE #running"
RENEW = "SET #leaseExpiresAt = :until, #ttl = :ttl ADD #beat :one"
# Whom it belonged to goes, so that the index by worker holds what is held.
FREE = "SET #status = :free REMOVE #containerId, #running"

OF_WORKER = "#containerId = :worker"


class ClaimTable:
    """Claims as items, and the writes that change them."""

    def __init__(self, dynamo: Dynamo, name: str = names.OWNERSHIP, lease_seconds: float = LEASE_SECONDS) -> None:
        self.dynamo, self.name = dynamo, name
        self._lease = timedelta(seconds=lease_seconds)

    def place(self, key: ProjectUser) -> Place:
        """The item key of a claim."""
        return self.name, {"projectKey": str(key)}

    def look(self, key: ProjectUser) -> Claim | None:
        """Who holds the key now."""
        fields = self.row(key)
        return claim_of(fields) if fields and fields["status"] != ClaimStatus.FREE else None

    def look_all(self, keys: Collection[ProjectUser]) -> dict[ProjectUser, Claim]:
        """Who holds each of these keys now."""
        places = [{"projectKey": key.text} for key in keys]
        rows = self.dynamo.get_all(f"looking who owns {len(places)} keys", self.name, places)
        claims = (claim_of(row) for row in rows if row["status"] != ClaimStatus.FREE)
        return {claim.key: claim for claim in claims}

    def row(self, key: ProjectUser) -> Fields | None:
        """The item of a key, even if it is free."""
        return self.dynamo.get(f"looking who owns {key}", self.place(key))

    def held_by(self, worker: str) -> list[Fields]:
        """What a worker holds, by an index that may be a moment behind."""
        what = f"looking what {worker} holds"
        values = {"worker": worker}
        found = self.dynamo.query(what, self.name, OF_WORKER, values, MOST_CLAIMS, index=names.WORKER_INDEX)
        rows = self.dynamo.get_all(what, self.name, [{"projectKey": fields["projectKey"]} for fields in found])
        return [fields for fields in rows if (fields.get("containerId"), fields["status"]) == (worker, "held")]

    def new(self, key: ProjectUser, worker: str, last_fence: int, now: datetime) -> Claim:
        """A claim under the next fence."""
        fence = next_fence(last_fence, now)
        return Claim(key, worker, fence, 0, ClaimStatus.HELD, now, now, now + self._lease)

    def take(self, claim: Claim, over: Claim | None, job_id: str, request: str) -> Write:
        """Take a key that is free, or held by `over` unmoved, for this job."""
        fields = {**_fields_of(claim), "running": job_id, "request": request}
        values: dict[str, Any] = {"held": "held", "fence": claim.fence}
        if over is None:
            return put(self.name, fields, TAKEABLE, **values)
        seen = {"over_worker": over.worker, "over_fence": over.fence, "over_beat": over.beat}
        return put(self.name, fields, TAKEABLE + OR_UNMOVED, **values, **seen)

    def use(self, claim: Claim, job_id: str | None, now: datetime) -> Write:
        """Set the job that runs under the claim, or none."""
        change, values = (RUNS, {"job": job_id}) if job_id else (RESTS, {})
        return self._update(claim, change, MINE, now=moment(now), held="held", **values)

    def renew(self, claim: Claim, now: datetime) -> Write:
        """Prolong the lease and move the beat."""
        until = now + self._lease
        values = {"until": moment(until), "ttl": epoch(until, GARBAGE_AFTER_SECONDS), "one": 1, "held": "held"}
        return self._update(claim, RENEW, MINE, **values)

    def free(self, claim: Claim) -> Write:
        """Set the claim to free."""
        return self._update(claim, FREE, MINE, free="free", held="held")

    def forget(self, key: ProjectUser) -> None:
        """Remove an offboarded customer's key; its holder notices at its next renewal. Later fences are larger."""
        table, place = self.place(key)
        self.dynamo.write(f"forgetting the claim of {key}", delete(table, place))

    def _update(self, claim: Claim, change: str, when: str, **values: object) -> Write:
        table, key = self.place(claim.key)
        return update(table, key, change, when, worker=claim.worker, mine=claim.fence, **values)


def claim_of(fields: Fields) -> Claim:
    """An item that is not free, as a claim."""
    return Claim(
        key=ProjectUser.parse(fields["projectKey"]),
        worker=fields.get("containerId", ""),
        fence=fields["fence"],
        beat=fields["beat"],
        status=ClaimStatus(fields["status"]),
        claimed_at=at(fields["claimedAt"]),
        last_activity_at=at(fields["lastActivity"]),
        lease_expires_at=at(fields["leaseExpiresAt"]),
        running=fields.get("running", ""),
    )


def _fields_of(claim: Claim) -> Fields:
    return {
        "projectKey": str(claim.key),
        "containerId": claim.worker,
        "fence": claim.fence,
        "beat": claim.beat,
        "status": str(claim.status),
        "claimedAt": moment(claim.claimed_at),
        "lastActivity": moment(claim.last_activity_at),
        "leaseExpiresAt": moment(claim.lease_expires_at),
        "ttl": epoch(claim.lease_expires_at, GARBAGE_AFTER_SECONDS),
    }


_log = logging.getLogger(__name__)
Ended = Callable[[float], bool]
"""Waits for so many seconds, and says whether it is over."""
EACH_SECONDS, LEAVE_SECONDS = 300.0, 5.0
BELIEVED = timedelta(seconds=EACH_SECONDS + 30)
"""Workers without a sign of life for longer are not shown."""
_PREFIX = "worker:"
"""No key has a colon, so none is called so; `worker#ann` may be one."""
THERE = """
SET #name = :name, #pid = :pid, #slots = :slots, #startedAt = :started, #seenAt = :now, #gone = :gone, #ttl = :ttl"""
DRAINS = "SET #drains = :yes"
NOT_GONE = "#gone = :no"


@dataclass(frozen=True, slots=True)
class Presence:
    """See above; one write each time, whose answer also tells whether an operator asked the worker to end."""

    dynamo: Dynamo
    table: str = names.OWNERSHIP

    def renew(self, worker: WorkerSummary, now: datetime) -> bool:
        """This worker lives and works; True if it is asked to end once its running jobs are done."""
        return self._write(worker, now, gone=False)

    def ask_to_end(self, worker: str) -> bool:
        """Let a worker end once its running jobs are done; False if it is gone, or never said that it is there."""
        ask = update(self.table, _row_of(worker), DRAINS, NOT_GONE, yes=True, no=False)
        return not isinstance(self.dynamo.write(f"asking {worker} to end", ask), ConditionFailed)

    def leave(self, worker: WorkerSummary, now: datetime) -> bool:
        """Record that the worker ended in good order."""
        return self._write(worker, now, gone=True)

    def keep(
        self,
        worker: WorkerSummary,
        alive: Callable[[], bool],
        now: Callable[[], datetime],
        ended: Ended,
        drain: Callable[[], None],
    ) -> None:
        """Renew while the worker is `alive`, and leave once `ended`; `drain` is called while it is asked to end."""
        over = False
        while not over:
            if alive() and self._try_to(self.renew, worker, now):
                drain()
            over = ended(EACH_SECONDS)
        self._try_to(self.leave, worker, now)

    @contextmanager
    def kept(
        self, worker: WorkerSummary, alive: Callable[[], bool], now: Callable[[], datetime], drain: Callable[[], None]
    ) -> Iterator[None]:
        """Keep the entry in a thread while a block runs."""
        ended = threading.Event()
        asked = (worker, alive, now, ended.wait, drain)
        thread = threading.Thread(target=self.keep, args=asked, name="presence", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(LEAVE_SECONDS)

    @staticmethod
    def _try_to(
        write: Callable[[WorkerSummary, datetime], bool], worker: WorkerSummary, now: Callable[[], datetime]
    ) -> bool:
        try:
            return write(worker, now())
        except WebOrdinaryError as problem:  # people see it a little later, or a little longer
            _log.info("%s", problem)
            return False

    def names(self, workers: Iterable[str]) -> dict[str, str]:
        """The display names of these workers, including ended ones; expired entries are left out."""
        keys = [_row_of(worker) for worker in sorted(workers)]
        rows = self.dynamo.get_all("looking how workers are called", self.table, keys)
        return {str(row["projectKey"]).removeprefix(_PREFIX): row["name"] for row in rows}

    def _write(self, worker: WorkerSummary, now: datetime, *, gone: bool) -> bool:
        there = update(
            self.table,
            _row_of(worker.worker),
            THERE,
            name=worker.name,
            pid=worker.pid,
            slots=worker.slots,
            started=moment(worker.started_at),
            now=moment(now),
            gone=gone,
            ttl=epoch(now, GARBAGE_AFTER_SECONDS),
        )
        row = self.dynamo.write(f"telling that {worker.worker} is there", there)
        return not isinstance(row, ConditionFailed) and bool(row.get("drains"))


def _row_of(worker: str) -> Fields:
    return {"projectKey": f"{_PREFIX}{worker}"}


def worker_in(row: Mapping[str, Any], now: datetime) -> WorkerSummary | None:
    """The worker that an item of the table tells of; None if it is another item, or old."""
    key = str(row["projectKey"])
    if not key.startswith(_PREFIX) or row["gone"] or at(row["seenAt"]) < now - BELIEVED:
        return None
    name, pid, slots, began = (row[field] for field in ("name", "pid", "slots", "startedAt"))
    return WorkerSummary(key.removeprefix(_PREFIX), name, pid, slots, at(began), bool(row.get("drains")))


class RemoteLiveness:
    """Liveness of workers in other containers: only leases tell."""

    def is_dead(self, worker: str) -> bool:
        """Always False on AWS: only leases tell."""
        return False

    def end_survivors(self, worker: str, jobs: Collection[str] | None = None) -> None:
        """Its programs end with its container; until then its fence keeps them from any effect."""
