"""The customers' sites as a worker meets them: an agent and a builder that take virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.fakes.repositories import MemoryRemote, MemoryRepository, Seen
from tests.harness.pool_records import PoolRecords
from tests.simulation.process import Process
from tests.simulation.releases import SimulatedReleases
from tests.simulation.scenario import Letter, Manner
from tests.simulation.scheduler import Broken
from webordinary.adapters.git.workspaces import FenceMark
from webordinary.jobs.ports import AgentResult, AgentTask, Answered, Changed
from webordinary.jobs.source import BuildFailed, Built, SourceTree
from webordinary.model.claims import MAX_ATTEMPTS, CancelToken
from webordinary.model.errors import Permanent, Transient
from webordinary.model.mail import Command

_ENDLESS_SECONDS = 1e6
_MOMENTS_OF_A_PUSH = 20
"""A push takes longer than other calls, and so is more often cut off."""


def work_for(process: Process, seconds: float, token: CancelToken) -> None:
    """Be busy, as an outside program is: it ends early only because somebody tells it to."""
    told = process.stop_event()
    with token.on_stop(told.set):
        told.wait(seconds)
    token.check()


class SimulatedAgent:
    """Does to the workspace what the letter's manner says."""

    def __init__(
        self,
        process: Process,
        repository: MemoryRepository,
        letters: Mapping[str, Letter],
        state: PoolRecords,
    ) -> None:
        self._process, self._repository, self._letters, self._state = process, repository, letters, state

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        """See Agent."""
        token.check()
        letter, job = self._letters[task.instruction], self._state.jobs[token.job_id]
        if self._state.claims[job.key].fence != token.fence:
            raise Broken(f"{token.worker} trusts its lease of {job.key}, and it is over")
        if job.attempts > MAX_ATTEMPTS:
            raise Broken(f"{job.job_id} is tried for the {job.attempts}th time")
        self._process.note("agent begins", letter.text)
        endless = letter.manner is Manner.ENDLESS
        work_for(self._process, _ENDLESS_SECONDS if endless else letter.seconds, token)
        match letter.manner:
            case Manner.ANSWERS:
                return Answered("it is as you wish")
            case Manner.UNDOES:
                return Answered("it was nicer before", then=Command.UNDO)
            case Manner.TRANSIENT:
                raise Transient("the model is asleep")
            case Manner.PERMANENT:
                raise Permanent("the model refuses")
            case Manner.SURPRISE:
                raise ZeroDivisionError("nobody foresaw this")
            case Manner.DEADLY:
                self._process.crash()
        files = self._repository.files_at(task.workspace)
        name = "index.html" if letter.manner is Manner.SHARED_FILE else f"page-{letter.number}.html"
        files[name] = f"{letter.text} {files.get(name, '')}"
        then = Command.PUBLISH if letter.manner is Manner.PUBLISHES else ""
        return Changed(f"made change {letter.number}", then=then)


class KilledPushes:
    """An origin as one process pushes to it: git, killed in a push, has moved some of the refs, main first."""

    def __init__(self, inside: MemoryRemote, process: Process) -> None:
        self._inside, self._process = inside, process

    def read(self) -> Seen:
        """See Remote."""
        return self._inside.read()

    def push(self, moves: Mapping[str, str], marks: Mapping[str, FenceMark], seen: Seen) -> bool:
        """See Remote."""
        if len(moves) > 1 and any(self._process.weather.crashes("push") for _ in range(_MOMENTS_OF_A_PUSH)):
            self._inside.push(dict(list(moves.items())[:1]), marks, seen)
            self._process.crash()
        return self._inside.push(moves, marks, seen)


class SimulatedBuilder:
    """Copies the files, slowly."""

    def __init__(self, process: Process, releases: SimulatedReleases) -> None:
        self._process, self._releases = process, releases

    def fits(self, tree: SourceTree) -> bool:
        """It builds anything."""
        return True

    def build(self, tree: SourceTree, into: Path, previous: Path | None, token: CancelToken) -> Built | BuildFailed:
        """See Builder."""
        work_for(self._process, self._process.weather.rng.random(), token)
        self._releases.fill(into, tree.files)
        return Built(len(tree.files), "simulated")
