"""The families of failure. A class name is also the error name that Retry and Catch read in the workflow.

Backoff says when a Transient failure is tried again.
"""

from __future__ import annotations

import errno
import os
import random
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webordinary.model.jobs import DeferReason, JobResult


class WebOrdinaryError(Exception):
    """The base of errors for people: what happened and what to do."""


class Transient(WebOrdinaryError):
    """Worth trying again: the disk was full, the database busy, the remote asleep."""


class DatabaseDamaged(Transient):
    """The database cannot be read until an operator has mended it. Mail and jobs wait until then."""


class Permanent(WebOrdinaryError):
    """Trying again cannot help: give it up where a person sees it."""


class ClaimLost(WebOrdinaryError):
    """The claim is over, or not known to be valid: stop now and write nothing more."""

    def __init__(self, key: object, worker: str, fence: int, why: str = "a newer claim acts for it now") -> None:
        super().__init__(f"{key}: {worker} lost fence {fence}; {why}")
        self.key, self.worker, self.fence = key, worker, fence


class InvalidName(Permanent):
    """A name that cannot be part of a queue name, a branch or a host name."""


class Interrupted(WebOrdinaryError):
    """The running job must end early and go on later; its work is saved first."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class JobTimedOut(WebOrdinaryError):
    """The job used up its wall-clock limit."""


class NotNow(WebOrdinaryError):
    """Nothing is wrong, but this job has to wait; a worker takes it up again then."""

    def __init__(self, held: DeferReason, look_again_at: datetime, result: JobResult | None = None) -> None:
        super().__init__(f"held by the {held}")
        self.held, self.look_again_at, self.result = held, look_again_at, result


class MustWait(WebOrdinaryError):
    """Nothing is wrong with this job: something else has to end first. It is queued again, its start given back."""

    def __init__(self, words: str, seconds: float) -> None:
        super().__init__(words)
        self.seconds = seconds


class MachineFault(WebOrdinaryError):
    """The machine failed, not the job: no disk space, memory or descriptors left. Counts no attempt, for a day."""


class ProgramKilled(MachineFault):
    """A program of the job was killed from outside, perhaps by the kernel for want of memory."""

    def __init__(self, program: str) -> None:
        super().__init__(f"{program} was killed from outside, perhaps by the kernel for want of memory")


class Cancelled(WebOrdinaryError):
    """The customer or the operator ended this job for good."""


class Stopped(Interrupted):
    """The worker ends in good order: the job keeps its place and its start is given back."""


OVER_LIMIT = "over the limit of"
"""In the reason why a mail beyond an hourly limit was refused: its sender is no stranger."""


class HourlyLimitReached(WebOrdinaryError):
    """A person has sent as many mails in this hour as may become work; the job is not recorded."""

    def __init__(self, key: object, limit: int) -> None:
        super().__init__(f"{key} is {OVER_LIMIT} {limit} mails an hour (setting hourly_mails)")
        self.limit = limit


class NameTaken(Permanent):
    """A worker of this name runs already."""

    def __init__(self, name: str, pid: int) -> None:
        super().__init__(f"a worker named {name!r} runs already, as process {pid}")


_MACHINE_ERRNOS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EROFS, errno.EIO, errno.EAGAIN}
)
_MACHINE_SQLITE = frozenset(
    {"SQLITE_FULL", "SQLITE_IOERR", "SQLITE_NOMEM", "SQLITE_READONLY", "SQLITE_CANTOPEN"}
    | {"SQLITE_CORRUPT", "SQLITE_NOTADB"}
)
_GITS_WORDS = ("Out of diskspace", "unable to fork", "cannot be mapped")
_LOADERS_WORDS = ("failed to map segment", "shared object file: Error")
"""The loader of programs has words for few errors and prints the numbers of others."""
_MACHINE_WORDS = (*(os.strerror(number) for number in sorted(_MACHINE_ERRNOS)), *_GITS_WORDS, *_LOADERS_WORDS)
_LONGEST_CHAIN = 20
KILLED_CODES = (-signal.SIGKILL, 128 + signal.SIGKILL)
"""Exit codes of a killed program; the second where a shell or a sandbox reports on the program in it."""


def is_machine_fault(problem: BaseException) -> bool:
    """Whether this was raised because the machine failed: by itself, or by what it was raised from."""
    chain: BaseException | None = problem
    for _ in range(_LONGEST_CHAIN):
        if chain is None:
            return False
        if _is_of_machine(chain):
            return True
        chain = chain.__cause__ if chain.__suppress_context__ else chain.__context__
    return False


def speaks_of_machine_fault(words: str) -> bool:
    """Whether a program's complaint is that the machine failed."""
    return any(said in words for said in _MACHINE_WORDS)


def _is_of_machine(problem: BaseException) -> bool:
    if isinstance(problem, OSError):
        return problem.errno in _MACHINE_ERRNOS
    name = "_".join(str(getattr(problem, "sqlite_errorname", "")).split("_")[:2])
    return isinstance(problem, MachineFault | MemoryError) or name in _MACHINE_SQLITE


def reason_of(problem: BaseException) -> str:
    """Why it failed, for people: what the operating system said, without the number of its error."""
    return (isinstance(problem, OSError) and problem.strerror) or str(problem)


MACHINE_FAULT_SECONDS = 86_400.0
"""Work that fails by faults of the machine only is tried again for this long."""
_MOST_FAILING = 10_000


class MachineFaultRetries:
    """Repeats work that failed by a fault of the machine for a day, counted from its first failure in this process.

    By a clock that does not jump: neither downtime nor the time that a job waited for its turn counts. Thread-safe.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic, self._guard = monotonic, threading.Lock()
        self._failing: dict[str, tuple[float, float]] = {}
        """The first and the last failure of each piece of work."""

    def calls_again(self, work: str, problem: Exception) -> bool:
        """True for a fault of the machine, unless the same work has failed by such faults for too long."""
        if not is_machine_fault(problem):
            return False
        now = self._monotonic()
        with self._guard:
            first, last = self._failing.pop(work, (now, now))
            if now - last >= MACHINE_FAULT_SECONDS:  # it went well in between
                first = now
            self._failing[work] = (first, now)
            while len(self._failing) > _MOST_FAILING:
                self._failing.pop(next(iter(self._failing)))
        return now - first < MACHINE_FAULT_SECONDS


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays in seconds: `base * factor ** attempt`, at most `cap`.

    `jitter` is the random share of each delay, so that clients that failed together do not retry together:
    0 is none, 1 is full jitter (from zero to the whole delay).
    """

    base: float
    factor: float = 2.0
    cap: float = 60.0
    jitter: float = 0.5

    def delay(self, attempt: int, rng: random.Random | None = None) -> float:
        """The delay before the retry after attempt number `attempt`, counted from 0; without `rng` it has no jitter."""
        try:
            ceiling = min(self.cap, self.base * self.factor**attempt)
        except OverflowError:
            ceiling = self.cap
        return ceiling if rng is None else rng.uniform(ceiling * (1 - self.jitter), ceiling)
