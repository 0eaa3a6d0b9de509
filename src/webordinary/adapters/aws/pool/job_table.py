"""The table of jobs as jobs and claims both use it: a key's queue, one job by its name, and moves between places."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import (
    Dynamo,
    Fields,
    at,
    at_or_none,
    delete,
    epoch,
    moment,
    moment_or_none,
    put,
    update,
)
from webordinary.model.errors import Permanent, Transient
from webordinary.model.events import Event, Events
from webordinary.model.jobs import DeferReason, Job, JobOutcome, JobResult, JobState
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.pool.transitions import next_job

if TYPE_CHECKING:
    from types_boto3_dynamodb.type_defs import TransactWriteItemTypeDef as Write


MOST_JOBS, MOST_ENTRIES, MOST_BYTES, MOST_DATA_BYTES = 64, 60, 12_000, 600
PROGRESS = "AgentProgress"
"""There may be hundreds of these; what came of them is told at the end."""


class TimelineEvent(NamedTuple):
    """An event with its time; `data` is JSON."""

    at: datetime
    kind: str
    worker: str | None
    data: str

    @property
    def values(self) -> dict[str, Any]:
        """The values of the event."""
        found: dict[str, Any] = json.loads(self.data)
        return found


EventsOf = Callable[[str], Iterable[TimelineEvent]]
"""The events of a job, by its id."""


def no_events(job_id: str) -> tuple[TimelineEvent, ...]:
    """For processes without a timeline."""
    return ()


class JobTimeline:
    """See Events: passes them on, and remembers those of the last jobs. Thread-safe."""

    def __init__(self, inside: Events, now: Callable[[], datetime]) -> None:
        self._inside, self._now = inside, now
        self._of_job: OrderedDict[str, list[TimelineEvent]] = OrderedDict()
        self._guard = threading.Lock()

    def emit(self, event: Event) -> None:
        self._inside.emit(event)
        if event.job_id is None:
            return
        entry = TimelineEvent(self._now(), event.kind, event.worker, _bounded(event.data))
        with self._guard:
            known = self._of_job.setdefault(event.job_id, [])
            self._of_job.move_to_end(event.job_id)
            self._of_job[event.job_id] = list(merged(known, [entry]))
            while len(self._of_job) > MOST_JOBS:
                self._of_job.popitem(last=False)

    def of(self, job_id: str) -> tuple[TimelineEvent, ...]:
        """The events of a job in this process."""
        with self._guard:
            return tuple(self._of_job.get(job_id, ()))


def merged(before: Iterable[TimelineEvent], after: Iterable[TimelineEvent]) -> tuple[TimelineEvent, ...]:
    """Both lists in order without repeats. Over the bounds, progress events are dropped first, then the oldest."""
    entries = sorted(dict.fromkeys([*before, *after]), key=lambda entry: entry.at)
    while len(entries) > MOST_ENTRIES or sum(len(entry.data) + 100 for entry in entries) > MOST_BYTES:
        entries.pop(next((n for n, entry in enumerate(entries) if entry.kind == PROGRESS), 0))
    return tuple(entries)


def to_text(entries: Iterable[TimelineEvent]) -> str | None:
    """Events as a text attribute; None for no events."""
    rows = [[moment(entry.at), entry.kind, entry.worker, entry.data] for entry in entries]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")) if rows else None


def from_text(text: str | None) -> tuple[TimelineEvent, ...]:
    """Read what `to_text` wrote."""
    return tuple(TimelineEvent(at(when), kind, worker, data) for when, kind, worker, data in json.loads(text or "[]"))


def _bounded(data: Any) -> str:  # noqa: ANN401 - small JSON values
    text = json.dumps(dict(data), default=str, ensure_ascii=False, separators=(",", ":"))
    whole = text.encode("utf-8", "replace")  # a lone surrogate is legal in an agent's JSON and not in a table
    return whole.decode() if len(whole) <= MOST_DATA_BYTES else "{}"


OPEN = "open"
CALLBACK_PENDING = "callback"
KEEP_DAYS = 30
"""After the end of a job, unless `retention_days` says something else."""
_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Record:
    """A job as it is stored. Every write sets a new revision, which the next conditional write checks."""

    job: Job
    revision: int
    called_back: bool = False
    events: tuple[TimelineEvent, ...] = ()
    """Its newest events, for people."""

    @property
    def key(self) -> dict[str, object]:
        """The item key."""
        return key_of(self.job)


def key_of(job: Job) -> dict[str, object]:
    """The item key of a job in its state."""
    return {"projectUserId": str(job.key), "order": job.order if job.open else -job.order}


def counter_key(key: ProjectUser) -> dict[str, object]:
    """The item key of the counter of a key's orders."""
    return {"projectUserId": str(key), "order": 0}


def pointer_key(job_id: str) -> dict[str, object]:
    """The item key of the pointer from a job's id to its place."""
    return {"projectUserId": f"job:{job_id}", "order": 0}  # no key has a colon, so none is called so


def pointer_of(job: Job, keep_days: int) -> dict[str, object]:
    """The item that leads from a job's name to its place."""
    place = {"key": str(job.key), "at": key_of(job)["order"]}
    return {**pointer_key(job.job_id), **place, "expiresAt": _expires_at(job, keep_days)}


def fields_of(record: Record, keep_days: int, request: str | None = None) -> dict[str, object]:
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
        "owes": CALLBACK_PENDING if has_pending_callback(record) else None,
        "expiresAt": _expires_at(job, keep_days),
        "told": to_text(record.events),
        "revision": record.revision,
        "request": request,
    }


def record_of(fields: dict[str, Any]) -> Record:
    """An item as a job."""
    key = ProjectUser.parse(fields["projectUserId"])
    job = Job(
        job_id=fields["jobId"],
        key=key,
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
        outcome=JobOutcome(fields["outcome"]) if "outcome" in fields else None,
        result=JobResult.read(fields["result"], key.user_id) if "result" in fields else None,
        cancel_requested=fields.get("cancelRequested", False),
        task_token=fields.get("taskToken"),
        preempted_token=fields.get("preemptedToken"),
        queued_at=at_or_none(fields.get("queuedAt")),
        not_before=at_or_none(fields.get("notBefore")),
        started_at=at_or_none(fields.get("claimedAt")),
        settled_at=at_or_none(fields.get("settledAt")),
        held=DeferReason(fields["held"]) if "held" in fields else None,
    )
    return Record(job, fields["revision"], fields.get("calledBack", False), from_text(fields.get("told")))


def has_pending_callback(record: Record) -> bool:
    """Whether a callback of the job is pending."""
    settled = not record.job.open and record.job.task_token is not None and not record.called_back
    return settled or record.job.preempted_token is not None


def _expires_at(job: Job, keep_days: int) -> int | None:
    return epoch(job.settled_at, keep_days * _DAY_SECONDS) if job.settled_at else None


MOST_OPEN = 1000
_MOVE_TRIES = 5
_KNOWN_PLACES = 4096

SETTLED = "#projectUserId = :key AND #order < :none"
QUEUE = "#projectUserId = :key AND #order >= :first"
COUNT = "SET #lastOrder = :order"
COUNTED = "#lastOrder = :last"
NOT_COUNTED = "attribute_not_exists(#lastOrder)"
NEW = "attribute_not_exists(#projectUserId)"
UNCHANGED = "#revision = :revision"
SAME_PLACE = "#key = :key AND #at = :at"


@dataclass(frozen=True, slots=True)
class Queue:
    """The open jobs of a key in order, and the last order it gave."""

    last_order: int
    records: list[Record]

    @property
    def jobs(self) -> list[Job]:
        """The jobs without their revisions."""
        return [record.job for record in self.records]

    def next(self, fence: int, now: datetime) -> Record | None:
        """The next job that may start under this fence."""
        job = next_job(self.jobs, fence, now)
        return self.of(job.job_id) if job else None

    def of(self, job_id: str) -> Record | None:
        """The open job of that name."""
        return next((record for record in self.records if record.job.job_id == job_id), None)


class JobTable:
    """Reads are consistent. Where jobs lie is remembered, and looked up again when they have moved."""

    def __init__(
        self, dynamo: Dynamo, name: str = names.JOBS, events_of: EventsOf = no_events, keep_days: int = KEEP_DAYS
    ) -> None:
        """The events of a job in this process are written with the job's next change."""
        self.dynamo, self.name, self._events_of, self.keep_days = dynamo, name, events_of, keep_days
        self._places: dict[str, dict[str, object]] = {}
        self._guard = threading.Lock()

    def queue(self, key: ProjectUser) -> Queue:
        """A key's open jobs and its counter, in one call."""
        found = self._read(key, 0, MOST_OPEN + 1)
        last_order = found[0]["lastOrder"] if found and found[0]["order"] == 0 else 0
        return Queue(last_order, self._records(fields for fields in found if fields["order"] > 0))

    def open(self, key: ProjectUser, limit: int, after: int = 0) -> list[Record]:
        """The first open jobs of a key behind the order `after`."""
        return self._records(self._read(key, after + 1, limit))

    def settled(self, key: ProjectUser, limit: int) -> list[Record]:
        """The settled jobs of a key. They are stored under their negative order, so that the newest come first."""
        values = {"key": str(key), "none": 0}
        return self._records(self.dynamo.query(f"reading what {key} has settled", self.name, SETTLED, values, limit))

    def find(self, job_id: str) -> Record | None:
        """A job by its id; None if it is not recorded."""
        for _ in range(_MOVE_TRIES):
            place = self._place(job_id)
            if place is None:
                return None
            fields = self.dynamo.get(f"reading job {job_id}", (self.name, place))
            if fields:
                return record_of(fields)
            self.missed(job_id, place)
        raise Transient(f"job {job_id} moves faster than it can be read")

    def get(self, job_id: str) -> Record:
        """One job that must be there."""
        if record := self.find(job_id):
            return record
        raise _not_recorded(job_id)

    def place(self, job_id: str) -> dict[str, object]:
        """The item key of an existing job: remembered, else looked up."""
        if place := self._place(job_id):
            return place
        raise _not_recorded(job_id)

    def remember(self, job: Job) -> None:
        """Remember the present place of a job."""
        self._remember(job.job_id, key_of(job))

    def expect(self, job_id: str, key: str, order: int) -> None:
        """Read a job at a place that was handed over earlier; look it up if it has moved since."""
        self._remember(job_id, {"projectUserId": key, "order": order})

    def missed(self, job_id: str, place: dict[str, object]) -> None:
        """A remembered place was empty: try the place of a settled job (minus its order), else look it up again."""
        order = place["order"]
        assert isinstance(order, int)
        if order > 0:
            self._remember(job_id, {**place, "order": -order})
            return
        with self._guard:
            self._places.pop(job_id, None)

    def change(self, before: Record, after: Job, request: str) -> list[Write]:
        """Write a job's new state if its revision is unchanged; its key changes when it settles or goes to the tail."""
        events = merged(before.events, self._events_of(after.job_id))
        fields = fields_of(Record(after, before.revision + 1, before.called_back, events), self.keep_days, request)
        if key_of(after) == before.key:
            return [put(self.name, fields, UNCHANGED, revision=before.revision)]
        return [
            delete(self.name, before.key, UNCHANGED, revision=before.revision),
            put(self.name, fields, NEW),
            self._moved(before.job, after),
        ]

    def _place(self, job_id: str) -> dict[str, object] | None:
        with self._guard:
            known = self._places.get(job_id)
        if known:
            return known
        pointer = self.dynamo.get(f"looking for job {job_id}", (self.name, pointer_key(job_id)))
        return self._remember(job_id, {"projectUserId": pointer["key"], "order": pointer["at"]}) if pointer else None

    def _read(self, key: ProjectUser, first: int, limit: int) -> list[Fields]:
        values = {"key": str(key), "first": first}
        return self.dynamo.query(f"reading the queue of {key}", self.name, QUEUE, values, limit)

    def count(self, key: ProjectUser, last: int, **noted: int) -> Write:
        """Give out the order after `last`; `noted` attributes of the counter are set along with it."""
        counter, change = counter_key(key), COUNT + "".join(f", #{name} = :{name}" for name in noted)
        if last:
            return update(self.name, counter, change, COUNTED, order=last + 1, last=last, **noted)
        return update(self.name, counter, change, NOT_COUNTED, order=1, **noted)

    def _moved(self, before: Job, after: Job) -> Write:
        return put(
            self.name, pointer_of(after, self.keep_days), SAME_PLACE, key=str(before.key), at=key_of(before)["order"]
        )

    def _records(self, found: Iterable[Fields]) -> list[Record]:
        records = [record_of(fields) for fields in found]
        for record in records:
            self.remember(record.job)
        return records

    def _remember(self, job_id: str, place: dict[str, object]) -> dict[str, object]:
        with self._guard:
            if len(self._places) >= _KNOWN_PLACES:
                self._places.clear()
            self._places[job_id] = place
        return place


def _not_recorded(job_id: str) -> Permanent:
    return Permanent(f"job {job_id} is not recorded; it was pruned, or its mail never got this far")
