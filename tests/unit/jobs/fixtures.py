"""What surrounds a job: a clock, leases, a project with two users, adapters that crash."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tests.fakes.any_port import AnyPort
from tests.harness.stores import LeasesOfRunningJobs
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.jobs.source import JobContext
from webordinary.model.claims import Claim, ClaimStatus, StartedJob
from webordinary.model.jobs import Job, JobState
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser, branch_of
from webordinary.model.projects import Project

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
SCOTT = ProjectUser("amelia", "scott")
ZOE = ProjectUser("amelia", "zoe")
THREAD = "a" * 16
OTHER_THREAD = "b" * 16
PAGE = "<!doctype html>\n<title>Pots</title>\n<main>\n<h1>Pots</h1>\n<p>Open on Mondays.</p>\n</main>\n"


class TickingClock:
    """Time that moves a little with every look."""

    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> datetime:
        self.time += timedelta(milliseconds=1)
        return self.time


class JobCrash(BaseException):
    """The process is gone: nobody may catch this."""


class CrashingBefore(AnyPort):
    """Wraps an adapter; the numbered call of a shared count does not happen, and nothing after it does."""

    def __init__(self, adapter: object, count: list[int], crash_at: int, after: bool = False) -> None:
        self._adapter, self._count, self._crash_at, self._after = adapter, count, crash_at, after

    def __getattr__(self, name: str) -> Callable[..., object]:
        method = getattr(self._adapter, name)

        def call(*args: object, **kwargs: object) -> object:
            self._count[0] += 1
            if self._count[0] > self._crash_at or (self._count[0] == self._crash_at and not self._after):
                raise JobCrash(name)
            result = method(*args, **kwargs)
            if self._count[0] == self._crash_at:
                raise JobCrash(name)
            return result

        return call


def leases(dead: set[str] | None = None) -> LeasesOfRunningJobs:
    """The project's lease; workers named in `dead` have lost it."""
    return LeasesOfRunningJobs(MemoryDatabase(), lambda worker: worker in (dead or set()))


def work(
    project: Project, job_id: str = "job-1", *, key: ProjectUser = SCOTT, thread: str = THREAD,
    worker: str = "w-1", fence: int = 10,
) -> JobContext:  # fmt: skip
    return JobContext(project, key, thread, branch_of(thread), job_id, worker, fence)


def started(
    job_id: str, command: Command = Command.EDIT, *, key: ProjectUser = SCOTT, thread: str = THREAD,
    worker: str = "w-1", fence: int = 10,
) -> StartedJob:  # fmt: skip
    now = datetime.now(UTC)
    job = Job(job_id, key, 1, 1, thread, f"mail-of-{job_id}", command, JobState.RUNNING, now)
    return StartedJob(Claim(key, worker, fence, 0, ClaimStatus.HELD, now, now, now), job)
