"""What must be true of every origin and site after each step: nothing under an old fence, nothing twice or lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fakes.repositories import LIVE, MAIN, MemoryCommit, MemoryLineHistory, MemoryOrigin, Pushed
from tests.simulation.process import Process
from tests.simulation.scheduler import Broken
from webordinary.jobs.site_files import Stage

if TYPE_CHECKING:
    from tests.simulation.harness import SimulationHarness


class SiteRules:
    """Watches one world's repositories and releases."""

    def __init__(self, world: SimulationHarness) -> None:
        self._world = world
        self._judged = dict.fromkeys(world.durable.origins, 0)
        self._spoken: dict[str, int] = {}
        self._main = {name: origin.refs[MAIN] for name, origin in world.durable.origins.items()}
        self._live: dict[str, str] = {}
        self._shown: dict[tuple[str, Stage], str] = {}

    def check(self, by: Process) -> None:
        """Judge all that the last call changed."""
        for name, origin in self._world.durable.origins.items():
            for pushed in origin.pushes[self._judged[name] :]:
                self._pushed(origin, pushed, by)
            self._judged[name] = len(origin.pushes)
        for place, site in self._world.durable.releases.sites.items():
            if site.shown and not place[1].is_preview and self._shown.get(place) != site.shown[1]:
                self._flipped(place, site.shown[1])

    def _pushed(self, origin: MemoryOrigin, pushed: Pushed, by: Process) -> None:
        for ref, fence in pushed.fences.items():
            highest = self._spoken.get(ref, 0)
            if fence < highest:
                raise Broken(f"{by.name} pushed {dict(pushed.moves)} under {ref} {fence}; {highest} has spoken")
            self._spoken[ref] = fence
        if MAIN in pushed.moves:
            self._main_moved(origin, pushed.moves[MAIN])
        if LIVE in pushed.moves:
            self._live_moved(origin, pushed.moves[LIVE])

    def _main_moved(self, origin: MemoryOrigin, to: str) -> None:
        history = list(origin.history(to))
        if self._main[origin.name] not in [commit.oid for commit in history]:
            raise Broken(f"{origin.name}: main went from {self._main[origin.name]} to {to}, losing work")
        jobs = [commit.note.job_id for commit in history if commit.note.job_id]
        if len(jobs) != len(set(jobs)):
            raise Broken(f"{origin.name}: a change is on main twice: {jobs}")
        if any(commit.note.saved_for for commit in history):
            raise Broken(f"{origin.name}: unfinished work reached main")
        record = self._world.durable.state.jobs[history[0].note.job_id]
        if not record.open:
            raise Broken(f"{record.job_id} was published after it was settled as {record.outcome}")
        self._main[origin.name] = to

    def _live_moved(self, origin: MemoryOrigin, to: str) -> None:
        """Live only grows, by one commit of an open job, and by changes of main that the job may publish."""
        commit = origin.commits[to]
        before = self._live.get(origin.name)
        if before is not None and commit.parent != before:
            raise Broken(f"{origin.name}: live went from {before} to {to}, losing a publication")
        record = self._world.durable.state.jobs[commit.note.job_id]
        if not record.open:
            raise Broken(f"{record.job_id} was brought to live after it was settled as {record.outcome}")
        on_main = {one.oid: one for one in origin.history(origin.refs[MAIN])}
        jobs = [one.note.job_id for one in origin.history(to) if one.oid not in on_main]
        if len(jobs) != len(set(jobs)):
            raise Broken(f"{origin.name}: a job published twice: {jobs}")
        for picked in commit.note.publishes:
            if picked not in on_main:
                raise Broken(f"{origin.name}: {to} publishes {picked}, which is not on main")
            asked = self._world.durable.state.jobs[on_main[picked].note.job_id]
            if asked.key != record.key:
                raise Broken(f"{record.job_id} of {record.key} published a change of {asked.key}")
        self._check_content(origin, commit)
        self._live[origin.name] = to

    def _check_content(self, origin: MemoryOrigin, commit: MemoryCommit) -> None:
        """A publication changes the files of what it names, and no other file."""
        if commit.note.shows:
            expected = origin.commits[commit.note.shows].files
        else:
            named = [*commit.note.publishes, *commit.note.takes_back]
            files = {name for names in MemoryLineHistory(origin).files_of(named).values() for name in names}
            kept = {name: text for name, text in origin.commits[commit.parent].files.items() if name not in files}
            expected = kept | {name: text for name, text in commit.files.items() if name in files}
        if dict(commit.files) != dict(expected):
            raise Broken(f"{origin.name}: {commit.oid} on live holds more than it publishes")

    def _flipped(self, place: tuple[str, Stage], commit: str) -> None:
        """Sites only go forward: what was shown before is part of what is shown now."""
        project_id, stage = place
        origin = self._world.durable.origins[project_id]
        history = [one.oid for one in origin.history(commit)]
        before = self._shown.get(place)
        if before is not None and before not in history:
            raise Broken(f"the {stage} site of {project_id} went back from {before} to {commit}")
        line = MAIN if stage is Stage.EDIT else LIVE
        if commit not in [one.oid for one in origin.history(origin.refs[line])]:
            raise Broken(f"the {stage} site of {project_id} shows {commit}, which is not on {line}")
        self._shown[place] = commit
