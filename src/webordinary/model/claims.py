"""Claim, lease and fence: who may act for a ProjectUser; and the wake-ups around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol, Self

from webordinary.model.jobs import Job
from webordinary.model.names import ProjectUser

LEASE_SECONDS = 60.0
RENEW_SECONDS = 20.0
IDLE_RELEASE_SECONDS = 1800.0
JOB_LIMIT_SECONDS = 3600.0
INTERRUPT_GRACE_SECONDS = 10.0
PREPARING_WAIT_SECONDS = 600.0
HINT_INTERVAL_SECONDS = 60.0
WARM_PREFERENCE_SECONDS = 0.1
YIELD_AFTER_SECONDS = 0.1
MAX_ATTEMPTS = 3
MAX_INTERRUPTIONS = 3


class ClaimStatus(StrEnum):
    """A releasing claim may be taken by anybody; its holder only looks once more and ends it."""

    HELD = "held"
    RELEASING = "releasing"
    FREE = "free"


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's right to act for a ProjectUser. Equal (worker, fence, beat) = it has not moved."""

    key: ProjectUser
    worker: str
    fence: int
    beat: int
    status: ClaimStatus
    claimed_at: datetime
    last_activity_at: datetime
    lease_expires_at: datetime
    running: str | None = field(default=None, compare=False)
    """The job that runs under it, empty for none. None where the store does not tell."""

    def is_held_by(self, worker: str, now: datetime) -> bool:
        """Whether this worker may act under it now."""
        return (self.worker, self.status) == (worker, ClaimStatus.HELD) and now < self.lease_expires_at


@dataclass(frozen=True, slots=True)
class ProjectLease:
    """The right to publish a project; two users of one project are two claims but one of these."""

    project_id: str
    worker: str
    fence: int


class LeaseStatus(StrEnum):
    """A held lease may be overtaken by an operator; a showing one not: its site is about to change."""

    HELD = "held"
    SHOWING = "showing"
    FREE = "free"


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A project's lease as a store keeps it: its holder, and the job and claim that it was taken for."""

    fence: int
    worker: str
    job_id: str
    """Empty for an operator's."""
    job_fence: int
    status: LeaseStatus


@dataclass(frozen=True, slots=True)
class StartedJob:
    """A job that has begun under a claim."""

    claim: Claim
    job: Job
    is_first: bool = False
    """The store knows of no earlier start. After one, even if it was given back, the change may be on main."""


@dataclass(frozen=True, slots=True)
class FinishResult:
    """What a worker holds after it settled a job.

    `kept` is the claim if it is still ours; `started` the next job: of the same key, or of a key that had
    waited longer where the store could hand it over in the same step; `pending_callback` the job that ended, if a
    workflow waits to hear of it.
    """

    kept: Claim | None
    started: StartedJob | None
    pending_callback: Job | None = None
    empty: bool = False
    """The key had no open job left: only news make it worth another look. A store that cannot tell says no."""


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A hint in the unclaimed queue: this key has work and no owner. May be lost, late or doubled."""

    key: ProjectUser
    waiting_since: datetime
    preferred: str | None = None
    """The worker that still has the checkout, if one does."""
    fence: int | None = None
    """The key's last fence, if the sender has seen it."""
    email_id: str = ""
    thread_id: str = ""
    """Whose mail waits: for people who read the queue."""
    ready_at: datetime | None = None
    """Before this there is nothing to start: who comes earlier comes in vain."""

    @classmethod
    def for_job(
        cls, job: Job, preferred: str | None = None, fence: int | None = None, served_at: datetime | None = None
    ) -> Self:
        """The claim request of a waiting job; a key that was served until `served_at` waits from then on."""
        since = served_at or job.queued_at or job.recorded_at
        ready_at = None if job.cancel_requested else job.not_before
        return cls(job.key, since, preferred, fence, job.email_id, job.thread_id, ready_at)


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A stored request to look at a key's queue now, because a job may have to make way. The records decide.

    All but the key is for people who read the queue.
    """

    key: ProjectUser
    job_id: str
    new_thread_id: str
    reason: str


def next_fence(previous: int, now: datetime) -> int:
    """The fence only grows, even when the row that held the previous one was deleted."""
    return max(previous + 1, int(now.timestamp()))


class CancelToken(Protocol):
    """Tells a running job to end; checked before every effect."""

    @property
    def worker(self) -> str:
        """The worker that acts."""

    @property
    def fence(self) -> int:
        """The claim's fence, carried by every effect."""

    @property
    def job_id(self) -> str:
        """The job that runs."""

    def check(self) -> None:
        """Raise ClaimLost, Interrupted, Cancelled or JobTimedOut when this job must end now."""

    def on_stop(self, stop: Callable[[], None]) -> AbstractContextManager[None]:
        """While the block runs, call `stop` (from another thread) as soon as the job must end."""


@dataclass(frozen=True, slots=True)
class OperatorToken:
    """The cancel token of an operator: no claim, no job, never cancelled."""

    worker: str
    fence: int = 0
    job_id: str = ""

    def check(self) -> None:
        """Never raises."""

    @contextmanager
    def on_stop(self, stop: Callable[[], None]) -> Iterator[None]:
        """Never calls `stop`."""
        yield
