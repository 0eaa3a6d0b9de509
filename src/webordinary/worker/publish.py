"""Stage: the change reaches main and the edit site, or the edit site's state reaches the public."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from webordinary.site.publish import Published
from webordinary.site.releases import Release, Stage
from webordinary.site.sources import BuildFailed, Conflicted, Workspace
from webordinary.worker.build import build
from webordinary.worker.picture import take_pictures
from webordinary.worker.run import JobRun


def publish(run: JobRun, workspace: Workspace) -> Published | Conflicted | BuildFailed:
    """Bring the recorded change to main and show it; otherwise the thread goes back to the site as it is."""
    began = run.now()
    before = run.kit.releases.current(run.project.project_id, Stage.EDIT) if run.kit.studio else None
    outcome = run.publisher().publish(workspace, partial(build, run), run.hold)
    if isinstance(outcome, Published):
        run.tell(
            "SitePublished", began,
            stage=Stage.EDIT.value, commit=outcome.change.commit, release=outcome.release.name,
            flipped=outcome.flipped, url=run.edit_url,
        )  # fmt: skip
        outcome = replace(outcome, pictures=take_pictures(run, outcome, before))
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
