"""The families of failure. A class name is also the error name that Retry and Catch read in the workflow."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webordinary.model.jobs import HeldBy


class WebOrdinaryError(Exception):
    """Anything this system can tell a person about: what happened and what to do."""


class Transient(WebOrdinaryError):
    """Worth trying again: the disk was full, the database busy, the remote asleep."""


class Permanent(WebOrdinaryError):
    """Trying again cannot help: give it up where a person sees it."""


class ClaimLost(WebOrdinaryError):
    """A newer claim exists for this key: stop now and write nothing more."""

    def __init__(self, key: object, worker: str, fence: int) -> None:
        super().__init__(f"{key}: {worker} lost fence {fence}; a newer claim acts for it now")
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
    """Nothing is wrong, but this job has to wait; somebody looks again then."""

    def __init__(self, held: HeldBy, look_again_at: datetime) -> None:
        super().__init__(f"held by the {held}")
        self.held, self.look_again_at = held, look_again_at


class MustWait(WebOrdinaryError):
    """Nothing is wrong with this job: something else has to end first. It is queued again, its start given back."""

    def __init__(self, words: str, seconds: float) -> None:
        super().__init__(words)
        self.seconds = seconds


class Cancelled(WebOrdinaryError):
    """The customer or the operator ended this job for good."""


class Stopped(Interrupted):
    """The worker ends in good order: the job keeps its place and its start is given back."""


class NameTaken(Permanent):
    """A worker of this name runs already: people could not tell the two apart."""

    def __init__(self, name: str, pid: int) -> None:
        super().__init__(f"a worker named {name!r} runs already, as process {pid}")


def reason_of(problem: BaseException) -> str:
    """Why it failed, for people: what the operating system said, without the number of its error."""
    return (isinstance(problem, OSError) and problem.strerror) or str(problem)
