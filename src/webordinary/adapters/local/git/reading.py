"""Questions to a repository: what is staged, what conflicts, what our commits say of themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache

from webordinary.adapters.local.git.command import Git
from webordinary.adapters.local.git.fitness import check_tree
from webordinary.model.text import clean
from webordinary.site.messages import Note, read_note
from webordinary.site.past_changes import standing
from webordinary.site.sources import Change, PastChange, SourceTree

_PAST_CHANGES = 500


def head(git: Git) -> str:
    """The commit that is checked out; its branch is read as a file, for which no process is needed."""
    name = (git.git_dir / "HEAD").read_text(encoding="utf-8").strip()
    if name.startswith("ref: "):
        branch = git.git_dir / name.removeprefix("ref: ")
        if branch.is_file():
            return branch.read_text(encoding="utf-8").strip()
    return git("rev-parse", "HEAD").strip()


def staged_files(git: Git) -> dict[str, str]:
    """What the next commit would change, with each file's new mode."""
    fields = git("diff", "--cached", "--raw", "-z", "--no-renames", "--no-ext-diff", "--no-textconv").split("\0")
    return {name: meta.split(" ")[1] for meta, name in zip(fields[0::2], fields[1::2], strict=False)}


def files_of(git: Git, commit: str) -> tuple[str, ...]:
    """The files that a commit changed."""
    listing = git("diff-tree", "--no-commit-id", "--name-only", "-r", "-z", "--root", "--no-renames", commit)
    return tuple(name for name in listing.split("\0") if name)


def files_added_by(git: Git, commit: str) -> frozenset[str]:
    """The files that were not there before a commit."""
    listing = git("diff-tree", "--no-commit-id", "--name-only", "-r", "-z", "--no-renames", "--diff-filter=A", commit)
    return frozenset(listing.split("\0")) - {""}


def files_removed(git: Git) -> tuple[str, ...]:
    """What the next commit would remove."""
    listing = git("diff", "--cached", "--name-only", "-z", "--no-renames", "--diff-filter=D", "--no-ext-diff")
    return tuple(name for name in listing.split("\0") if name)


def change(git: Git, commit: str, note: Note) -> Change:
    """A commit of ours as the change that it is."""
    return Change(commit, note.summary, for_people(files_of(git, commit)), note.undoes)


def for_people(names: Iterable[str]) -> tuple[str, ...]:
    """Names of files to be told; the file system may know them by other bytes."""
    return tuple(clean(name) for name in names)


def past_changes(git: Git, head: str, thread_id: str) -> tuple[PastChange, ...]:
    """What a thread brought to main, the newest first."""

    @cache
    def history(commit: str) -> list[tuple[str, Note]]:
        if commit != head and git.attempt("cat-file", "-e", f"{commit}^{{commit}}").code != 0:
            return []  # somebody rewrote main since it was rolled back
        return notes(git, commit, f"Thread: {thread_id}", _PAST_CHANGES, or_saying="Rolled-Back-To: ")

    left = standing(history, head, thread_id)
    ours = [(sha, note) for sha, note in history(head) if note.thread_id == thread_id and note.job_id]
    files = _files_of_each(git, [sha for sha, _ in ours])
    return tuple(
        PastChange(Change(sha, note.summary, files.get(sha, ())), note.job_id, note.title, sha in left)
        for sha, note in ours
        if not note.undoes
    )


def _files_of_each(git: Git, commits: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The files that each of these commits changed, asked for at once."""
    asked = "".join(f"{commit}\n" for commit in commits).encode()
    listing = git("diff-tree", "--stdin", "--name-only", "-r", "-z", "--root", "--no-renames", stdin=asked)
    files: dict[str, list[str]] = {}
    wanted, current = set(commits), ""
    for name in listing.split("\0"):
        if name in wanted:
            current = name
        elif name:
            files.setdefault(current, []).append(name)
    return {commit: for_people(names) for commit, names in files.items()}


def conflicted_files(git: Git) -> tuple[str, ...]:
    """The files in which two changes met."""
    listing = git("diff", "--name-only", "--diff-filter=U", "-z", "--no-ext-diff")
    return tuple(sorted({name for name in listing.split("\0") if name}))


def tree(git: Git) -> SourceTree:
    """The tracked files of what is checked out. Raises Permanent if they cannot be built."""
    files, modes = {}, {}
    for entry in git("ls-files", "--stage", "-z").split("\0"):
        meta, _, name = entry.partition("\t")
        if name:
            modes[name], files[name], _ = meta.split(" ")
    assert git.tree is not None
    check_tree(git.tree, modes)
    return SourceTree(git.tree, files)


def notes(
    git: Git, where: str, saying: str, limit: int, since: datetime | None = None, or_saying: str = ""
) -> list[tuple[str, Note]]:
    """Our notes on the commits of a range, newest first; `saying` narrows them by a line of the message."""
    options = [f"--max-count={limit}", "-z", "--format=%H%n%B", "--fixed-strings"]
    options += [f"--grep={words}" for words in (saying, or_saying) if words]
    if since is not None:
        options.append(f"--since={since.isoformat()}")
    found = []
    for entry in git("log", *options, where, "--").split("\0"):
        sha, _, text = entry.partition("\n")
        if sha:
            found.append((sha, read_note(text)))
    return found
