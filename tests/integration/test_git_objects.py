"""What we read of a repository without git is what git says of it; everything else is left to git."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path

import pytest

from webordinary.adapters.git.object_store import GitObjects, NotRead, write_object

pytestmark = pytest.mark.needs("git")
IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.com")


def git(repository: Path, *args: str) -> str:
    done = subprocess.run(["git", *IDENTITY, *args], cwd=repository, check=True, capture_output=True)
    return done.stdout.decode(errors="surrogateescape")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Thirty commits on one line: files that change, move and go, in folders, with names of any bytes."""
    git(tmp_path, "init", "-q", "-b", "main", "repository")
    folder = tmp_path / "repository"
    for number in range(30):
        place = folder / f"part-{number % 3}" / "deep"
        place.mkdir(parents=True, exist_ok=True)
        (place / "page.html").write_text("".join(f"line {line} {number * (line == 7)}\n" for line in range(400)))
        (folder / f"new {number}.txt").write_text(f"{number}")
        (Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt"))).write_text(f"{number // 2}")
        if number > 5:
            (folder / f"new {number - 5}.txt").unlink()
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"Change {number}\n\nGrüße")
    return folder


def agrees(repository: Path, store: GitObjects) -> None:
    """All commits, their files and what each changed are as git says."""
    commits = git(repository, "rev-list", "main").split()
    assert [sha for sha, _ in store.line(commits[0], "", 1_000)] == commits
    assert [sha for sha, _ in store.line(commits[0], commits[20], 1_000)] == commits[:20]
    for newer, older in itertools.pairwise(commits):
        commit, before = store.commit(newer), store.commit(older)
        assert commit.message == git(repository, "show", "-s", "--format=%B", newer)[:-1]
        listed = [line for line in git(repository, "ls-tree", "-r", "-z", newer).split("\0") if line]
        assert [f"{entry.mode} blob {entry.oid}\t{name}" for name, entry in store.files(commit.tree)] == listed
        told = git(repository, "diff-tree", "-r", "-z", "--no-renames", "--name-only", older, newer).split("\0")
        assert sorted(name for name, _, _ in store.differing(before.tree, commit.tree)) == sorted(filter(None, told))
        for _, entry in store.files(commit.tree):
            assert store.size(entry.oid) == int(git(repository, "cat-file", "-s", entry.oid))
            break


@pytest.mark.parametrize("packing", ["loose", "by place", "by name", "borrowed"])
def test_a_repository_is_read_as_git_reads_it(repository: Path, tmp_path: Path, packing: str) -> None:
    if packing != "loose":
        offsets = "false" if packing == "by name" else "true"
        git(repository, "-c", f"repack.useDeltaBaseOffset={offsets}", "repack", "-adfq", "--depth=20", "--window=20")
        assert not list((repository / ".git" / "objects").glob("[0-9a-f][0-9a-f]/*"))
    git_dir = repository / ".git"
    if packing == "borrowed":
        git(tmp_path, "clone", "-q", "--bare", "--shared", str(repository), "second.git")
        git_dir = tmp_path / "second.git"
    agrees(repository, GitObjects(git_dir))


def test_a_merge_a_missing_and_a_damaged_commit_are_left_to_git(repository: Path) -> None:
    store = GitObjects(repository / ".git")
    git(repository, "checkout", "-q", "-b", "beside", "main~3")
    git(repository, "commit", "-q", "--allow-empty", "-m", "Beside")
    git(repository, "merge", "-q", "-m", "Both", "main")
    merge, missing = git(repository, "rev-parse", "HEAD").strip(), "1" * 40
    main, own = (git(repository, "rev-parse", name).strip() for name in ("main", "HEAD^1"))
    for tip, excluded in ((merge, ""), (main, own)):
        with pytest.raises(NotRead):
            list(store.line(tip, excluded, 100))
    assert not store.has(missing)
    with pytest.raises(NotRead):
        store.commit(missing)
    damaged = repository / ".git" / "objects" / merge[:2] / merge[2:]
    damaged.chmod(0o644)
    damaged.write_bytes((repository / ".git" / "objects" / main[:2] / main[2:]).read_bytes())
    with pytest.raises(NotRead):
        GitObjects(repository / ".git").commit(merge)


def test_a_written_object_is_one_of_gits(repository: Path) -> None:
    oid = write_object(repository / ".git", "blob", b"fence 1\n")
    assert git(repository, "cat-file", "blob", oid) == "fence 1\n"
    assert oid == git(repository, "hash-object", str(_file(repository, b"fence 1\n"))).strip()


def _file(folder: Path, content: bytes) -> Path:
    (folder / "written").write_bytes(content)
    return folder / "written"


@pytest.mark.parametrize(
    ("kind", "content"),
    [("tree", b"100644 no end"), ("tree", b"100\xe9 a\0" + bytes(20)), ("commit", b"tree \xe9\n\n")],
)
def test_what_was_pushed_under_its_name_and_is_malformed_is_left_to_git(
    repository: Path, kind: str, content: bytes
) -> None:
    oid = write_object(repository / ".git", kind, content)
    store = GitObjects(repository / ".git")
    with pytest.raises(NotRead):
        (store.tree if kind == "tree" else store.commit)(oid)
