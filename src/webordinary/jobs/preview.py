"""The preview of a conversation: live plus its changes, which is what `publish` would show.

Built once for each change. A preview takes no lease of the project: its stage is written only by jobs of the
conversation's key, under the fence of their claim.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import replace

from webordinary.jobs.history import LiveState, WaitingChange
from webordinary.jobs.publish import build_silently
from webordinary.jobs.run import JobRun
from webordinary.jobs.site_files import Stage
from webordinary.jobs.source import Built, Merged, Workspace
from webordinary.model.errors import JobTimedOut, MachineFault, Permanent, Transient
from webordinary.model.jobs import JobOutcome, Settlement

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
    edit_site = run.deps.site_url(project_id, Stage.EDIT)
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
    state = run.deps.live.compare(workspace, public.name if public else "")
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
