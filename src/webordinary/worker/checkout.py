"""Stage: the workspace stands where the thread stands."""

from __future__ import annotations

from webordinary.site.sources import Workspace
from webordinary.worker.run import JobRun


def check_out(run: JobRun) -> Workspace:
    """Prepare the key's workspace for this job, under its fence."""
    began = run.now()
    run.hold.check()
    workspace = run.kit.workspaces.prepare(run.work())
    run.tell(
        "WorkspacePrepared", began,
        branch=workspace.work.branch, resumed=workspace.resumed, already_made=workspace.made is not None,
    )  # fmt: skip
    return workspace
