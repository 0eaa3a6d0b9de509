"""Stage: the agent follows the instruction, and what it changed is recorded."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from webordinary.model.errors import Permanent
from webordinary.model.text import clean
from webordinary.site.sources import Change, Unfit, Workspace
from webordinary.site.task import SMALLER, AgentResult, AgentTask, AttachedFile, NotUnderstood
from webordinary.worker.run import JobRun

PROGRESS_CHARACTERS = 300


def instruct(run: JobRun, workspace: Workspace, note: str = "") -> AgentResult:
    """Run the project's agent in the workspace; `note` tells it what went wrong the first time."""
    began = run.now()
    agent = run.kit.agents.get(run.project.agent)
    if agent is None:
        known = ", ".join(sorted(run.kit.agents))
        raise Permanent(f"{run.project.project_id} is set to agent {run.project.agent!r}; this worker has: {known}")
    limits = replace(run.kit.limits, spent_usd=run.kit.ledger.of_job(run.job.job_id))
    if not limits.left_usd:
        return NotUnderstood(f"This took {limits.too_costly}, so I stopped. {SMALLER}")
    thread_id = run.job.thread_id
    task = AgentTask(
        instruction=run.wish,
        note=note,
        workspace=workspace.path,
        attachments=tuple(AttachedFile(a, run.kit.attachment_path(a)) for a in run.instruction.attachments),
        session=run.kit.sessions.session_of(thread_id),
        limits=limits,
        project_id=run.project.project_id,
        thread_id=thread_id,
        tell=lambda words: run.tell("AgentProgress", began, words=clean(words)[:PROGRESS_CHARACTERS]),
        spent=lambda usd: run.kit.ledger.spend(run.job, usd, run.now()) if usd > 0 else None,
    )
    result = cleaned(agent.run(task, run.hold))
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


def cleaned(result: AgentResult) -> AgentResult:
    """What an agent says may quote anything: pages in other encodings, names, bytes."""
    values = ((field.name, getattr(result, field.name)) for field in fields(result))
    words: dict[str, Any] = {name: clean(value) for name, value in values if isinstance(value, str)}
    return replace(result, **words)


def record(run: JobRun, workspace: Workspace, summary: str, undoes: str = "") -> Change | Unfit | None:
    """Commit what differs on the thread's branch; None when nothing does, Unfit when it cannot be part of a site.

    Whoever has to end now ends after that: finished work is kept as such, and no agent is asked for it again.
    """
    began = run.now()
    change = run.kit.workspaces.commit(workspace, run.message(summary, undoes))
    if isinstance(change, Change):
        run.tell("ChangeCommitted", began, commit=change.commit, files=list(change.changed_files[:20]))
    run.hold.check()
    return change
