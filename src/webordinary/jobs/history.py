"""The two lines of a site in git: which changes are in effect on main, which are on live, and which wait.

Main has one commit for each change. Live starts at a commit of main. A publication is one commit on live, which names
the commits of main that it brings (`Publishes`) or takes back (`Takes-Back`), or the one whose whole content it has
(`Shows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from webordinary.jobs.source import Note

_JUMPS = 100
_LINE = 300
"""A mail with several wishes is named with all of them: what is published must be seen."""
Notes = Sequence[tuple[str, Note]]
History = Callable[[str], Iterable[tuple[str, Note]]]


class InEffect(NamedTuple):
    """The changes that a commit of main contains, and those that were undone on the way to it."""

    changes: frozenset[str]
    undone: frozenset[str]


def in_effect(history: History, head: str) -> InEffect:
    """The changes in effect at `head`; `history` yields notes from a commit back, newest first.

    A rollback restored the content of an earlier commit: the commits between the two are not in effect.
    """
    left: set[str] = set()
    undone: set[str] = set()
    for _ in range(_JUMPS):
        back_to = ""
        for commit, note in history(head):
            if back_to := note.content_of:
                break
            if note.undoes:
                undone.add(note.undoes)
            elif note.job_id and commit not in undone:
                left.add(commit)
        if not back_to:
            break
        head = back_to
    return InEffect(frozenset(left), frozenset(undone))


def standing(history: History, head: str, thread_id: str) -> frozenset[str]:
    """The commits of a thread that are in effect at `head`."""

    def of_thread(commit: str) -> Iterable[tuple[str, Note]]:
        return ((sha, note) for sha, note in history(commit) if note.content_of or note.thread_id == thread_id)

    return in_effect(of_thread, head).changes


@dataclass(frozen=True, slots=True)
class WaitingChange:
    """A change on main that is not on live. `undoes` is the public change that it takes back."""

    commit: str
    thread_id: str
    customer: str
    """The user id of the person who asked for it."""
    words: str
    """What it does, in one line."""
    files: tuple[str, ...] = ()
    undoes: str = ""
    job_id: str = ""
    sender: str = ""
    is_back: bool = False
    """It was undone, and an operator's rollback has brought it back."""


@dataclass(frozen=True, slots=True)
class LiveState:
    """Live beside main. `head` is where live is, or where it will begin."""

    main: str
    head: str
    begun: bool
    """The public site shows something, or live exists."""
    waiting: tuple[WaitingChange, ...] = ()
    """Oldest first."""
    unowned: int = 0
    """Commits on main that no conversation made, since the last publication of everything."""
    made: str = ""
    """The commit on live of an earlier attempt of this job."""
    brought: tuple[WaitingChange, ...] = ()
    """What `made` brought to live."""


class LineHistory(Protocol):
    """Reads the commits of both lines."""

    def between(self, excluded: str, commit: str) -> Notes:
        """Notes of the history of `commit` without that of `excluded`, newest first, bounded."""

    def on_main(self, excluded: str, commit: str) -> Notes:
        """The same of main, without the commits that change nothing of the site: those of its neighbours."""

    def fork_point(self, main: str, commit: str) -> str:
        """The newest commit of main that is in the history of `commit`."""

    def files_of(self, commits: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """The files that each commit changed."""


def compare(lines: LineHistory, main: str, head: str, job_id: str, *, begun: bool) -> LiveState:
    """Compare the lines for a job; `head` is where live is, or where it will begin."""
    waiting, unowned = _waiting(lines, main, head)
    own = [*lines.between(main, head), (lines.fork_point(main, head), Note())]
    made = next((place for place, (_, note) in enumerate(own) if note.job_id == job_id), None)
    if made is None:
        return LiveState(main, head, begun, waiting, unowned)
    commit, before = own[made][0], own[made + 1][0]
    left = {one.commit for one in _waiting(lines, main, commit)[0]}
    brought = tuple(one for one in _waiting(lines, main, before)[0] if one.commit not in left)
    return LiveState(main, head, begun, waiting, unowned, commit, brought)


class _Published(NamedTuple):
    """What live's own commits say, from the newest back to `content`, whose content live has whole."""

    content: str
    published: set[str]
    taken_back: set[str]


def _read_live(own: History, head: str) -> _Published:
    published: set[str] = set()
    taken_back: set[str] = set()
    for _ in range(_JUMPS):
        content = ""
        for _sha, note in own(head):
            if content := note.content_of:
                break
            published |= set(note.publishes) - taken_back
            taken_back |= set(note.takes_back)
        if not content:
            break
        head = content
    return _Published(head, published, taken_back)


def _waiting(lines: LineHistory, main: str, head: str) -> tuple[tuple[WaitingChange, ...], int]:
    live = _read_live(lambda commit: lines.between(main, commit), head)
    base = lines.fork_point(main, live.content)
    new = lines.on_main(base, main)
    now = in_effect(lambda commit: lines.on_main(base, commit), main)
    shas = {sha for sha, _ in new}

    def is_public(commit: str) -> bool:
        return commit in live.published or (commit not in shas and commit not in live.taken_back)

    def waits(commit: str, note: Note) -> bool:
        if note.undoes:
            return note.undoes in now.undone and is_public(note.undoes)
        return commit in now.changes and commit not in live.published

    found = [(sha, note) for sha, note in reversed(new) if note.job_id and waits(sha, note)]
    files, undone = lines.files_of([sha for sha, _ in found]), {note.undoes for _, note in new}
    changes = tuple(
        WaitingChange(
            sha, note.thread_id, note.customer, words_of(note), files.get(sha, ()), note.undoes, note.job_id,
            note.sender, is_back=sha in undone,
        )
        for sha, note in found
    )  # fmt: skip
    return changes, sum(not note.job_id and not note.content_of for _, note in new)


def put_back(lines: LineHistory, main: str, release: str) -> tuple[Notes, Notes]:
    """What a rollback of main to a release takes away, and the undos that it takes back; oldest first."""
    between = lines.on_main(release, main)
    now, shas = in_effect(lambda commit: lines.on_main(release, commit), main), {sha for sha, _ in between}
    oldest = list(reversed(between))
    gone = [(sha, note) for sha, note in oldest if sha in now.changes]
    return gone, [(sha, note) for sha, note in oldest if note.undoes in now.undone - shas]


def no_longer_public(lines: LineHistory, main: str, live: str, release: str) -> Notes:
    """The changes of main that a rollback of live to a release takes from the public site; oldest first.

    Also those that main does not hold in effect: the edit site may have been put back before.
    """
    gone: list[str] = []
    for _, note in lines.between(release, live):
        if note.rolled_back_to:
            break  # before it the public site was put back once already
        gone += (commit for commit in reversed(note.publishes) if commit not in gone)
    notes = dict(lines.between(lines.fork_point(main, release), main))
    return [(commit, notes[commit]) for commit in reversed(gone) if commit in notes]


def words_of(note: Note) -> str:
    """What a change does, each wish of its mail on a line of its own: so a translation knows them apart."""
    words = "\n".join(line for part in note.summary.splitlines() if (line := " ".join(part.split()))) or note.title
    return words if len(words) <= _LINE else f"{words[: _LINE - 1].rstrip()}…"


@dataclass(frozen=True, slots=True)
class Entangled:
    """The conversation's changes touch the same lines as changes of others; nothing was published.

    `others` is empty where only the publication of everything would do.
    """

    others: tuple[WaitingChange, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MayNotPublish:
    """The sender's role does not allow it, at the moment in which it would become public; nothing was published."""


@dataclass(frozen=True, slots=True)
class Unchosen:
    """The conversation has no change of its own, and others wait; nothing was published."""

    waiting: tuple[WaitingChange, ...]


@dataclass(frozen=True, slots=True)
class PutBack:
    """Changes that were undone are on the edit site again, by a rollback; nothing was published."""

    changes: tuple[WaitingChange, ...]
