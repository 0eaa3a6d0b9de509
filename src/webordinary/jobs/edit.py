"""The job `edit`: check out, run the agent, commit, deploy. And the saving of unfinished work."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from webordinary.jobs import report
from webordinary.jobs.agent_task import SMALLER, AgentResult, AgentTask, Answered, AttachedFile, Changed, NotUnderstood
from webordinary.jobs.deploy import EditDeployment
from webordinary.jobs.page_checks import Flawed
from webordinary.jobs.publish import deploy_edit
from webordinary.jobs.run import JobRun
from webordinary.jobs.source import BuildFailed, Change, InvalidChange, MergeConflict, Workspace
from webordinary.model.errors import Permanent
from webordinary.model.events import EventKind
from webordinary.model.jobs import Settlement
from webordinary.model.text import clean, without_secrets

PROGRESS_CHARACTERS = 300


def edit(run: JobRun, workspace: Workspace) -> tuple[Settlement, str]:
    """Edit the site, and say what the customer wants done after it: `publish`, `undo` or nothing.

    After a conflict, a failed build, an invalid file or a broken page the agent gets one more try. An agent without a
    model does the same again, so its pages are not held up by flaws.
    """
    outcome = _edit_once(run, workspace, lenient=run.agent_is_free)
    may_retry = not isinstance(outcome, BuildFailed) or outcome.mendable
    may_retry &= not (isinstance(outcome, Flawed) and run.agent_is_free)
    if may_retry and not isinstance(outcome, tuple | EditDeployment):
        outcome = _edit_once(run, check_out(run), report.note_on(outcome))
    if isinstance(outcome, tuple):
        return outcome
    return report.of_deployment(run, outcome), outcome.change.then if isinstance(outcome, EditDeployment) else ""


def _edit_once(
    run: JobRun, workspace: Workspace, note: str = "", *, lenient: bool = True
) -> tuple[Settlement, str] | EditDeployment | MergeConflict | BuildFailed | InvalidChange | Flawed:
    if workspace.made is None:
        result = run_agent(run, workspace, note)
        if not isinstance(result, Changed) and not (workspace.resumed and isinstance(result, Answered)):
            return report.of_agent(result), result.then if isinstance(result, Answered) else ""
        # An agent that resumes may only answer: the changes it made before the interruption count as well.
        change = commit_change(
            run, workspace, result.summary if isinstance(result, Changed) else result.text, then=result.then
        )
        if isinstance(change, InvalidChange):
            return change
        if change is None:
            same = report.of_no_difference(result) if isinstance(result, Changed) else report.of_agent(result)
            return same, result.then
        workspace = replace(workspace, made=change)
    return deploy_edit(run, workspace, lenient=lenient)


def check_out(run: JobRun) -> Workspace:
    """Prepare the key's workspace for this job, under its fence."""
    began = run.now()
    run.token.check()
    workspace = run.deps.workspaces.prepare(run.context())
    run.emit(
        EventKind.WORKSPACE_PREPARED, began,
        branch=workspace.work.branch, resumed=workspace.resumed, already_made=workspace.made is not None,
    )  # fmt: skip
    return workspace


def run_agent(run: JobRun, workspace: Workspace, note: str = "") -> AgentResult:
    """Run the project's agent in the workspace; `note` says why the first try could not be deployed."""
    began = run.now()
    agent = run.deps.agents.get(run.project.agent)
    if agent is None:
        known = ", ".join(sorted(run.deps.agents))
        raise Permanent(f"{run.project.project_id} is set to agent {run.project.agent!r}; this worker has: {known}")
    spent = 0.0 if run.agent_is_free else run.deps.ledger.of_job(run.job.job_id)
    limits = replace(run.deps.limits, spent_usd=spent)
    if not limits.left_usd:
        return NotUnderstood(f"This took {limits.too_costly}, so I stopped. {SMALLER}")
    thread_id = run.job.thread_id
    task = AgentTask(
        instruction=run.request,
        note=note,
        wishes=run.project.wishes,
        workspace=workspace.path,
        attachments=tuple(AttachedFile(a, run.deps.attachment_path(a)) for a in run.instruction.attachments),
        session=run.deps.sessions.session_of(thread_id),
        limits=limits,
        project_id=run.project.project_id,
        thread_id=thread_id,
        tell=lambda words: run.emit(
            EventKind.AGENT_PROGRESS, began, words=without_secrets(clean(words))[:PROGRESS_CHARACTERS]
        ),
        spent=lambda usd: run.deps.ledger.spend(run.job, usd, run.now()) if usd > 0 else None,
    )
    result = _cleaned(agent.run(task, run.token))
    if result.session and result.session != task.session:
        run.deps.sessions.keep_session(thread_id, result.session)
    run.emit(
        EventKind.AGENT_FINISHED,
        began,
        agent=result.agent or run.project.agent,
        result=type(result).__name__,
        cost_usd=result.cost_usd,
    )
    return result


def _cleaned(result: AgentResult) -> AgentResult:
    """The result with clean texts: an agent may quote pages in other encodings, names and bytes."""
    texts: dict[str, Any] = {}
    for field in fields(result):
        value = getattr(result, field.name)
        if isinstance(value, str):
            texts[field.name] = clean(value)
    return replace(result, **texts)


def commit_change(
    run: JobRun, workspace: Workspace, summary: str, undoes: str = "", then: str = ""
) -> Change | InvalidChange | None:
    """Commit the workspace's differences on the thread's branch; None if there are none.

    A job that must end ends after the commit: finished work is kept, and the agent does not run again.
    """
    began = run.now()
    change = run.deps.workspaces.commit(workspace, run.message(summary, undoes, then=then))
    if isinstance(change, Change):
        run.emit(EventKind.CHANGE_COMMITTED, began, commit=change.commit, files=list(change.changed_files[:20]))
    run.token.check()
    return change


def save_work(run: JobRun, workspace: Workspace) -> None:
    """Push unfinished work to the thread's branch, so that any worker can resume the job."""
    kept = run.deps.workspaces.commit(workspace, run.message("Interrupted; goes on later.", unfinished=True))
    if isinstance(kept, InvalidChange):
        raise Permanent(kept.reason)
    run.deps.workspaces.save(workspace)
