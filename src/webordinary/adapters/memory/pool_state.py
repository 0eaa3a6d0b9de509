"""What a database would hold of the pool, with the indexes that it would keep: a simulated day has many jobs."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from webordinary.model.claims import Claim, ClaimRequest, Interrupt
from webordinary.model.jobs import Job, JobState
from webordinary.model.names import ProjectUser


class HintBook:
    """At most one hint a key, read in the order of waiting."""

    def __init__(self) -> None:
        self._sent: dict[ProjectUser, tuple[ClaimRequest, datetime]] = {}
        self._places: dict[ProjectUser, tuple[datetime, int, ProjectUser]] = {}
        self._waiting: list[tuple[datetime, int, ProjectUser]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._sent)

    def add(self, request: ClaimRequest, sent_at: datetime) -> bool:
        """Keep a hint; False if its key has one already."""
        if request.key in self._sent:
            return False
        self._sent[request.key] = (request, sent_at)
        place = self._places[request.key] = (request.waiting_since, next(self._numbers), request.key)
        insort(self._waiting, place)
        return True

    def remove(self, key: ProjectUser) -> None:
        """This key's hint is used up, if there was one."""
        if self._sent.pop(key, None):
            del self._waiting[bisect_left(self._waiting, self._places.pop(key))]

    def longest_first(self) -> Iterator[tuple[ClaimRequest, datetime]]:
        """Every hint with when it was sent; its reader may remove what it was given."""
        return (self._sent[key] for _, _, key in self._waiting.copy() if key in self._sent)


@dataclass
class MemoryPoolState:
    """Shared by the adapters, as one file is by several processes. Jobs are written by `put`."""

    jobs: dict[str, Job] = field(default_factory=dict)
    orders: dict[ProjectUser, int] = field(default_factory=dict)
    claims: dict[ProjectUser, Claim] = field(default_factory=dict)
    hints: HintBook = field(default_factory=HintBook)
    interrupts: dict[ProjectUser, dict[str, Interrupt]] = field(default_factory=dict)
    called_back: set[str] = field(default_factory=set)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _open: dict[ProjectUser, dict[str, None]] = field(default_factory=dict)
    _open_keys: list[str] = field(default_factory=list)
    _running: dict[str, dict[str, None]] = field(default_factory=dict)
    _owing: dict[str, None] = field(default_factory=dict)

    def put(self, job: Job) -> Job:
        """Write a job's record and its index entries."""
        known = self.jobs.get(job.job_id)
        if known and known.worker:
            self._running.get(known.worker, {}).pop(job.job_id, None)
        self.jobs[job.job_id] = job
        self._index_open(job)
        if job.state is JobState.RUNNING and job.worker:
            self._running.setdefault(job.worker, {})[job.job_id] = None
        if self.owes(job):
            self._owing[job.job_id] = None
        else:
            self._owing.pop(job.job_id, None)
        return job

    def open_of(self, key: ProjectUser) -> list[Job]:
        """The open jobs of a key, in order."""
        return sorted((self.jobs[job_id] for job_id in self._open.get(key, ())), key=lambda job: job.order)

    def keys_to_look_at(self, after: ProjectUser | None, limit: int) -> list[ProjectUser]:
        """Every key that has work, in key order from `after` on."""
        begin = bisect_right(self._open_keys, str(after)) if after else 0
        return [ProjectUser.parse(key) for key in self._open_keys[begin : begin + limit]]

    def keys_of(self, project_id: str) -> list[ProjectUser]:
        """The keys of a project that have work."""
        return [key for key in map(ProjectUser.parse, self._open_keys) if key.project_id == project_id]

    def running_at(self, worker: str) -> int:
        """How many jobs that worker runs."""
        return len(self._running.get(worker, ()))

    def owing(self) -> list[Job]:
        """The jobs whose workflow waits to be told."""
        return [job for job_id in self._owing if self.owes(job := self.jobs[job_id])]

    def told(self, job: Job) -> None:
        """The workflow that waits for this job knows how it ended."""
        self.called_back.add(job.job_id)
        self.put(job)

    def owes(self, job: Job) -> bool:
        """Whether a workflow waits to be told of this job."""
        settled = not job.open and job.task_token is not None and job.job_id not in self.called_back
        return settled or job.preempted_token is not None

    def _index_open(self, job: Job) -> None:
        jobs = self._open.get(job.key)
        if job.open and jobs is None:
            self._open[job.key] = {job.job_id: None}
            insort(self._open_keys, str(job.key))
        elif jobs is not None and job.open:
            jobs[job.job_id] = None
        elif jobs is not None:
            jobs.pop(job.job_id, None)
            if not jobs:
                del self._open[job.key]
                del self._open_keys[bisect_left(self._open_keys, str(job.key))]

    def next_order(self, key: ProjectUser) -> int:
        """Count up; orders are never used twice."""
        self.orders[key] = self.orders.get(key, 0) + 1
        return self.orders[key]
