"""The job `undo`: reverts an earlier change of the thread by a new commit on main, and on live if it is there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from webordinary.jobs import report
from webordinary.jobs.edit import commit_change
from webordinary.jobs.live import deploy_and_report
from webordinary.jobs.run import JobRun
from webordinary.jobs.site_files import is_address, place_of, places_of
from webordinary.jobs.source import InvalidChange, MergeConflict, PastChange, Workspace
from webordinary.model.jobs import Settlement

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
        found = _named(left, named)
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


def undo(run: JobRun, workspace: Workspace) -> Settlement:
    """Revert the change that the mail names or answers, else the last one; ask back if that is ambiguous."""
    if workspace.made is None:
        named, past = run.instruction.named, run.deps.workspaces.changes(workspace)
        chosen = choose(past, named, run.instruction.answers)
        if isinstance(chosen, AmbiguousChange):
            return report.of_ambiguous_undo(named, chosen.choices)
        if chosen is None:
            return report.of_nothing_to_undo()
        conflict = run.deps.workspaces.revert(workspace, chosen.change)
        if isinstance(conflict, MergeConflict):
            return report.of_undo_conflict(conflict.files)
        change = commit_change(run, workspace, f"Undone: {chosen.change.summary}", undoes=chosen.change.commit)
        if isinstance(change, InvalidChange):
            return report.of_deployment(run, change)
        if change is None:
            return report.of_nothing_to_undo()
        workspace = replace(workspace, made=change)
    return deploy_and_report(run, workspace)
