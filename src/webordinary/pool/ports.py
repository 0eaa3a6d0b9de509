"""What the pool needs from a backend: each method is one atomic step that the domain can name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from webordinary.model.claims import Claim, ClaimRequest, FinishResult, Interrupt, StartedJob
from webordinary.model.jobs import DeadLetter, Job, JobEnd, NewJob, Settlement
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import Interruption

QUEUED, INTERRUPT, STOP, RESUMED = "queued", "interrupt", "stop", "resumed"
"""The news of a ticket."""
DRAIN = "drain"
"""The message that lets a worker end once its running jobs are done."""


class Jobs(Protocol):
    """The truth about work. Written by workflow steps; a running job is written by its worker only."""

    def record(self, new: NewJob, now: datetime, *, ready: bool = False, hourly_limit: int = 0) -> Job:
        """Give a new job its order, as `preparing`, or `queued` if it is `ready`. Idempotent by job id.

        Raises HourlyLimitReached where the key has as many jobs from this clock hour already; 0 = no limit.
        """

    def enqueue(self, job_id: str, now: datetime) -> Job:
        """Make a preparing job runnable. Idempotent: a job that is further already stays where it is.

        A store that can leaves the hint for a key without an owner in the same step.
        """

    def get(self, job_id: str) -> Job | None:
        """One job, open or settled."""

    def open_jobs(self, key: ProjectUser, limit: int = 1000, after: int = 0) -> Sequence[Job]:
        """The open jobs of a key, in order, from behind the order `after`; `pool.reading` reads all."""

    def settled_jobs(self, key: ProjectUser, limit: int) -> Sequence[Job]:
        """The settled jobs of a key, the newest first."""

    def bind_token(self, job_id: str, token: str) -> Job:
        """Name whom to call back; the job as it is then tells whether that is due already."""

    def settle_waiting(self, job_id: str, settlement: Settlement, now: datetime) -> Job:
        """End a job that was never started, in one conditional write.

        One that was gets its cancellation requested instead: only a worker can find out what it has published. That is
        done at once, whatever the job waited for.
        """

    def keys_to_look_at(self, after: ProjectUser | None, limit: int) -> Sequence[ProjectUser]:
        """Every key that has work, in key order from `after` on; fewer than `limit` if these are all.

        A key without an owner may be left out while a hint for it is stored, where the store can tell.
        """


class PendingCallbacks(Protocol):
    """Effects that follow from a job's record and are redone until they are done."""

    def pending(self, limit: int) -> Sequence[Job]:
        """Jobs with a pending callback: settled or interrupted, and the workflow not yet informed."""

    def mark_delivered(self, job_id: str, token: str) -> None:
        """Record that the callback of this token was delivered, or that its workflow has ended."""


class Claims(Protocol):
    """Who acts for which ProjectUser. Each is one atomic step, and a worker's; to `look` is everybody's."""

    def claim_and_start(
        self, key: ProjectUser, worker: str, now: datetime, over: Claim | None = None
    ) -> StartedJob | Claim | None:
        """Take a key that is free, or held by `over` unmoved, and start its first runnable job.

        The caller knows that `over` has ended (its process is dead, or its beat stood still for a lease).
        Returns the claim that stands in the way, or None if the key has nothing to run; then nothing changed
        but that a hint for it is used up.
        """

    def take_longest_waiting(self, worker: str, now: datetime) -> StartedJob | None:
        """Take whichever key has a hint, the longest first, where the store finds and takes it in one step.

        For who was too late for every hint received: among busy workers that could go on for ever.
        """

    def start_next(self, claim: Claim, now: datetime) -> StartedJob | None:
        """Start the next runnable job of a key that is ours; raises ClaimLost."""

    def end_and_take_next(self, started: StartedJob, ending: JobEnd, now: datetime, *, more: bool) -> FinishResult:
        """Settle or requeue a job under its fence, and start the next one if `more` are wanted.

        A key that was served for a moment is yielded in the same step to one that has waited longer, or that
        waits at all when its own queue is empty, where the store can. Raises ClaimLost.
        """

    def renew(self, claims: Collection[Claim], now: datetime) -> set[ProjectUser]:
        """Prolong the leases and move their beats; the keys that are still ours."""

    def begin_release(self, claim: Claim) -> bool:
        """Let other workers claim the key while its holder looks once more; False if it is not ours any more.

        A job may still run under the claim, as its end could not be written. On one machine the reason is a full disk,
        which is not the job's fault: its start does not count as an attempt, once for each claim, and not if this
        returns False. On AWS the start counts: tables there do not run full.
        """

    def end_release(self, claim: Claim) -> None:
        """Free a releasing key, unless another worker took it meanwhile."""

    def look(self, key: ProjectUser) -> Claim | None:
        """Who holds the key now; a free key is None."""

    def look_all(self, keys: Collection[ProjectUser]) -> Mapping[ProjectUser, Claim]:
        """Who holds each of these keys; free ones are left out."""

    def busy(self, worker: str) -> int:
        """How many jobs that worker runs now."""

    def held_by(self, worker: str) -> Sequence[Claim]:
        """The claims of a worker by the store, which may lag a moment."""


class ClaimRequestQueue(Protocol):
    """The unclaimed queue. A hint may be lost, late or doubled: the job records are the truth."""

    def send(self, request: ClaimRequest, now: datetime, *, again: bool = False) -> bool:
        """Say that a key has work and no owner; False if that was said already.

        `again` is for a caller that found no owner after an earlier request: that request may be lost.
        """

    def receive(self, now: datetime, skip: Collection[ProjectUser], limit: int) -> Sequence[ClaimRequest]:
        """Hints that wait, the longest first; a hint stays until its key is claimed or acknowledged."""

    def acknowledge(self, key: ProjectUser) -> None:
        """Delete the claim requests of a key."""


class Notifier(Protocol):
    """Wake-ups for a key's owner and for workers without work. Never trusted, only hurried by."""

    def notify_owner(self, job: Job, news: str = QUEUED) -> None:
        """The owner of this job's key, if there is one, should look at its queue.

        The same news of the same start of a job may be told once, but each time that it is resumed.
        """

    def notify_unclaimed(self, key: ProjectUser | None = None) -> None:
        """Wake a worker without work, so that it reads the unclaimed queue; `key` names the key that began to wait."""


class Interrupts(Protocol):
    """Stored requests to look whether a running job has to make way. Never trusted, only hurried by."""

    def send(self, interrupt: Interrupt, now: datetime) -> None:
        """Ask; asking twice for the same job is asking once."""

    def take(self, key: ProjectUser) -> Sequence[Interrupt]:
        """Receive and delete what was asked for this key."""


class Callbacks(Protocol):
    """The workflow engine's side of a task token. False means the token is lost: no workflow waits any more."""

    def succeed(self, token: str, output: dict[str, str]) -> bool:
        """The job settled; the output carries ids only."""

    def fail(self, token: str, error: str, cause: str) -> bool:
        """The job did not settle and will not under this token."""

    def heartbeat(self, token: str) -> bool:
        """Whether the workflow still waits for this job."""


class Outputs(Protocol):
    """Passes settled jobs on to programs of a customer."""

    def send(self, job: Job) -> None:
        """Send the result of a job, if its project wants results. At least once."""


class Interruptions(Protocol):
    """The audit of what was interrupted, kept 30 days."""

    def record(self, job: Job, reason: str, now: datetime, new_thread_id: str = "") -> None:
        """Write down a job's last interruption, unless it is written down, and the thread that it made way for."""


class InterruptionAudit(Interruptions, Protocol):
    """The same, for operators who read it."""

    def listing(self, limit: int, email_id: str = "") -> Sequence[Interruption]:
        """The newest first, of all mails or of one."""


class DeadLetters(Protocol):
    """Mails that were given up, for an operator to redrive or drop."""

    def add(self, email_id: str, job_id: str | None, reason: str, now: datetime, redrives: int = 0) -> None:
        """Store a dead letter. Idempotent by mail, reason and number of redrives."""

    def all(self, limit: int) -> Sequence[DeadLetter]:
        """The newest dead letters, at most `limit`."""

    def get(self, letter_id: int) -> DeadLetter | None:
        """The dead letter of this number."""

    def remove(self, letter_id: int) -> bool:
        """Delete a dead letter; False if there is none of this number."""

    def clear(self, email_id: str, redrives: int) -> None:
        """Delete the dead letters of a mail's runs so far, as it is redriven."""


class Liveness(Protocol):
    """What can be known about another worker's process without waiting for its lease."""

    def is_dead(self, worker: str) -> bool:
        """True only if that process has certainly ended."""

    def end_survivors(self, worker: str, jobs: Collection[str] | None = None) -> None:
        """End the programs that a dead worker left running; of one that only hangs, those of these jobs."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The ports of one backend's pool."""

    jobs: Jobs
    pending_callbacks: PendingCallbacks
    claims: Claims
    hints: ClaimRequestQueue
    tickets: Notifier
    interrupts: Interrupts
    callbacks: Callbacks
    liveness: Liveness
    outputs: Outputs | None = None
    """Outputs of settled jobs, where the backend has them."""
