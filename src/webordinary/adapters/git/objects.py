"""Questions to a repository: what is staged, what conflicts, what our commits say of themselves."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from webordinary.adapters.dot_git import MAX_RULES_BYTES, RULES, is_dot_git
from webordinary.adapters.git.command import COMMITTER, Git
from webordinary.adapters.git.object_store import Commit, NotRead, TreeEntry, store_of, write_object
from webordinary.jobs.history import standing
from webordinary.jobs.source import Change, ChangeMessage, InvalidChange, Note, PastChange, SourceTree, read_note
from webordinary.model.errors import Permanent
from webordinary.model.text import clean, is_text

LARGEST_FILE_BYTES = 50_000_000
"""Hosts of repositories refuse more than 50 or 100 MB, and history keeps every version for ever."""
SYMBOLIC_LINK, SUBMODULE, _REMOVED = "120000", "160000", "000000"
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_ATTRIBUTES = ".gitattributes"
_ATTRIBUTES_BYTES = 100_000
_LFS = "filter=lfs"
MAX_TREE_BYTES = 5_000_000_000
_MUCH_BYTES = 50_000_000
"""What differs by less is not worth a look at the whole tree."""
_GIT_REFUSES = {
    '"): Permission denied': "some of the files cannot be read",
    "invalid path '": "some of the files have names that git does not take",
    "does not have a commit checked out": "there is a repository inside the site",
}
"""What git says of a tree that it cannot take in, however often it is asked, and what is wrong with that tree."""


def find_invalid(tree: Path, changed: Mapping[str, str]) -> InvalidChange | None:
    """Why a change of these files, by name and mode, cannot be recorded; None if it can."""
    for name, mode in changed.items():
        if mode in (SYMBOLIC_LINK, SUBMODULE):
            kind = "link" if mode == SYMBOLIC_LINK else "repository of its own"
            return InvalidChange(
                f"links cannot be published, nor repositories inside the site, and {name} is a {kind}."
            )
        if mode == _REMOVED:
            continue  # removed
        if not is_text(name):
            return InvalidChange(f"no address could lead to {clean(name)}: its name is not written in UTF-8.")
        size = (tree / name).lstat().st_size
        if size > LARGEST_FILE_BYTES:
            return InvalidChange(
                f"{name} has {size / 1e6:,.0f} MB, and files over {LARGEST_FILE_BYTES / 1e6:.0f} MB cannot be part of "
                "the site. A smaller version, or a link to a place made for large files, would do."
            )
    if lfs := _uses_lfs(tree, changed):
        return InvalidChange(f"{lfs} asks for Git LFS, which cannot be published from here.")
    return None


def not_taken_in(words: str) -> InvalidChange | None:
    """Why git could not take the files in, if that is because of what they are; None if it is worth another try."""
    for pattern, reason in _GIT_REFUSES.items():
        if pattern in words:
            return InvalidChange(f"{reason}.")
    return None


def check_tree(tree: Path, modes: Mapping[str, str]) -> None:
    """Raise Permanent if main is in a state that cannot be built."""
    for name, mode in modes.items():
        if mode == SUBMODULE:
            raise Permanent(f"{name} is a submodule: put its files into the site's own repository")
    if lfs := _uses_lfs(tree, modes):
        raise Permanent(_lfs_words(lfs))


def check_commit(git: Git, commit: str, known: str = "") -> None:
    """Raise Permanent if a commit cannot be checked out for an agent. Costs what differs from a `known` good commit.

    A submodule is more than a hole in the site: git would open the repository that a program makes in its place.
    """
    modes, size = _new_files(git, commit, known)
    for name, mode in modes.items():
        if mode == SUBMODULE:
            raise Permanent(f"{name} is a submodule: put its files into the site's own repository")
        if mode != _REMOVED and any(map(is_dot_git, name.split("/"))):
            raise Permanent(f"{clean(name)} has a name that git keeps for itself: give it another one")
    if any(name.rpartition("/")[2] in RULES for name in modes):
        _check_rules(git, commit)
    if size > _MUCH_BYTES:
        _check_size(git, commit)


def _new_files(git: Git, commit: str, known: str) -> tuple[dict[str, str], int]:
    """The files that differ from a `known` commit, each with its new mode, and the bytes of all of them."""
    if known:
        with suppress(NotRead):
            store = store_of(git.git_dir)
            new = store.differing(store.commit(known).tree, store.commit(commit).tree)
            after = {name: entry or TreeEntry(_REMOVED, "") for name, _, entry in new}
            stored = (one.oid for one in after.values() if one.mode not in (SUBMODULE, _REMOVED))
            return {name: entry.mode for name, entry in after.items()}, sum(map(store.size, stored))
    options = ("-r", "-z", "--raw", "--no-renames", "--ignore-submodules=none")
    listing = git("diff-tree", *options, known or _EMPTY_TREE, commit)
    return new_modes(listing), _bytes_of(git, [meta.split(" ")[3] for meta in listing.split("\0")[0::2] if meta])


def _check_size(git: Git, commit: str) -> None:
    """Raise Permanent if a commit would fill the disk: one packed object may stand in it under a million names."""
    entries = [entry.partition("\t")[0] for entry in git("ls-tree", "-r", "-z", "--full-tree", commit).split("\0")]
    size = _bytes_of(git, [meta.split(" ")[2] for meta in entries if meta])
    if size > MAX_TREE_BYTES:
        raise Permanent(
            f"its files have {size / 1e6:,.0f} MB, and a site of more than {MAX_TREE_BYTES / 1e6:,.0f} MB is not "
            "checked out: move large files to a place made for them"
        )


def _bytes_of(git: Git, objects: Sequence[str]) -> int:
    """The total size of these files; a repeated name counts twice."""
    asked = "".join(f"{oid}\n" for oid in dict.fromkeys(objects) if oid.strip("0"))
    lines = git(
        "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", stdin=asked.encode()
    ).splitlines()
    sizes = {oid: int(size) for oid, kind, size in (line.split(" ") for line in lines if line.count(" ") == 2)}
    return sum(sizes.get(oid, 0) for oid in objects)


def _check_rules(git: Git, commit: str) -> None:
    """Raise Permanent if a commit has more rules for git than it may read."""
    entries = (entry.partition("\t") for entry in git("ls-tree", "-r", "-z", "--full-tree", commit).split("\0"))
    objects = [meta.split(" ")[2] for meta, _, name in entries if name.rpartition("/")[2] in RULES]
    if _bytes_of(git, objects) > MAX_RULES_BYTES:
        raise Permanent(
            f"there is more than {MAX_RULES_BYTES // 1000} kB in .gitignore and .gitattributes: shorten them"
        )


def new_modes(listing: str) -> dict[str, str]:
    """The files in a raw diff, each with its new mode."""
    fields = listing.split("\0")
    return {name: meta.split(" ")[1] for meta, name in zip(fields[0::2], fields[1::2], strict=False)}


def check_sources(git: Git, commit: str) -> tuple[str, ...]:
    """Raise Permanent, in words, if a repository cannot be served: said at onboarding, not at the first mail.

    Returns, for people, the files that can be served but not shown.
    """
    unshown = []
    for entry in git("ls-tree", "-r", "-z", "--full-tree", commit).split("\0"):
        meta, _, name = entry.partition("\t")
        if meta.startswith(SUBMODULE):
            raise Permanent(f"{name} is a submodule: put its files into the site's own repository, then add it again")
        if not is_text(name):
            unshown.append(clean(name))
    found = git.attempt("grep", "--name-only", "-F", _LFS, commit, "--", f":(glob)**/{_ATTRIBUTES}")
    if found.code == 0:
        raise Permanent(_lfs_words(found.out.decode(errors="replace").split("\n")[0].partition(":")[2]))
    return tuple(unshown)


def _uses_lfs(tree: Path, names: Iterable[str]) -> str:
    for name in names:
        path = tree / name
        if name.rpartition("/")[2] == _ATTRIBUTES and path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if _LFS.encode() in file.read(_ATTRIBUTES_BYTES):
                    return name
    return ""


def _lfs_words(name: str) -> str:
    return (
        f"{name} sends files to Git LFS, so the repository holds only pointers to them: take that line out and put the "
        "files themselves into the repository (`git lfs migrate export`)"
    )


_PAST_CHANGES = 500


def head(git: Git) -> str:
    """The commit that is checked out; its branch is read as a file, for which no process is needed."""
    name = (git.git_dir / "HEAD").read_text(encoding="utf-8").strip()
    return commit_of(git, name.removeprefix("ref: ")) if name.startswith("ref: ") else name


def commit_of(git: Git, ref: str) -> str:
    """The commit that this reference names."""
    file = git.git_dir / ref
    return file.read_text(encoding="utf-8").strip() if file.is_file() else git("rev-parse", ref).strip()


def changed_files(git: Git, tree: str) -> dict[str, str]:
    """What a commit with this staged content would change, with each file's new mode."""
    with suppress(NotRead):
        store = store_of(git.git_dir)
        found = store.differing(store.commit(head(git)).tree, tree)
        return _in_order({name: entry.mode if entry else _REMOVED for name, _, entry in found})
    # Submodules shown, and no `.gitmodules` of the tree asked how.
    options = ("--raw", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")
    return new_modes(git("diff", "--cached", *options))


def _in_order(modes: Mapping[str, str]) -> dict[str, str]:
    return {name: modes[name] for name in sorted(modes, key=os.fsencode)}


def files_of(git: Git, commit: str) -> tuple[str, ...]:
    """The files that a commit changed."""
    with suppress(NotRead):
        return _files_of_known(git, commit)
    listing = git("diff-tree", "--no-commit-id", "--name-only", "-r", "-z", "--root", "--no-renames", commit)
    return tuple(name for name in listing.split("\0") if name)


def _files_of_known(git: Git, sha: str) -> tuple[str, ...]:
    store = store_of(git.git_dir)
    made = store.commit(sha)
    if len(made.parents) > 1:
        raise NotRead(sha)
    before = store.commit(made.parents[0]).tree if made.parents else ""
    return tuple(sorted((name for name, _, _ in store.differing(before, made.tree)), key=os.fsencode))


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
    return Change(commit, note.summary, for_people(files_of(git, commit)), note.undoes, note.then)


def for_people(names: Iterable[str]) -> tuple[str, ...]:
    """Names of files for messages, in valid UTF-8."""
    return tuple(map(clean, names))


def past_changes(git: Git, head: str, thread_id: str, folder: str) -> tuple[PastChange, ...]:
    """What a thread brought to main, the newest first. Another site of the repository may have been rolled back."""

    @cache
    def history(commit: str) -> list[tuple[str, Note]]:
        if commit != head and git.attempt("cat-file", "-e", f"{commit}^{{commit}}").code != 0:
            return []  # main was rewritten since it was rolled back
        return notes(git, commit, f"Thread: {thread_id}", _PAST_CHANGES, "Rolled-Back-To: ", folder)

    left = standing(history, head, thread_id)
    ours = [(sha, note) for sha, note in history(head) if note.thread_id == thread_id and note.job_id]
    files = files_of_each(git, [sha for sha, _ in ours])
    return tuple(
        PastChange(Change(sha, note.summary, files.get(sha, ())), note.job_id, note.title, sha in left)
        for sha, note in ours
        if not note.undoes
    )


def files_of_each(git: Git, commits: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The files that each of these commits changed, asked for at once."""
    with suppress(NotRead):
        return {commit: for_people(_files_of_known(git, commit)) for commit in commits}
    asked = "".join(f"{commit}\n" for commit in commits).encode()
    listing = git("diff-tree", "--stdin", "--name-only", "-r", "-z", "--root", "--no-renames", stdin=asked)
    files: dict[str, list[str]] = {}
    known, current = set(commits), ""
    for name in listing.split("\0"):
        if name in known:
            current = name
        elif name:
            files.setdefault(current, []).append(name)
    return {commit: for_people(names) for commit, names in files.items()}


_CRUD = "".join(map(chr, range(33))) + ".,:;<>\"\\'"
"""What git takes off both ends of a name."""


def commit_on(git: Git, parent: str, message: ChangeMessage, tree: str) -> str:
    """A commit of a content in the name of the message's author; no branch is moved. Returns it."""
    name, address = (re.sub(r"[\n\0<>]", "", text).strip(_CRUD) for text in message.author)
    return _write_commit(git, parent, tree, f"{name} <{address}>", message.text())


def _write_commit(git: Git, parent: str, tree: str, author: str, text: str) -> str:
    now = f"{int(time.time())} {time.strftime('%z')}"
    head = f"tree {tree}\nparent {parent}\nauthor {author} {now}\ncommitter {COMMITTER} {now}\n\n"
    return write_object(git.git_dir, "commit", f"{head}{text}".encode())


def commit(git: Git, message: ChangeMessage, tree: str) -> str:
    """Commit a staged content on top of what is checked out; returns the commit.

    Nothing else works in a workspace, so that its branch is moved without a lock.
    """
    made = commit_on(git, head(git), message, tree)
    on = (git.git_dir / "HEAD").read_text(encoding="utf-8").strip()
    ref = git.git_dir / (on.removeprefix("ref: ") if on.startswith("ref: ") else "HEAD")
    draft = ref.with_name(f"{ref.name}.new")
    draft.write_text(f"{made}\n", encoding="ascii")
    draft.replace(ref)
    return made


def merge_change(git: Git, content: str, change: str) -> str | tuple[str, ...]:
    """A content with what a commit changed, merged beside the workspace; the files of a conflict."""
    ours = _write_commit(git, parent_of(git, change), content, COMMITTER, "Merged.\n")
    found = git.attempt("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, change)
    tree, *files = found.out.decode(errors="surrogateescape").split("\0")
    if found.code in (0, 1):
        return tree if found.code == 0 else tuple(filter(None, files))
    # Before 2.38 git merges in a work tree only.
    git("checkout", "--quiet", "--force", "--detach", ours)
    if git.attempt("cherry-pick", "--no-commit", change).code == 0:
        return staged_tree(git)
    conflicted = conflicted_files(git)
    git("reset", "--quiet", "--hard")
    return conflicted


def tree_of(git: Git, commit: str) -> str:
    """The id of a commit's content."""
    with suppress(NotRead):
        return store_of(git.git_dir).commit(commit).tree
    return git("rev-parse", f"{commit}^{{tree}}").strip()


def parent_of(git: Git, commit: str) -> str:
    """The commit before a change."""
    with suppress(NotRead):
        return store_of(git.git_dir).commit(commit).parents[0]
    return git("rev-parse", f"{commit}^").strip()


def staged_tree(git: Git) -> str:
    """The id of the content that the next commit would have."""
    return git("write-tree").strip()


def conflicted_files(git: Git) -> tuple[str, ...]:
    """The files in which two changes met."""
    listing = git("ls-files", "--unmerged", "-z")
    return tuple(sorted({entry.partition("\t")[2] for entry in listing.split("\0") if entry}))


def tree_at(git: Git, commit: str) -> SourceTree:
    """The files of the commit that is checked out. Raises Permanent if they cannot be built."""
    assert git.tree is not None
    try:
        files = dict(store_of(git.git_dir).files(tree_of(git, commit)))
    except NotRead:
        return tree(git)
    check_tree(git.tree, {name: entry.mode for name, entry in files.items()})
    return SourceTree(git.tree, {name: entry.oid for name, entry in files.items()})


def tree(git: Git) -> SourceTree:
    """The tracked files of what is checked out, as the index lists them."""
    files, modes = {}, {}
    for entry in git("ls-files", "--stage", "-z").split("\0"):
        meta, _, name = entry.partition("\t")
        if name:
            modes[name], files[name], _ = meta.split(" ")
    assert git.tree is not None
    check_tree(git.tree, modes)
    return SourceTree(git.tree, files)


def newest_of_job(git: Git, tip: str, job_id: str, among: int) -> list[tuple[str, Note]]:
    """A job's own commit, if it is one of the newest commits below a tip. No clock is asked: they jump."""
    return [(sha, note) for sha, note in notes(git, tip, "", among) if note.job_id == job_id][:1]


def below(folder: str) -> tuple[str, ...]:
    """Names the files of a site's folder to git, for a site that has one."""
    return (f":(literal,top){folder}",) if folder else ()


def differs_beside(git: Git, folder: str, *between: str) -> bool:
    """Whether a change leaves the folder of its site, if it has one: git follows renames, also to a neighbour's page.

    A page that one site removed and another one has much like it looks to git as if it had moved there.
    """
    rest = ("--", ":(top)", f":(exclude,literal,top){folder}")
    options = ("--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")
    return bool(folder) and git.attempt("diff", *options, *between, *rest).code != 0


def notes(
    git: Git, where: str, saying: str, limit: int, or_saying: str = "", folder: str = ""
) -> list[tuple[str, Note]]:
    """Our notes on the commits of a range, newest first; `saying` narrows them by a line of the message.

    With `folder` only commits that change something in it count.
    """
    words = [text for text in (saying, or_saying) if text]
    if not folder:
        with suppress(NotRead):
            return _notes_on_line(git, where, words, limit)[:limit]
    options = [f"--max-count={limit}", "-z", "--format=%H%n%B", "--fixed-strings"]
    options += [f"--grep={text}" for text in words]
    found = []
    for entry in git("log", *options, where, "--", *below(folder)).split("\0"):
        sha, _, text = entry.partition("\n")
        if sha:
            found.append((sha, read_note(text)))
    return found


_JOB_ID = re.compile("^Job-Id: ", re.M)
_LONGEST_LINE = 1_000
"""Commits that are read one by one; git lists more of them sooner."""


def parents_of_changes(git: Git, main: str, folder: str) -> list[tuple[str, ...]]:
    """The parents of each commit that a job made, newest first; with `folder`, of those that change something in it."""
    if not folder:
        with suppress(NotRead):
            line = _whole_line(git, main, "")
            return [commit.parents for _, commit in line if _JOB_ID.search(commit.message)]
    made = ("log", "--format=%P", "--extended-regexp", "--grep=^Job-Id: ", main, "--", *below(folder))
    return [tuple(line.split()) for line in git(*made).splitlines()]


def _whole_line(git: Git, tip: str, excluded: str) -> list[tuple[str, Commit]]:
    if excluded and tip in {sha for sha, _ in store_of(git.git_dir).line(excluded, "", _LONGEST_LINE)}:
        return []
    line = list(store_of(git.git_dir).line(tip, excluded, _LONGEST_LINE))
    if len(line) == _LONGEST_LINE:
        raise NotRead(tip)
    return line


def _notes_on_line(git: Git, where: str, saying: Sequence[str], limit: int) -> list[tuple[str, Note]]:
    excluded, _, tip = where.rpartition("..")
    if excluded or saying:
        line = _whole_line(git, tip, excluded)
    else:
        line = list(store_of(git.git_dir).line(tip, "", min(limit, _LONGEST_LINE)))
    said = (one for one in line if not saying or any(words in one[1].message for words in saying))
    return [(sha, read_note(commit.message)) for sha, commit in said]


def is_ancestor(git: Git, commit: str, of: str) -> bool:
    """Whether the history of a commit holds another one."""
    with suppress(NotRead):
        for _ in store_of(git.git_dir).line(of, commit, _LONGEST_LINE):
            pass
        return True
    return git.attempt("merge-base", "--is-ancestor", commit, of).code == 0


def fork_point(git: Git, main: str, commit: str) -> str:
    """The newest commit of main that is in the history of another one; main itself where there is none."""
    with suppress(NotRead):
        store = store_of(git.git_dir)
        ours = {sha for sha, _ in store.line(main, "", _LONGEST_LINE)}
        theirs = (sha for sha, _ in store.line(commit, "", _LONGEST_LINE))
        if shared := next((sha for sha in theirs if sha in ours), ""):
            return shared
    found = git.attempt("merge-base", main, commit)
    return found.out.decode().strip() if found.code == 0 else main
