"""Stages after the commit: build, deploy to the edit site, screenshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from webordinary.jobs.deploy import EditDeployment
from webordinary.jobs.page_checks import Flawed, SiteComparison, compare_releases
from webordinary.jobs.ports import Builder
from webordinary.jobs.run import JobRun
from webordinary.jobs.site_files import Release, Stage, manifest_of, page_to_show, release_name
from webordinary.jobs.source import BuildFailed, Built, Change, MergeConflict, Merged, SourceTree, Workspace
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import Transient
from webordinary.model.events import EventKind
from webordinary.model.mail import Command

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
    """Build one of the two sites, and tell of it in the job's events."""
    began = run.now()
    built = build_silently(run, tree, into, previous)
    if isinstance(built, Built):
        run.emit(EventKind.SITE_BUILT, began, builder=built.builder, files=built.files)
    else:
        run.emit(EventKind.SITE_NOT_BUILT, began, reason=built.reason)
    return built


def build_silently(run: JobRun, tree: SourceTree, into: Path, previous: Path | None) -> Built | BuildFailed:
    """Build with the project's builder, or with the first one that fits the source; keep the log."""
    builder = choose_builder(run.deps.builders, run.project.builder, tree)
    if isinstance(builder, BuildFailed):
        return builder
    built = builder.build(replace(tree, project_id=run.project.project_id), into, previous, run.token)
    if built.log:
        run.deps.build_logs.add(run.job.job_id, built.log)
    return built


def choose_builder(builders: Mapping[str, Builder], name: str, tree: SourceTree) -> Builder | BuildFailed:
    """The named builder, or the first one that fits; BuildFailed if there is none."""
    if name:
        known = ", ".join(sorted(builders))
        return builders.get(name) or BuildFailed(f"This site is set to be built by {name!r}; known are: {known}.")
    for builder in builders.values():
        if builder.fits(tree):
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
