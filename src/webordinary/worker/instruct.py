"""Stage: the agent follows the instruction, and what it changed is recorded."""

from __future__ import annotations

from webordinary.model.errors import Permanent
from webordinary.site.sources import Change, Unfit, Workspace
from webordinary.site.task import AgentResult, AgentTask, AttachedFile
from webordinary.worker.run import JobRun

PROGRESS_CHARACTERS = 300


def instruct(run: JobRun, workspace: Workspace, note: str = "") -> AgentResult:
    """Run the project's agent in the workspace; `note` tells it what went wrong the first time."""
    began = run.now()
    agent = run.kit.agents.get(run.project.agent)
    if agent is None:
        known = ", ".join(sorted(run.kit.agents))
        raise Permanent(f"{run.project.project_id} is set to agent {run.project.agent!r}; this worker has: {known}")
    thread_id = run.job.thread_id
    task = AgentTask(
        instruction=run.wish,
        note=note,
        workspace=workspace.path,
        attachments=tuple(AttachedFile(a, run.kit.attachment_path(a)) for a in run.instruction.attachments),
        session=run.kit.sessions.session_of(thread_id),
        limits=run.kit.limits,
        project_id=run.project.project_id,
        thread_id=thread_id,
        tell=lambda words: run.tell("AgentProgress", began, words=words[:PROGRESS_CHARACTERS]),
        spent=lambda usd: run.kit.ledger.spend(run.job, usd, run.now()) if usd > 0 else None,
    )
    result = agent.run(task, run.hold)
    if result.session and result.session != task.session:
        run.kit.sessions.keep_session(thread_id, result.session)
    run.tell(
        "AgentFinished",
        began,
        agent=result.agent or run.project.agent,
        result=type(result).__name__,
        cost_usd=result.cost_usd,
    )
    return result


def record(run: JobRun, workspace: Workspace, summary: str, undoes: str = "") -> Change | Unfit | None:
    """Commit what differs on the thread's branch; None when nothing does, Unfit when it cannot be part of a site."""
    began = run.now()
    run.hold.check()
    change = run.kit.workspaces.commit(workspace, run.message(summary, undoes))
    if isinstance(change, Change):
        run.tell("ChangeCommitted", began, commit=change.commit, files=list(change.changed_files[:20]))
    return change
