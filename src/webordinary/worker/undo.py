"""Stage: an earlier change of the conversation is taken back, by a new commit on top of all others."""

from __future__ import annotations

from dataclasses import replace

from webordinary.model.jobs import Settlement
from webordinary.site.past_changes import Undecided, choose
from webordinary.site.sources import Conflicted, Unfit, Workspace
from webordinary.worker import report
from webordinary.worker.instruct import record
from webordinary.worker.publish import publish_and_report
from webordinary.worker.run import JobRun


def undo(run: JobRun, workspace: Workspace) -> Settlement:
    """Take back the change that the mail names, or answers, or the last one; asks back where that is not clear."""
    if workspace.made is None:
        wish, past = run.instruction, run.kit.workspaces.changes(workspace)
        chosen = choose(past, wish.named, wish.answers)
        if isinstance(chosen, Undecided):
            return report.of_undecided_undo(wish.named, chosen.choices)
        if chosen is None:
            return report.of_nothing_to_undo()
        conflict = run.kit.workspaces.revert(workspace, chosen.change)
        if isinstance(conflict, Conflicted):
            return report.of_undo_in_the_way(conflict.files)
        change = record(run, workspace, f"Undone: {chosen.change.summary}", undoes=chosen.change.commit)
        if isinstance(change, Unfit):
            return report.of_publication(run, change)
        if change is None:
            return report.of_nothing_to_undo()
        workspace = replace(workspace, made=change)
    return publish_and_report(run, workspace)
