"""The job `publish`, and the public half of `undo`: changes go from main to live, and live to the public site.

Each publication is one commit on live that carries the Job-Id. After a crash the next attempt finds it there and only
completes the release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from webordinary.jobs import report
from webordinary.jobs.deploy import EditDeployment, PublicDeployment
from webordinary.jobs.history import Entangled, LiveState, MayNotPublish, Unchosen, WaitingChange
from webordinary.jobs.page_checks import SiteComparison, compare_releases
from webordinary.jobs.preview import content_name
from webordinary.jobs.publish import deploy_edit, find_or_build, unbuilt
from webordinary.jobs.run import JobRun
from webordinary.jobs.site_files import Release, Stage
from webordinary.jobs.source import BuildFailed, ChangeMessage, MergeConflict, Merged, Workspace
from webordinary.mail.parsing.commands import ALL, BOTH
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import Transient
from webordinary.model.events import EventKind
from webordinary.model.jobs import Settlement
from webordinary.model.mail import Command

LIVE_MOVED_TRIES = 5
_TITLES = 3
_MOST_TRIED = 10
"""Conversations that a question may be shortened by."""


Picks = tuple[WaitingChange, ...] | None
"""The changes to publish; None stands for all of main."""
Publication = PublicDeployment | Entangled | Unchosen | MayNotPublish | BuildFailed


def publish(run: JobRun, workspace: Workspace) -> Settlement:
    """Bring the conversation's changes to the public site; `publish all` brings everything."""
    outcome = _on_live(run, workspace, lambda state: _chosen(run, workspace, state))
    if isinstance(outcome, PublicDeployment):
        run.deps.releases.drop(run.project.project_id, Stage.of_thread(run.job.thread_id))
    return report.of_publication(run, outcome)


def find_published(run: JobRun, workspace: Workspace) -> Settlement | None:
    """Complete a publication that an earlier attempt brought to live; None if it did not get there."""
    state = run.deps.live.compare(workspace, _shown(run))
    return publish(run, workspace) if state.made else None


def deploy_and_report(run: JobRun, workspace: Workspace) -> Settlement:
    """Deploy a committed change; an undone change leaves the public site, too, if it is there."""
    outcome = deploy_edit(run, workspace)
    if not isinstance(outcome, EditDeployment) or not outcome.change.undoes or not outcome.stands:
        return report.of_deployment(run, outcome)
    return report.of_undo(run, outcome, _take_back(run, workspace, outcome.change.commit))


def _take_back(run: JobRun, workspace: Workspace, undo: str) -> Publication | None:
    """Bring this job's undo to live; None if the undone change is not public."""

    def chosen(state: LiveState) -> Picks:
        return tuple(one for one in state.waiting if one.commit == undo)

    state = run.deps.live.compare(workspace, _shown(run))
    if not state.made and not chosen(state):
        return None
    return _on_live(run, workspace, chosen)


def _chosen(run: JobRun, workspace: Workspace, state: LiveState) -> Picks | Unchosen:
    if _names(run, ALL):
        return None
    mine = tuple(one for one in state.waiting if one.thread_id == run.job.thread_id)
    if mine or state.made or not state.waiting or run.deps.workspaces.changes(workspace):
        return mine
    # A new mail that says only `publish` is clear if one conversation of its sender waits, and no other.
    waiting = {(one.thread_id, one.customer) for one in state.waiting}
    own = len(waiting) == 1 and state.waiting[0].customer == run.job.key.user_id
    return state.waiting if own else Unchosen(state.waiting)


def _names(run: JobRun, scope: str) -> bool:
    """Whether this `publish` names a scope; the same word in an `undo` is the title of a change."""
    return run.job.command is Command.PUBLISH and run.instruction.named == scope


def _on_live(run: JobRun, workspace: Workspace, choose: Callable[[LiveState], Picks | Unchosen]) -> Publication:
    """Choose, merge, build, push and show under the project's lease; again from the choice when live has moved.

    The sender's role is asked here: it may have changed while the job waited. What is on live already is completed.
    """
    began, project_id = run.now(), run.project.project_id
    for _ in range(LIVE_MOVED_TRIES):
        with run.deployer.leased(project_id, run.token) as lease:
            state = run.deps.live.compare(workspace, _shown(run))
            if not state.made and not run.sender_may_publish():
                return MayNotPublish()
            picks = choose(state)
            if isinstance(picks, Unchosen):
                return picks
            merged = _merge(run, workspace, state, picks)
            if isinstance(merged, Entangled):
                return merged
            preview = content_name(state, merged[1] or ()) if merged[1] and run.deps.has_previews else ""
            shown = _push_and_show(run, workspace, merged[0], lease, preview)
        if isinstance(shown, BuildFailed) and state.made:
            raise unbuilt(shown)
        if isinstance(shown, BuildFailed):
            return shown
        if shown is not None:
            url = run.deps.site_url(project_id, Stage.PUBLIC)
            run.emit(EventKind.SITE_PUBLISHED, began, stage=Stage.PUBLIC.value, release=shown[0].name, url=url)
            release, flipped, comparison = shown
            return replace(_published(release, flipped, state, *merged), comparison=comparison)
    raise Transient(f"{project_id}: live moved {LIVE_MOVED_TRIES} times during the publication")


def _published(release: Release, flipped: bool, state: LiveState, merged: Merged, picks: Picks) -> PublicDeployment:
    """What the publication brought, and what stays back."""
    if state.made:
        return PublicDeployment(release, flipped, state.brought, state.waiting, state.unowned)
    if picks is None or (picks and merged.like_main):
        return PublicDeployment(release, flipped, state.waiting, ())
    left = tuple(one for one in state.waiting if one not in picks)
    return PublicDeployment(release, flipped, picks, left, state.unowned)


def _merge(run: JobRun, workspace: Workspace, state: LiveState, picks: Picks) -> tuple[Merged, Picks] | Entangled:
    """Put the picks on live, and return them; after a conflict look for the conversations that they hang on."""
    chosen = picks
    conflict: tuple[str, ...] = ()
    while True:
        merged = run.deps.live.bring(workspace, state, chosen, _message(run, state, chosen))
        if isinstance(merged, Merged):
            break
        conflict = conflict or merged.files
        more = _with_those_in(merged, state, chosen or ())
        if len(more) == len(chosen or ()):
            return Entangled((), conflict)
        chosen = more
    if chosen is None or chosen == picks:
        return merged, chosen
    chosen = _least(run, workspace, state, picks or (), chosen)
    if _names(run, BOTH):
        merged = run.deps.live.bring(workspace, state, chosen, _message(run, state, chosen))
        assert isinstance(merged, Merged), "these changes were applied a moment ago"
        return merged, chosen
    return Entangled(tuple(one for one in chosen if one not in (picks or ())), conflict)


def _least(
    run: JobRun, workspace: Workspace, state: LiveState, picks: Sequence[WaitingChange], chosen: Sequence[WaitingChange]
) -> tuple[WaitingChange, ...]:
    """The chosen changes without the conversations that only changed other lines of the same files."""
    mine = {one.thread_id for one in picks}
    for thread_id in list(dict.fromkeys(one.thread_id for one in chosen if one.thread_id not in mine))[:_MOST_TRIED]:
        fewer = tuple(one for one in chosen if one.thread_id != thread_id)
        if isinstance(run.deps.live.bring(workspace, state, fewer, _message(run, state, fewer)), Merged):
            chosen = fewer
    return tuple(chosen)


def _with_those_in(
    conflict: MergeConflict, state: LiveState, chosen: Sequence[WaitingChange]
) -> tuple[WaitingChange, ...]:
    """The chosen changes and all of each conversation that changed one of these files."""
    files = set(conflict.files)
    threads = {one.thread_id for one in state.waiting if one in chosen or files.intersection(one.files)}
    return tuple(one for one in state.waiting if one.thread_id in threads)


def _push_and_show(
    run: JobRun, workspace: Workspace, merged: Merged, lease: ProjectLease, preview: str
) -> tuple[Release, bool, SiteComparison] | BuildFailed | None:
    """Push live, then show its release; None if live had moved. No release exists for a commit that is not on live."""
    built, before = find_or_build(run, merged, lease, Stage.PUBLIC, preview)
    if isinstance(built, BuildFailed):
        return built
    comparison = compare_releases(before, built if isinstance(built, Path) else built.path)
    if not run.deps.live.push_live(workspace, merged, lease):
        return None
    return *run.deployer.show(Stage.PUBLIC, merged.head, built, lease, run.token), comparison


def _message(run: JobRun, state: LiveState, picks: Picks) -> ChangeMessage:
    brought = state.waiting if picks is None else picks
    titles = [one.words for one in brought[:_TITLES]]
    words = "; ".join(titles) + (f"; and {len(brought) - _TITLES} more" if len(brought) > _TITLES else "")
    message = replace(
        run.message("Brought to the public site."), instruction=f"Publish: {words or 'the site as it is'}"
    )
    return replace(
        message,
        publishes=tuple(one.commit for one in brought if not one.undoes),
        takes_back=tuple(one.undoes for one in brought if one.undoes),
    )


def _shown(run: JobRun) -> str:
    """The name of the release that the public site shows; empty before the first one."""
    shown = run.deployer.shown(run.project.project_id, Stage.PUBLIC)
    return shown.name if shown else ""
