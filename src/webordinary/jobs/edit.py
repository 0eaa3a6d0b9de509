"""The job `edit`: check out, run the agent, commit, build, deploy, screenshots. And the saving of unfinished work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from webordinary.jobs import report
from webordinary.jobs.dates import settle_date
from webordinary.jobs.deploy import EditDeployment
from webordinary.jobs.page_checks import Flawed, SiteComparison, compare_releases
from webordinary.jobs.ports import (
    SMALLER,
    AgentResult,
    AgentTask,
    Answered,
    AttachedFile,
    Builder,
    Changed,
    NotUnderstood,
)
from webordinary.jobs.run import JobRun
from webordinary.jobs.site_files import Release, Stage, manifest_of, page_to_show, release_name
from webordinary.jobs.source import (
    BuildFailed,
    Built,
    Change,
    InvalidChange,
    MergeConflict,
    Merged,
    SourceTree,
    Workspace,
)
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import Permanent, Transient
from webordinary.model.events import EventKind
from webordinary.model.jobs import Settlement
from webordinary.model.mail import Attachment, Command
from webordinary.model.projects import Project
from webordinary.model.text import clean, without_secrets

MAIN_MOVED_TRIES = 5


def deploy_edit(
    run: JobRun, workspace: Workspace, *, lenient: bool = True
) -> EditDeployment | MergeConflict | BuildFailed | Flawed:
    """Bring the committed change to main and to the edit site; after a failure the thread's branch is main again.

    A `lenient` deployment takes pages with flaws, which the reply names; never a host that is not allowed.
    """
    began = run.now()
    outcome = _deploy(run, workspace, lenient=lenient)
    if not isinstance(outcome, EditDeployment):
        run.deps.workspaces.abandon(workspace)
        return outcome
    page = page_to_show(manifest_of(outcome.before), manifest_of(outcome.release.path)) or ""
    run.emit(
        EventKind.SITE_PUBLISHED, began,
        stage=Stage.EDIT.value, commit=outcome.change.commit, release=outcome.release.name,
        flipped=outcome.flipped, url=run.edit_url(page),
    )  # fmt: skip
    stands = not workspace.on_main or _stands(run, workspace, outcome.change)
    outcome = replace(outcome, page=page, stands=stands)
    return replace(outcome, pictures=take_screenshots(run, outcome))


def _deploy(
    run: JobRun, workspace: Workspace, *, lenient: bool
) -> EditDeployment | MergeConflict | BuildFailed | Flawed:
    """Merge, build, push and show under the project's lease; again from the merge when main has moved."""
    deployer, project_id = run.deployer, run.project.project_id
    for _ in range(MAIN_MOVED_TRIES):
        with deployer.leased(project_id, run.token, saving=workspace) as lease:
            merged = deployer.merge(workspace, lease)
            if isinstance(merged, MergeConflict):
                return merged
            built, before = find_or_build(run, merged, lease, Stage.EDIT)
            if isinstance(built, BuildFailed) and merged.on_main:
                raise unbuilt(built)
            if isinstance(built, BuildFailed):
                return built
            comparison = compare_releases(before, built if isinstance(built, Path) else built.path)
            if not merged.on_main and (flawed := _flaws(run, comparison, lenient=lenient)):
                return flawed
            shown = deployer.push_and_show(workspace, merged, built, lease, run.token)
        if shown is not None:
            return replace(shown, before=before, comparison=comparison)
    raise Transient(f"{project_id}: main moved {MAIN_MOVED_TRIES} times during the deployment")


def unbuilt(failed: BuildFailed) -> Transient:
    """For a change that an earlier attempt pushed after it had built: it is not given up, and stays where it is."""
    return Transient(f"the change is in the repository already, and does not build any more: {failed.reason}")


def _flaws(run: JobRun, comparison: SiteComparison, *, lenient: bool) -> Flawed | None:
    """Why an edit is not deployed. An undo restores what was there, so that it is always taken."""
    if run.job.command is not Command.EDIT:
        return None
    refused = comparison.refused(run.project.allowed_hosts)
    findings = () if lenient else comparison.findings
    return Flawed(findings, refused) if findings or refused else None


def find_or_build(
    run: JobRun, merged: Merged, lease: ProjectLease, stage: Stage, preview: str = ""
) -> tuple[Release | Path | BuildFailed, Path | None]:
    """A release with this content, or a folder with its build; and the release that the site shows until now.

    The release may be one of another stage. `preview` is the name of this content in the conversation's preview.
    """
    releases, project_id = run.deps.releases, lease.project_id
    release = releases.find(project_id, stage, merged.head) or _like_it(run, merged, stage, preview)
    before = releases.current(project_id, stage)
    if release is not None:
        run.deployer.confirm(lease, run.token)
        return release, before
    with run.deployer.staged(lease, run.token, stage) as folder:
        built = build(run, merged.tree, folder, before)
    return (built if isinstance(built, BuildFailed) else folder), before


def _like_it(run: JobRun, merged: Merged, stage: Stage, preview: str) -> Release | None:
    """What the edit site or the preview shows, if the public site gets the same: nothing is built twice."""
    if stage is Stage.EDIT:
        return None
    project_id = run.project.project_id
    for source, name in ((Stage.EDIT, merged.like_main), (Stage.of_thread(run.job.thread_id), preview)):
        shown = run.deps.releases.current(project_id, source) if name else None
        if shown is not None and shown.name == release_name(name):
            return Release(project_id, source, shown.name, shown)
    return None


def build(run: JobRun, tree: SourceTree, into: Path, previous: Path | None) -> Built | BuildFailed:
    """Build one of the two sites and emit its events."""
    began = run.now()
    built = build_silently(run, tree, into, previous)
    if isinstance(built, Built):
        run.emit(EventKind.SITE_BUILT, began, builder=built.builder, files=built.files)
    else:
        run.emit(EventKind.SITE_NOT_BUILT, began, reason=built.reason)
    return built


def build_silently(run: JobRun, tree: SourceTree, into: Path, previous: Path | None) -> Built | BuildFailed:
    """Build with the project's builder, or with the first one that fits the source; keep the log."""
    tree = tree.of(run.project)
    builder = choose_builder(run.deps.builders, run.project.builder, tree)
    if isinstance(builder, BuildFailed):
        return builder
    built = builder.build(tree, into, previous, run.token)
    if built.log:
        run.deps.build_logs.add(run.job.job_id, built.log)
    return built


def choose_builder(builders: Mapping[str, Builder], name: str, tree: SourceTree) -> Builder | BuildFailed:
    """The named builder, or the first one that fits; BuildFailed if there is none."""
    site = tree.site
    if tree.folder and not site.files:
        return BuildFailed(f"There is no folder {tree.folder} in the site's repository.")
    if name:
        known = ", ".join(sorted(builders))
        return builders.get(name) or BuildFailed(f"This site is set to be built by {name!r}; known are: {known}.")
    for builder in builders.values():
        if builder.fits(site):
            return builder
    return BuildFailed("No way to build this site was found: it needs an index.html at its top, in public/ or site/.")


def take_screenshots(run: JobRun, deployment: EditDeployment) -> tuple[str, ...]:
    """Digests of the screenshots, the newer one last; none if they are off or the reply should not wait for them."""
    screenshots, page = run.deps.screenshots, deployment.page
    if screenshots is None or not page or not deployment.flipped:
        return ()
    began = run.now()
    pair = screenshots.take(deployment.before, deployment.release.path, page, run.seconds_since_start())
    images = (pair.after,) if pair.before == pair.after else (pair.before, pair.after)  # the change is further below
    kept = tuple(screenshots.keep(image) for image in images if image)
    run.emit(EventKind.PICTURES_TAKEN, began, page=page, pictures=len(kept))
    return kept if pair.after else ()


def _stands(run: JobRun, workspace: Workspace, change: Change) -> bool:
    """Whether a change that reached main in an earlier attempt is still in effect."""
    for past in run.deps.workspaces.changes(workspace):
        if past.change.commit == change.commit:
            return past.stands
        if past.change.commit == change.undoes:
            return not past.stands
    return True


PROGRESS_CHARACTERS = 300


def edit(run: JobRun, workspace: Workspace) -> tuple[Settlement, str]:
    """Edit the site, and say what the customer wants done after it: `publish`, `undo`, a date or nothing.

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
        result = settle_date(run, run_agent(run, workspace, note))
        if isinstance(result, Answered) and result.then.startswith("later"):
            return report.of_agent(result), result.then  # also if it resumes: nothing is changed before the date
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
    if not run.agent_is_free and not limits.left_usd:
        return NotUnderstood(f"This took {limits.too_costly}, so I stopped. {SMALLER}")
    thread_id = run.job.thread_id
    task = AgentTask(
        instruction=run.request,
        subject=run.instruction.subject if run.instruction.text.strip() else "",
        note=note,
        wishes=run.project.wishes,
        now=began.astimezone(run.project.zone),
        is_due=run.due_at is not None,
        workspace=agent_folder(run.project, workspace),
        attachments=tuple(map(partial(_attached, run.deps.attachment_path), run.instruction.attachments)),
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


def _attached(path_of: Callable[[str], Path], file: Attachment) -> AttachedFile:
    return AttachedFile(file, path_of(file.digest), path_of(file.webp) if file.webp else None)


def agent_folder(project: Project, workspace: Workspace) -> Path:
    """Where the agent works, and the one folder that it can change. Raises Permanent if the repository lacks it."""
    if not project.folder:
        return workspace.path
    folder = workspace.path / project.folder
    if folder.resolve() != workspace.path.resolve() / project.folder or not folder.is_dir():
        raise Permanent(f"{project.project_id}: there is no folder {project.folder} in its repository: put it back")
    return folder


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
