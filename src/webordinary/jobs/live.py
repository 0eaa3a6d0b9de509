"""The jobs `publish` and `undo`, and the preview: what `publish` would show.

Each publication is one commit on live that carries the Job-Id. After a crash the next attempt finds it there and only
completes the release. `undo` reverts an earlier change of the thread by a new commit on main, and on live if it is
there. A preview is built once for each change and takes no lease of the project: its stage is written only by jobs of
the conversation's key, under the fence of their claim.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from webordinary.jobs import report
from webordinary.jobs.deploy import EditDeployment, PublicDeployment
from webordinary.jobs.edit import build_silently, commit_change, deploy_edit, find_or_build, unbuilt
from webordinary.jobs.history import Entangled, LiveState, MayNotPublish, PutBack, Unchosen, WaitingChange
from webordinary.jobs.page_checks import SiteComparison, compare_releases
from webordinary.jobs.run import JobRun
from webordinary.jobs.site_files import Release, Stage, is_address, place_of, places_of
from webordinary.jobs.source import (
    BuildFailed,
    Built,
    ChangeMessage,
    InvalidChange,
    MergeConflict,
    Merged,
    PastChange,
    Workspace,
)
from webordinary.mail.parsing.commands import ALL, BOTH
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import JobTimedOut, MachineFault, Permanent, Transient
from webordinary.model.events import EventKind
from webordinary.model.jobs import JobOutcome, Settlement
from webordinary.model.mail import Command
from webordinary.model.projects import Project

_log = logging.getLogger(__name__)
MOST_PREVIEWS = 20
"""Of one site; the one that changed longest ago is removed first."""


def with_preview(run: JobRun, workspace: Workspace, done: Settlement) -> Settlement:
    """Bring the preview up to date after a job that changed something; the result names it."""
    if not run.deps.has_previews or done.outcome is not JobOutcome.SUCCEEDED or not done.result.commit:
        return done
    stage, project_id = Stage.of_thread(run.job.thread_id), run.project.project_id
    if not _is_shown(run, workspace, stage):
        run.deps.releases.drop(project_id, stage)
        return done
    edit_site = run.edit_site
    page = (done.result.url or "").removeprefix(edit_site) if (done.result.url or "").startswith(edit_site) else ""
    return replace(done, result=replace(done.result, preview=run.deps.site_url(project_id, stage) + page))


def content_name(state: LiveState, picks: Sequence[WaitingChange]) -> str:
    """Names what these changes on top of live are: the same for the preview and for its publication."""
    return hashlib.sha256("\n".join((state.head, *(one.commit for one in picks))).encode()).hexdigest()


def _is_shown(run: JobRun, workspace: Workspace, stage: Stage) -> bool:
    """False where there is nothing to show, or it cannot be built: the change itself is on the edit site already."""
    try:
        return _show(run, workspace, stage)
    except (Transient, Permanent, MachineFault, JobTimedOut) as problem:
        _log.warning("%s: its preview is not shown: %s", run.job.job_id, problem)
        return False


def _show(run: JobRun, workspace: Workspace, stage: Stage) -> bool:
    releases, project_id, fence = run.deps.releases, run.project.project_id, run.token.fence
    public = run.deployer.shown(project_id, Stage.PUBLIC)
    # What this job published is below: the preview is made on top of it.
    state = replace(run.deps.live.compare(workspace, public.name if public else ""), made="")
    mine = tuple(one for one in state.waiting if one.thread_id == run.job.thread_id)
    if not mine or (len(mine) == len(state.waiting) and not state.unowned):
        return False  # nothing waits, or the edit site shows just this
    name = content_name(state, mine)
    release = releases.find(project_id, stage, name)
    if release is None:
        merged = run.deps.live.bring(workspace, state, mine, run.message("Shown in a preview."))
        if not isinstance(merged, Merged):
            return False  # `publish` would ask
        folder = releases.stage(project_id, stage, fence)
        before = releases.current(project_id, stage) or releases.current(project_id, Stage.EDIT)
        built = build_silently(run, merged.tree, folder, before)
        if not isinstance(built, Built):
            _log.warning("%s: its preview could not be built: %s", run.job.job_id, built.reason)
            return False
        release = releases.finish(project_id, stage, folder, name)
    releases.activate(release, fence)
    for old in releases.previews(project_id)[MOST_PREVIEWS:]:
        releases.drop(project_id, old)
    return True


LIVE_MOVED_TRIES = 5
_TITLES = 3
_MOST_TRIED = 10
"""Conversations that a question may be shortened by."""


Picks = tuple[WaitingChange, ...] | None
"""The changes to publish; None stands for all of main."""
Publication = PublicDeployment | Entangled | Unchosen | PutBack | MayNotPublish | BuildFailed


def publish(run: JobRun, workspace: Workspace) -> Settlement:
    """Bring the conversation's changes to the public site; `publish all` brings everything."""
    outcome = _on_live(run, workspace, lambda state: _chosen(run, workspace, state))
    if isinstance(outcome, PublicDeployment):
        stage = Stage.of_thread(run.job.thread_id)
        left = run.deps.has_previews and any(one.thread_id == run.job.thread_id for one in outcome.waiting)
        if not left or not _is_shown(run, workspace, stage):
            run.deps.releases.drop(run.project.project_id, stage)
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


def _chosen(run: JobRun, workspace: Workspace, state: LiveState) -> Picks | Unchosen | PutBack:
    if _names(run, ALL):
        back = tuple(one for one in state.waiting if one.is_back)
        return PutBack(back) if back and not state.made and not run.instruction.confirms else None
    mine = tuple(one for one in state.waiting if one.thread_id == run.job.thread_id)
    if mine or state.made or not state.waiting or run.deps.workspaces.changes(workspace):
        return _seen(run, workspace, mine)
    # A new mail that says only `publish` is clear if one conversation of its sender waits, and no other. In a
    # conversation the word means that conversation, and beside a wish what the wish changed: both have changed nothing.
    is_new = run.job.command is Command.PUBLISH and not run.instruction.replies
    waiting = {(one.thread_id, one.customer) for one in state.waiting}
    own = is_new and len(waiting) == 1 and state.waiting[0].customer == run.job.key.user_id
    return state.waiting if own else Unchosen(state.waiting)


def _seen(run: JobRun, workspace: Workspace, mine: tuple[WaitingChange, ...]) -> tuple[WaitingChange, ...]:
    """The changes up to the one that this `publish` answers, and what its sender asked for after it.

    What another person changed since then, the sender did not say yes to. A button may be pressed again after its
    change went public.
    """
    answers, sender = run.instruction.answers, run.instruction.sender
    jobs = [one.job_id for one in mine]
    if answers in jobs:
        newer = set(jobs[jobs.index(answers) + 1 :])
    else:
        past = [one.job_id for one in run.deps.workspaces.changes(workspace)] if answers and mine else []
        newer = set(past[: past.index(answers)]) if answers in past else set()
    others = (place for place, one in enumerate(mine) if one.job_id in newer and one.sender != sender)
    return mine[: next(others, len(mine))]


def _names(run: JobRun, scope: str) -> bool:
    """Whether this `publish` names a scope; the same word in an `undo` is the title of a change."""
    return run.job.command is Command.PUBLISH and run.instruction.named == scope


def _on_live(
    run: JobRun, workspace: Workspace, choose: Callable[[LiveState], Picks | Unchosen | PutBack]
) -> Publication:
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
            if isinstance(picks, Unchosen | PutBack):
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
    titles = [" ".join(one.words.split()) for one in brought[:_TITLES]]
    words = "; ".join(titles) + (f"; and {len(brought) - _TITLES} more" if len(brought) > _TITLES else "")
    title = f"Publish: {words or 'the site as it is'}"
    message = replace(run.message("Brought to the public site."), instruction=title, wish="")
    return replace(
        message,
        publishes=tuple(one.commit for one in brought if not one.undoes),
        takes_back=tuple(one.undoes for one in brought if one.undoes),
    )


def _shown(run: JobRun) -> str:
    """The name of the release that the public site shows; empty before the first one."""
    shown = run.deployer.shown(run.project.project_id, Stage.PUBLIC)
    return shown.name if shown else ""


_COMMIT = re.compile(r"[0-9a-f]{7,40}")


@dataclass(frozen=True, slots=True)
class AmbiguousChange:
    """Several changes match, or none; `choices` are the possible ones."""

    choices: tuple[PastChange, ...]


def choose(past: Sequence[PastChange], named: str, answers: str) -> PastChange | AmbiguousChange | None:
    """The change that an `undo` reverts: the named one, the one whose reply it answers, or the last; None if none.

    An answer to a mail that changed nothing means the last change, too.
    """
    left = tuple(one for one in past if one.stands)
    if named:
        found = left if named == ALL else _named(left, named)
        return found[0] if len(found) == 1 else AmbiguousChange(found or left)
    answered = next((one for one in past if one.job_id == answers), None)
    if answered is not None:
        return answered if answered.stands else AmbiguousChange(left)
    return left[0] if left else None


def _named(past: Sequence[PastChange], named: str) -> tuple[PastChange, ...]:
    """Match by commit, else by page or file, else by title."""
    if _COMMIT.fullmatch(named.lower()):
        return tuple(one for one in past if one.change.commit.startswith(named.lower()))
    files = {file for one in past for file in one.change.changed_files}
    if meant := _meant(files, named):
        return tuple(one for one in past if meant.intersection(one.change.changed_files))
    return tuple(one for one in past if named.casefold() in one.title.casefold())


def _meant(files: set[str], named: str) -> set[str]:
    """The files that an address or a file name means; a name may omit folders if it stays unique."""
    place = place_of(named)
    if not is_address(named) and named in files:
        return {named}
    if exact := {file for file in files if place in places_of(file)}:
        return exact
    if is_address(named) or not place:
        return set()
    ending = {file for file in files if any(known.endswith(f"/{place}") for known in places_of(file))}
    return ending if len(ending) == 1 else set()


def _named_in_site(project: Project, past: PastChange) -> PastChange:
    return replace(past, change=replace(past.change, changed_files=project.names_of(past.change.changed_files)))


def undo(run: JobRun, workspace: Workspace) -> Settlement:
    """Revert the change that the mail names or answers, else the last one; ask back if that is ambiguous."""
    if workspace.made is None:
        named = run.instruction.named
        past = tuple(_named_in_site(run.project, one) for one in run.deps.workspaces.changes(workspace))
        chosen = choose(past, named, run.instruction.answers)
        if run.takes_back and not isinstance(chosen, PastChange):
            return report.of_taken_back_already()
        if isinstance(chosen, AmbiguousChange):
            return report.of_ambiguous_undo(named, chosen.choices)
        if chosen is None:
            return report.of_nothing_to_undo()
        conflict = run.deps.workspaces.revert(workspace, chosen.change)
        if isinstance(conflict, MergeConflict):
            return report.of_undo_conflict(conflict.files)
        change = commit_change(run, workspace, report.words_of_undo(chosen.change.summary), undoes=chosen.change.commit)
        if isinstance(change, InvalidChange):
            return report.of_deployment(run, change)
        if change is None:
            return report.of_nothing_to_undo()
        workspace = replace(workspace, made=change)
    return deploy_and_report(run, workspace)
