"""One job from start to Settlement: checkout, instruct, build, publish, report."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from webordinary.model.claims import Started
from webordinary.model.errors import Permanent, Transient
from webordinary.model.events import Events
from webordinary.model.hold import Hold
from webordinary.model.jobs import Job, Settlement
from webordinary.model.mail import Command, Instruction
from webordinary.site.kit import SiteKit
from webordinary.site.publish import Published
from webordinary.site.releases import Stage
from webordinary.site.sources import BuildFailed, Conflicted, Unfit, Workspace
from webordinary.site.task import Changed
from webordinary.worker import report
from webordinary.worker.budget import check_budget
from webordinary.worker.checkout import check_out
from webordinary.worker.instruct import instruct, record
from webordinary.worker.publish import promote, publish
from webordinary.worker.run import JobRun

_log = logging.getLogger(__name__)


class SiteWork:
    """The worker's Work on real sites. Thread-safe: each slot runs another key."""

    def __init__(
        self,
        kit: SiteKit,
        instruction_of: Callable[[Job], Instruction],
        events: Events,
        now: Callable[[], datetime],
    ) -> None:
        self._kit, self._instruction_of, self._events, self._now = kit, instruction_of, events, now
        self._standing: dict[str, tuple[JobRun, Workspace]] = {}

    def perform(self, started: Started, hold: Hold) -> Settlement:
        """See perform below."""
        self._standing.pop(started.job.job_id, None)
        settlement = perform(
            started, self._instruction_of(started.job), hold, self._kit, self._events, self._now, self._stand
        )
        self._standing.pop(started.job.job_id, None)
        return settlement

    def found(self, started: Started, hold: Hold) -> Settlement | None:
        """Finish what is on main already; else nothing of this job gets there, as its key's fence has moved.

        A `publish` is done when the public site shows what the edit site shows.
        """
        job = started.job
        project = self._kit.project_of(job.key.project_id)
        run = JobRun(started, self._instruction_of(job), project, hold, self._kit, self._events, self._now)
        if job.command is Command.PUBLISH:
            release = run.publisher().promoted(project.project_id, hold)
            return report.of_promotion(run, release) if release else None
        if job.command not in (Command.EDIT, Command.UNDO):
            return None
        workspace = check_out(run)
        return _published(run, workspace) if workspace.on_main else None

    def save(self, started: Started, hold: Hold) -> None:
        """Keep an interrupted job's work; what cannot be saved is done again when the job goes on."""
        standing = self._standing.pop(started.job.job_id, None)
        if standing is None:
            return  # it had not begun to work
        run, workspace = standing
        hold.check()
        try:
            save_work(run, workspace)
        except (Transient, Permanent) as problem:
            _log.warning("%s: unfinished work of %s is not saved: %s", run.job.key, run.job.job_id, problem)

    def _stand(self, run: JobRun, workspace: Workspace) -> None:
        for job_id in [job_id for job_id, (other, _) in self._standing.items() if other.job.key == run.job.key]:
            self._standing.pop(job_id, None)  # the key has one workspace, and it stands for this job now
        self._standing[run.job.job_id] = (run, workspace)


def perform(
    started: Started,
    instruction: Instruction,
    hold: Hold,
    kit: SiteKit,
    events: Events,
    now: Callable[[], datetime],
    stand: Callable[[JobRun, Workspace], None] = lambda run, workspace: None,
) -> Settlement:
    """Do what the customer asked and say what became of it. Running it again after a crash changes nothing twice.

    `stand` is told once the workspace is this job's. Raises ClaimLost, Interrupted, Cancelled, JobTimedOut,
    NotNow, Transient and Permanent.
    """
    run = JobRun(started, instruction, kit.project_of(started.job.key.project_id), hold, kit, events, now)
    check_budget(run)
    settlement = _perform(run, stand)
    cost = kit.ledger.of_job(started.job.job_id)
    return replace(settlement, result=replace(settlement.result, cost_usd=cost)) if cost else settlement


def _perform(run: JobRun, stand: Callable[[JobRun, Workspace], None]) -> Settlement:
    started = run.started
    if started.job.command is Command.PUBLISH:
        return report.of_promotion(run, promote(run))
    if started.job.command not in (Command.EDIT, Command.UNDO):
        raise Permanent(f"{started.job.command} is answered at once and never becomes a worker's job")
    if started.job.command is Command.EDIT and not run.wish:
        return report.of_no_words(run.instruction.attachments)
    workspace = check_out(run)
    if started.job.command is Command.UNDO:
        return _undo(run, workspace)  # quickly done again, so nothing of it is ever saved half-way
    stand(run, workspace)
    return _edit(run, workspace)


def save_work(run: JobRun, workspace: Workspace) -> None:
    """Put what is there on the thread's branch, so that the job can go on later, on any worker."""
    kept = run.kit.workspaces.commit(workspace, run.message("Interrupted; goes on later.", unfinished=True))
    if isinstance(kept, Unfit):
        raise Permanent(kept.reason)
    run.kit.workspaces.save(workspace)


def _edit(run: JobRun, workspace: Workspace) -> Settlement:
    """A conflict, a failed build or an unfit file goes back to the agent once; then it is said in words."""
    outcome = _edit_once(run, workspace)
    if isinstance(outcome, Settlement | Published) or (isinstance(outcome, BuildFailed) and not outcome.mendable):
        return report.of_edit(run, outcome)
    return report.of_edit(run, _edit_once(run, check_out(run), report.note_on(outcome)))


def _edit_once(
    run: JobRun, workspace: Workspace, note: str = ""
) -> Settlement | Published | Conflicted | BuildFailed | Unfit:
    if workspace.made is None:
        result = instruct(run, workspace, note)
        if not isinstance(result, Changed):
            return report.of_agent(result)
        change = record(run, workspace, result.summary)
        if isinstance(change, Unfit):
            return change
        if change is None:
            return report.of_no_difference(result)
        workspace = replace(workspace, made=change)
    return publish(run, workspace)


def _undo(run: JobRun, workspace: Workspace) -> Settlement:
    if workspace.made is None:
        last = run.kit.workspaces.last_change(workspace)
        if last is None:
            return report.of_nothing_to_undo()
        conflict = run.kit.workspaces.revert(workspace, last)
        if isinstance(conflict, Conflicted):
            return report.of_undo_in_the_way(conflict.files)
        change = record(run, workspace, f"Undone: {last.summary}", undoes=last.commit)
        if isinstance(change, Unfit):
            return report.of_publication(run, change)
        if change is None:
            return report.of_nothing_to_undo()
        workspace = replace(workspace, made=change)
    return _published(run, workspace)


def _published(run: JobRun, workspace: Workspace) -> Settlement:
    outcome = publish(run, workspace)
    return report.of_publication(run, outcome, still_public=_still_public(run, workspace, outcome))


def _still_public(run: JobRun, workspace: Workspace, outcome: Published | Conflicted | BuildFailed) -> bool:
    """Whether visitors of the public site see what was undone just now; a look that never fails a job."""
    if not isinstance(outcome, Published) or not outcome.change.undoes:
        return False
    change, holds = outcome.change, run.kit.workspaces.holds
    try:
        public = run.publisher().shown(run.project.project_id, Stage.PUBLIC)
        name = public.name if public else ""
        return bool(name) and holds(workspace, name, change.undoes) and not holds(workspace, name, change.commit)
    except (Transient, Permanent) as problem:
        _log.warning("%s: what its public site shows is not known: %s", run.project.project_id, problem)
        return False
