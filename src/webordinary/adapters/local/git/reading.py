"""Questions to a repository: what is staged, what conflicts, what our commits say of themselves."""

from __future__ import annotations

from datetime import datetime

from webordinary.adapters.local.git.command import Git
from webordinary.adapters.local.git.fitness import check_tree
from webordinary.site.messages import Note, read_note
from webordinary.site.sources import Change, SourceTree


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


def change(git: Git, commit: str, note: Note) -> Change:
    """A commit of ours as the change that it is."""
    return Change(commit, note.summary, files_of(git, commit), note.undoes)


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


def notes(git: Git, where: str, saying: str, limit: int, since: datetime | None = None) -> list[tuple[str, Note]]:
    """Our notes on the commits of a range, newest first; `saying` narrows them by a line of the message."""
    options = [f"--max-count={limit}", "-z", "--format=%H%n%B"]
    if saying:
        options += ["--fixed-strings", f"--grep={saying}"]
    if since is not None:
        options.append(f"--since={since.isoformat()}")
    found = []
    for entry in git("log", *options, where, "--").split("\0"):
        sha, _, text = entry.partition("\n")
        if sha:
            found.append((sha, read_note(text)))
    return found
