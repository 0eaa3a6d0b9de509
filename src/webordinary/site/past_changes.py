"""What is left of a thread's changes, and which of them an `undo` means."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from webordinary.site.messages import Note
from webordinary.site.page_names import is_address, place_of, places_of
from webordinary.site.sources import PastChange

_ROLLBACKS = 100
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


def standing(history: Callable[[str], Iterable[tuple[str, Note]]], head: str, thread_id: str) -> set[str]:
    """The commits of a thread that still count at `head`; `history` tells the notes from a commit back, newest first.

    A rollback brought the content of an earlier commit back: what lies between the two counts for nothing.
    """
    left: set[str] = set()
    undone: set[str] = set()
    for _ in range(_ROLLBACKS):
        back_to = ""
        for commit, note in history(head):
            if back_to := note.rolled_back_to:
                break
            if note.thread_id != thread_id:
                continue
            if note.undoes:
                undone.add(note.undoes)
            elif note.job_id and commit not in undone:
                left.add(commit)
        if not back_to:
            break
        head = back_to
    return left


@dataclass(frozen=True, slots=True)
class Undecided:
    """Which change is meant cannot be told; `choices` are those that could be."""

    choices: tuple[PastChange, ...]


def choose(past: Sequence[PastChange], named: str, answers: str) -> PastChange | Undecided | None:
    """What an `undo` takes back: the change it names, the one whose answer it answers, or the last one; None if none.

    An answer to something that changed nothing means the last one, too.
    """
    left = tuple(one for one in past if one.stands)
    if named:
        found = _named(left, named)
        return found[0] if len(found) == 1 else Undecided(found or left)
    answered = next((one for one in past if one.job_id == answers), None)
    if answered is not None:
        return answered if answered.stands else Undecided(left)
    return left[0] if left else None


def _named(past: Sequence[PastChange], named: str) -> tuple[PastChange, ...]:
    """By commit, by page or file, by title: the first way that finds any."""
    if _COMMIT.fullmatch(named.lower()):
        return tuple(one for one in past if one.change.commit.startswith(named.lower()))
    files = {file for one in past for file in one.change.changed_files}
    if meant := _meant(files, named):
        return tuple(one for one in past if meant.intersection(one.change.changed_files))
    return tuple(one for one in past if named.casefold() in one.title.casefold())


def _meant(files: set[str], named: str) -> set[str]:
    """The files that an address, or a file's name, means; a name may leave folders out where only one file fits."""
    place = place_of(named)
    if not is_address(named) and named in files:
        return {named}
    if exact := {file for file in files if place in places_of(file)}:
        return exact
    if is_address(named) or not place:
        return set()
    ending = {file for file in files if any(known.endswith(f"/{place}") for known in places_of(file))}
    return ending if len(ending) == 1 else set()
