"""Stage: the change reaches main and the edit site, or the edit site's state reaches the public."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

from webordinary.model.errors import Permanent, Transient
from webordinary.model.jobs import Settlement
from webordinary.site.changed_page import page_to_show
from webordinary.site.manifests import manifest_of
from webordinary.site.publish import Published
from webordinary.site.releases import Release, Stage
from webordinary.site.sources import BuildFailed, Change, Conflicted, Workspace
from webordinary.worker import report
from webordinary.worker.build import build
from webordinary.worker.picture import take_pictures
from webordinary.worker.run import JobRun

_log = logging.getLogger(__name__)


def publish(run: JobRun, workspace: Workspace) -> Published | Conflicted | BuildFailed:
    """Bring the recorded change to main and show it; otherwise the thread goes back to the site as it is."""
    began = run.now()
    outcome = run.publisher().publish(workspace, partial(build, run), run.hold)
    if isinstance(outcome, Published):
        page = page_to_show(manifest_of(outcome.before), manifest_of(outcome.release.path)) or ""
        run.tell(
            "SitePublished", began,
            stage=Stage.EDIT.value, commit=outcome.change.commit, release=outcome.release.name,
            flipped=outcome.flipped, url=run.edit_url(page),
        )  # fmt: skip
        outcome = replace(outcome, page=page, stands=not workspace.on_main or _stands(run, workspace, outcome.change))
        outcome = replace(outcome, pictures=take_pictures(run, outcome))
    else:
        run.kit.workspaces.abandon(workspace)
    return outcome


def promote(run: JobRun) -> Release | None:
    """Show on the public site what the edit site shows."""
    began = run.now()
    release = run.publisher().promote(run.project.project_id, run.hold)
    if release is not None:
        url = run.kit.site_url(run.project.project_id, Stage.PUBLIC)
        run.tell("SitePublished", began, stage=Stage.PUBLIC.value, release=release.name, url=url)
    return release


def publish_and_report(run: JobRun, workspace: Workspace) -> Settlement:
    """Show what was recorded, and say whether the public site still shows what was undone."""
    outcome = publish(run, workspace)
    return report.of_publication(run, outcome, still_public=_still_public(run, workspace, outcome))


def _stands(run: JobRun, workspace: Workspace, change: Change) -> bool:
    """Whether a change that reached main earlier still counts there; nobody may have seen it yet."""
    for past in run.kit.workspaces.changes(workspace):
        if past.change.commit == change.commit:
            return past.stands
        if past.change.commit == change.undoes:
            return not past.stands
    return True


def _still_public(run: JobRun, workspace: Workspace, outcome: Published | Conflicted | BuildFailed) -> bool:
    """Whether visitors of the public site see what was undone just now; a look that never fails a job."""
    if not isinstance(outcome, Published) or not outcome.change.undoes:
        return False
    try:
        public = run.publisher().shown(run.project.project_id, Stage.PUBLIC)
        return public is not None and run.kit.workspaces.shows(workspace, public.name, outcome.change.undoes)
    except (Transient, Permanent) as problem:
        _log.warning("%s: what its public site shows is not known: %s", run.project.project_id, problem)
        return False
