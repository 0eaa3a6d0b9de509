"""One job from start to Settlement: checkout, instruct, build, publish, report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from webordinary.model.claims import Started
from webordinary.model.errors import Permanent
from webordinary.model.events import Events
from webordinary.model.hold import Hold
from webordinary.model.jobs import Job, Settlement
from webordinary.model.mail import Command, Instruction
from webordinary.site.kit import SiteKit
from webordinary.site.publish import Published
from webordinary.site.sources import BuildFailed, Conflicted, Unfit, Workspace
from webordinary.site.task import Answered, Changed
from webordinary.worker import report
from webordinary.worker.budget import check_budget
from webordinary.worker.checkout import check_out
from webordinary.worker.instruct import instruct, record
from webordinary.worker.publish import promote, publish, publish_and_report
from webordinary.worker.run import JobRun
from webordinary.worker.undo import undo


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
        """Do what the customer asked and say what became of it. Doing it again after a crash changes nothing twice.

        Raises ClaimLost, Interrupted, Cancelled, JobTimedOut, NotNow, MustWait, Transient and Permanent.
        """
        job_id = started.job.job_id
        self._standing.pop(job_id, None)
        run = self._begin(started, hold)
        check_budget(run)
        settlement = self._do(run)
        self._standing.pop(job_id, None)
        cost = self._kit.ledger.of_job(job_id)
        return replace(settlement, result=replace(settlement.result, cost_usd=cost)) if cost else settlement

    def found(self, started: Started, hold: Hold) -> Settlement | None:
        """Finish what is on main already; else nothing of this job gets there, as its key's fence has moved.

        A `publish` is done when the public site shows what the edit site shows.
        """
        run, command = self._begin(started, hold), started.job.command
        if command is Command.PUBLISH:
            release = run.publisher().promoted(run.project.project_id, hold)
            return report.of_promotion(run, release) if release else None
        if command not in (Command.EDIT, Command.UNDO):
            return None
        workspace = check_out(run)
        return publish_and_report(run, workspace) if workspace.on_main else None

    def save(self, started: Started, hold: Hold) -> None:
        """Keep an interrupted job's work."""
        standing = self._standing.pop(started.job.job_id, None)
        if standing is None:
            return  # it had not begun to work
        hold.check()
        save_work(*standing)

    def _begin(self, started: Started, hold: Hold) -> JobRun:
        job = started.job
        project = self._kit.project_of(job.key.project_id)
        return JobRun(started, self._instruction_of(job), project, hold, self._kit, self._events, self._now)

    def _do(self, run: JobRun) -> Settlement:
        command = run.job.command
        if command is Command.PUBLISH:
            return report.of_promotion(run, promote(run))
        if command not in (Command.EDIT, Command.UNDO):
            raise Permanent(f"{command} is answered at once and never becomes a worker's job")
        if command is Command.EDIT and not run.wish:
            return report.of_no_words(run.instruction.attachments)
        workspace = check_out(run)
        if command is Command.UNDO:
            return undo(run, workspace)  # quickly done again, so nothing of it is ever saved half-way
        self._stand(run, workspace)
        return _edit(run, workspace)

    def _stand(self, run: JobRun, workspace: Workspace) -> None:
        for job_id in [job_id for job_id, (other, _) in self._standing.items() if other.job.key == run.job.key]:
            self._standing.pop(job_id, None)  # the key has one workspace, and it stands for this job now
        self._standing[run.job.job_id] = (run, workspace)


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
        if not isinstance(result, Changed) and not (workspace.resumed and isinstance(result, Answered)):
            return report.of_agent(result)
        # Content with what it finds, an agent may only say so: what it did before it was interrupted counts as well.
        change = record(run, workspace, result.summary if isinstance(result, Changed) else result.text)
        if isinstance(change, Unfit):
            return change
        if change is None:
            return report.of_no_difference(result) if isinstance(result, Changed) else report.of_agent(result)
        workspace = replace(workspace, made=change)
    return publish(run, workspace)
