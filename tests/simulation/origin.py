"""A git origin in memory: commits, refs and fence marks; a push moves them together or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from webordinary.jobs.source import FenceMark, Note

MAIN = "main"
LIVE = "live"
Files = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, with its whole tree and what its message says."""

    oid: str
    parent: str
    files: Files
    note: Note


@dataclass(frozen=True, slots=True)
class Seen:
    """An origin as it was read."""

    refs: Mapping[str, str]
    marks: Mapping[str, FenceMark]


@dataclass(frozen=True, slots=True)
class Pushed:
    """A push that was accepted: which refs it moved and which fences it carried."""

    moves: Mapping[str, str]
    fences: Mapping[str, int]


@dataclass(slots=True)
class Origin:
    """One project's repository, shared by all workers."""

    name: str
    commits: dict[str, Commit] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    marks: dict[str, FenceMark] = field(default_factory=dict)
    pushes: list[Pushed] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        root = self.commit("", {"index.html": "hello"}, Note())
        self.refs[MAIN] = root.oid

    def commit(self, parent: str, files: Files, note: Note) -> Commit:
        """Make a commit object; no ref moves. Objects are made locally, so this is no effect."""
        commit = Commit(f"{self.name}-{next(self._numbers):04d}", parent, dict(files), note)
        self.commits[commit.oid] = commit
        return commit

    def read(self) -> Seen:
        """What a fetch brings."""
        return Seen(dict(self.refs), dict(self.marks))

    def push(self, moves: Mapping[str, str], marks: Mapping[str, FenceMark], seen: Seen) -> bool:
        """Move refs and marks if every one of them is where `seen` saw it."""
        refs_stand = all(self.refs.get(ref) == seen.refs.get(ref) for ref in moves)
        marks_stand = all(self.marks.get(ref) == seen.marks.get(ref) for ref in marks)
        if not (refs_stand and marks_stand):
            return False
        self.accept(moves, marks)
        return True

    def accept(self, moves: Mapping[str, str], marks: Mapping[str, FenceMark]) -> None:
        """The push is in."""
        self.refs |= moves
        self.marks |= marks
        self.pushes.append(Pushed(moves, {ref: mark.fence for ref, mark in marks.items()}))

    def history(self, oid: str) -> Iterator[Commit]:
        """A commit and all before it, newest first."""
        while oid:
            commit = self.commits[oid]
            yield commit
            oid = commit.parent
