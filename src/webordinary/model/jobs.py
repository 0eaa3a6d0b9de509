"""Job: one Instruction on its way, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser


class JobState(StrEnum):
    """preparing → queued → running → settled, or back from running to queued when interrupted."""

    PREPARING = "preparing"
    QUEUED = "queued"
    RUNNING = "running"
    SETTLED = "settled"


NO_PHOTO = "There was no photo attached to your mail. Please send your wish again with the photo."
"""The question about a photo that is not there; where one came that cannot be used, the reply says so instead."""
NOT_UNDERSTOOD = "the agent did not understand the instruction"
"""The error of a job that needs a person."""


class JobOutcome(StrEnum):
    """How a job settled."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEAD = "dead"
    TIMED_OUT = "timed-out"
    CANCELLED = "cancelled"


class DeferReason(StrEnum):
    """Why a job has to wait although nothing is wrong with it."""

    PAUSE = "pause"
    BUDGET = "budget"
    LATER = "later"
    """Its customer named a date; see `JobResult.due_at`."""


class ChangeLine(NamedTuple):
    """A change as replies and `status` list it."""

    words: str
    asked_by: str | None = None
    """User id; empty for a person who is not known, None for what no person of the site asked for."""
    commit: str = ""


@dataclass(frozen=True, slots=True)
class JobResult:
    """What the reply is written from; small, and free of file contents."""

    summary: str
    """For the customer, in their words: what changed, or why nothing did."""
    commit: str | None = None
    url: str | None = None
    error: str | None = None
    """For the operator: the reason behind a failure."""
    changed_files: tuple[str, ...] = ()
    question: str | None = None
    pictures: tuple[str, ...] = ()
    """Digests of pictures of the changed page: before, if there was one, and after."""
    cost_usd: float = 0.0
    undone: ChangeLine | None = None
    """The change that was taken back."""
    is_public: bool = False
    """What it did has reached the public site, too."""
    published: tuple[ChangeLine, ...] = ()
    """What a publication brought to the public site."""
    waiting: tuple[ChangeLine, ...] = ()
    """What is on the edit site only; known after a publication, and of an undo that did not reach the public site."""
    pages_total: int = 0
    """Pages of the site after the change; 0: the releases before and after were not compared."""
    pages_changed: int = 0
    """Pages that the change added, altered or removed."""
    changed_pages: tuple[tuple[str, str], ...] = ()
    """File and title of the pages that were added or altered, bounded."""
    checks: tuple[tuple[str, str, str], ...] = ()
    """What the change broke: kind (link, picture, alt, title, size), page, detail."""
    preview: str | None = None
    """The address of the conversation's preview, where the edit site shows other changes, too."""
    unused: tuple[str, ...] = ()
    """Files of the mail that its agent cannot use, by name, bounded."""
    is_checked: bool = False
    """Links and pictures of the changed pages were checked; without any `checks` they are all there."""
    is_restyled: bool = False
    """A style sheet or script changed: pages whose own source is the same may look different."""
    due_at: str | None = None
    """When an open job goes on, in ISO 8601: the wish is done then, or its change (`commit`) is taken back."""
    form: int = 2
    """How it is stored: in form 1 the words of its texts said what was undone, and who asked."""

    @classmethod
    def read(cls, fields: Mapping[str, Any], user_id: str) -> JobResult:
        """A stored result of this person's job; stores turn tuples into lists, and some numbers into decimals."""
        if "form" not in fields:
            fields = _from_form_1(fields, user_id)
        read = {name: kind(fields[name]) for name, kind in _KINDS.items() if name in fields}
        return cls(**{**fields, **read})


def _from_form_1(fields: Mapping[str, Any], user_id: str) -> dict[str, Any]:
    """Form 2 of a result that an earlier release stored, or a running execution still has."""
    summary = str(fields.get("summary", ""))
    lines = {name: [_line_of_form_1(one, user_id) for one in fields.get(name, ())] for name in ("published", "waiting")}
    done: dict[str, Any] = {**fields, **lines, "form": 2}
    done["is_public"] = bool(lines["published"]) or summary == "This is on your public site now."
    if fields.get("commit") and summary.startswith("Undone: "):
        done |= {"undone": ChangeLine(summary.removeprefix("Undone: ").partition("\n\n")[0]), "published": []}
    return done


def _line_of_form_1(text: str, user_id: str) -> ChangeLine:
    words, asked, who = text.removesuffix(")").rpartition(" (asked by ")
    known = {"you": user_id, "another person": ""}
    return ChangeLine(words, known.get(who, who)) if asked and text.endswith(")") else ChangeLine(text)


def _tuples(stored: Iterable[Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, stored))


def _line(stored: Iterable[Any] | None) -> ChangeLine | None:
    return ChangeLine(*stored) if stored else None


def _change_lines(stored: Iterable[Iterable[Any]]) -> tuple[ChangeLine, ...]:
    return tuple(ChangeLine(*one) for one in stored)


_KINDS: dict[str, Callable[[Any], object]] = {
    **dict.fromkeys(("changed_files", "pictures", "unused"), tuple),
    **dict.fromkeys(("published", "waiting"), _change_lines),
    "undone": _line,
    **dict.fromkeys(("pages_total", "pages_changed", "form"), int),
    **dict.fromkeys(("changed_pages", "checks"), _tuples),
    "cost_usd": float,
}


class Job(NamedTuple):
    """The truth about one piece of work. Stores read and change many of these: a tuple is the cheapest record.

    `order` is its place in its key's queue and moves to the tail when it is interrupted; `thread_order` is
    its place among the jobs of its thread and never changes.
    """

    job_id: str
    key: ProjectUser
    order: int
    thread_order: int
    thread_id: str
    email_id: str
    command: Command
    state: JobState
    recorded_at: datetime
    attempts: int = 0
    """Starts that never ended; an interruption or a graceful stop gives its start back."""
    interruptions: int = 0
    worker: str | None = None
    fence: int = 0
    outcome: JobOutcome | None = None
    result: JobResult | None = None
    cancel_requested: bool = False
    task_token: str | None = None
    """Whom to call back when this job settles."""
    preempted_token: str | None = None
    """Whom to tell that this job was interrupted and goes on later."""
    queued_at: datetime | None = None
    not_before: datetime | None = None
    started_at: datetime | None = None
    settled_at: datetime | None = None
    held: DeferReason | None = None
    """Why no worker may start it yet, as the last worker that looked at it found; its workflow was informed once."""
    outages: int = 0
    """Starts cut off by an outage, or by the lease of a living worker that could not renew it. They do not count."""

    @property
    def open(self) -> bool:
        """The job is not settled yet."""
        return self.state is not JobState.SETTLED

    @property
    def due_at(self) -> datetime | None:
        """The date that the customer named, of an open job that waits for it or whose date has come."""
        due_at = self.result.due_at if self.open and self.result else None
        return datetime.fromisoformat(due_at) if due_at else None


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job about to be recorded; the store gives it its order."""

    job_id: str
    key: ProjectUser
    thread_id: str
    email_id: str
    command: Command

    def recorded(self, order: int, now: datetime, *, ready: bool) -> Job:
        """The job as a store records it: preparing, or queued at once if it has nothing to wait for."""
        return Job(
            job_id=self.job_id,
            key=self.key,
            order=order,
            thread_order=order,
            thread_id=self.thread_id,
            email_id=self.email_id,
            command=self.command,
            state=JobState.QUEUED if ready else JobState.PREPARING,
            recorded_at=now,
            queued_at=now if ready else None,
        )


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a job ended, decided by the worker and saved under its fence."""

    outcome: JobOutcome
    result: JobResult


class RequeueReason(StrEnum):
    """Why a running job goes back to its queue."""

    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    RETRY = "retry"
    HELD = "held"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Requeue:
    """A running job goes back to its queue.

    INTERRUPTED moves it to the tail and gives its start back, STOPPED (a worker that ends gracefully) keeps
    its place and gives its start back, RETRY keeps both and waits until `not_before`, HELD (a pause, a daily cap, a
    date) waits so too and gives its start back. INTERRUPTED is told to the job's workflow, and so is HELD, unless it
    was held already and only looked again, without a new `result`. WAITING (a colleague publishes, the disk is full)
    is HELD for seconds rather than days: only the timeline shows it.
    """

    why: RequeueReason
    not_before: datetime | None = None
    held: DeferReason | None = None
    """What holds it, if it is HELD."""
    result: JobResult | None = None
    """What is told and kept of a job that waits for its date; None keeps what is known."""
    words: str = ""
    """What it waits for, if it is WAITING; what failed, if it is a RETRY."""
    machine_fault: bool = False
    """It waits for the machine to be mended: the operator is told."""


JobEnd = Settlement | Requeue


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Something given up, with its last error, ready to be redriven."""

    letter_id: int
    email_id: str
    job_id: str | None
    reason: str
    died_at: datetime
    redrives: int = 0
    """How often its mail had been redriven when it died."""


def output_message(job: Job) -> dict[str, str | None]:
    """The result of a settled job for programs of a customer; on AWS the body of a message in the output queue."""
    result = job.result
    return {
        "messageId": job.email_id,
        "threadId": job.thread_id,
        "status": str(job.outcome) if job.outcome else None,
        "summary": result.summary if result else None,
        "commit": result.commit if result else None,
        "url": result.url if result else None,
        "error": result.error if result else None,
    }
