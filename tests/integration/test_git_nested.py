"""Submodules and repositories inside of a site: git of ours never opens one, wherever it comes from."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.attacks.targets import AttackedCheckout
from tests.harness.sample_project import SampleProject
from tests.integration.test_foreign_text import Doing
from tests.integration.test_git_workspace import BRANCH, OriginWithWorkers, changed, commit_by_hand
from tests.integration.test_site_job import TITLE
from tests.unit.jobs.fixtures import THREAD, work
from webordinary.adapters.dot_git import MAX_RULES_BYTES, is_dot_git, remove_dot_git
from webordinary.adapters.git.origins import Origins
from webordinary.jobs.source import ChangeMessage, InvalidChange, MergeConflict
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import Permanent
from webordinary.model.jobs import JobOutcome

pytestmark = pytest.mark.needs("git")
REFUSED = "theme is a submodule: put its files into the site's own repository"


@pytest.fixture
def world(tmp_path: Path) -> OriginWithWorkers:
    return OriginWithWorkers(tmp_path)


def push_entry(
    world: OriginWithWorkers, ref: str, *, mode: str = "160000", name: str = "theme", then: str = "", oid: str = ""
) -> None:
    """Somebody's commit with one odd entry on top of main; `then` is the message of a commit that removes it again."""
    env = {**os.environ, "GIT_INDEX_FILE": str(world.folder / "odd-index")}
    for person in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{person}_NAME": "P", f"GIT_{person}_EMAIL": "p@example.com"}

    def git(*args: str) -> str:
        words = ["git", "-C", str(world.origin), "-c", "core.protectNTFS=false", *args]
        return subprocess.run(words, check=True, capture_output=True, text=True, env=env).stdout.strip()

    oid = oid or ("1" * 40 if mode == "160000" else git("rev-parse", "main:index.html"))
    git("read-tree", "main")
    git("update-index", "--add", "--cacheinfo", f"{mode},{oid},{name}")
    tip = git("commit-tree", git("write-tree"), "-p", "main", "-m", "By hand")
    if then:
        tip = git("commit-tree", "main^{tree}", "-p", tip, "-m", then)
    git("update-ref", ref, tip)


def plant(folder: Path, canary: Path) -> None:
    """A repository whose settings name a program."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / ".git" / "config").write_text(f"[core]\n\tfsmonitor = touch {canary}\n")


@pytest.mark.parametrize("ref", ["refs/heads/main", BRANCH])
def test_a_submodule_is_refused_before_an_agent_runs(tmp_path: Path, ref: str) -> None:
    amelia, asked = SampleProject(tmp_path), list[Path]()
    deps = replace(amelia.deps(), agents={"builtin": Doing(asked.append)})
    amelia.send("look", "job-1", deps=deps)
    assert len(asked) == 1
    world = OriginWithWorkers(tmp_path / "other")
    world.origin = amelia.origin
    push_entry(world, ref)
    with pytest.raises(Permanent, match=REFUSED):
        amelia.send("look", "job-2", deps=deps)
    assert len(asked) == 1
    subprocess.run(["git", "-C", str(amelia.origin), "update-ref", ref, f"{ref}^"], check=True)
    assert amelia.send(TITLE, "job-3").outcome is JobOutcome.SUCCEEDED, "the customer took it out again"


def test_a_submodule_below_saved_work_is_refused(world: OriginWithWorkers) -> None:
    saved = ChangeMessage("please", "half", "job-1", THREAD, "scott", "s@example.com", unfinished=True)
    push_entry(world, BRANCH, then=saved.text())
    with pytest.raises(Permanent, match=REFUSED):
        world.worker().prepare(work(world.project, "job-1"))


def test_a_submodule_that_comes_to_main_meanwhile_is_refused_before_anything_is_put_on_it(
    world: OriginWithWorkers,
) -> None:
    one = world.worker(quick_seconds=0)
    mine = changed(one, one.prepare(work(world.project)), "about.html", "Mine\n")
    push_entry(world, "refs/heads/main")
    one.enter(mine, ProjectLease("amelia", "w-1", 1))
    with pytest.raises(Permanent, match=REFUSED):
        one.join(mine)


def test_marks_of_conflicts_longer_than_git_can_count_break_no_memory(world: OriginWithWorkers) -> None:
    """Two of them, of three marks each, add up to 2 kB beyond what 32 bits hold."""
    clone, pages = world.clone("person"), ["".join(f"{who}\n" + "same\n" * 12 for _ in range(2)) for who in "abc"]
    commit_by_hand(clone, ".gitattributes", f"* conflict-marker-size={(2**32 + 2000) // 6}\n")
    commit_by_hand(clone, "about.html", pages[0])
    one = world.worker(quick_seconds=0)
    mine = changed(one, one.prepare(work(world.project)), "about.html", pages[1])
    commit_by_hand(clone, "about.html", pages[2])
    one.enter(mine, ProjectLease("amelia", "w-1", 1))
    assert one.join(mine) == MergeConflict(("about.html",))


def test_a_name_that_git_keeps_for_itself_is_refused_in_words(world: OriginWithWorkers) -> None:
    push_entry(world, "refs/heads/main", mode="100644", name="docs/GIT~1/config")
    with pytest.raises(Permanent, match="docs/GIT~1/config has a name that git keeps for itself"):
        world.worker().prepare(work(world.project))


def test_what_a_killed_worker_left_planted_is_gone_before_git_looks(world: OriginWithWorkers, tmp_path: Path) -> None:
    tree = world.worker().prepare(work(world.project)).path
    for folder in (tree, tree / "new", tree / "deep" / "er"):
        plant(folder, tmp_path / "ran")
    assert world.worker().prepare(work(world.project, "job-2")).path == tree
    assert {path.name for path in tree.iterdir()} == {"about.html", "index.html"}
    assert not (tmp_path / "ran").exists()


def test_a_workspace_of_an_earlier_version_is_made_anew_and_keeps_saved_work(world: OriginWithWorkers) -> None:
    one = world.worker()
    workspace = one.prepare(work(world.project))
    message = ChangeMessage("please", "half", "job-1", THREAD, "scott", "s@example.com", unfinished=True)
    (workspace.path / "half.html").write_text("half")
    one.commit(workspace, message)
    one.save(workspace)
    ready = workspace.path.parent / "git" / "ready"
    ready.write_text("".join(ready.read_text().splitlines(keepends=True)[:2]))
    (workspace.path.parent / "git" / "info" / "attributes").unlink()
    again = world.worker().prepare(work(world.project))
    assert again.resumed
    assert (again.path / "half.html").read_text() == "half"
    assert (again.path.parent / "git" / "info" / "attributes").exists()


def test_git_takes_no_settings_of_the_user_or_the_machine(
    world: OriginWithWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home" / ".config" / "git"
    home.mkdir(parents=True)
    (home / "ignore").write_text("*.html\n")
    (home / "attributes").write_text("* text eol=crlf\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    one = world.worker()
    one.save(changed(one, one.prepare(work(world.project)), "new.html", "one\r\n"))
    assert world.git("cat-file", "-s", f"{BRANCH}:new.html") == "5"


NAMES = (
    ".git", ".GIT", ".gIt", "git~1", "GIT~1", ".git ", ".git.", ".git. .", "git~1.", ".git:x", ".git::$DATA",
    ".git\\x", ".g\u200cit", "\ufeff.git", ".gi\u206ft", ".G\u202aIT", "git", ".gitx", ".gitignore", ".gitmodules",
    "git~2", "git~10", " .git", "..git", ".git-", ".g\u0131t", ".gi\u0301t", "x.git", "git ", "\udce9.git",
)  # fmt: skip


@pytest.fixture
def bare(tmp_path: Path) -> list[str]:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "names.git")], check=True)
    return ["git", "-C", str(tmp_path / "names.git"), "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true"]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_the_names_that_are_removed_are_those_that_git_refuses(bare: list[str], name: str) -> None:
    entry = os.fsencode(f"100644,{'1' * 40},sub/{name}")
    stored = subprocess.run([*bare, "update-index", "--add", "--cacheinfo", entry], check=False, capture_output=True)
    assert is_dot_git(name) == (stored.returncode != 0)


def test_all_entries_of_that_name_go_and_no_link_is_followed(tmp_path: Path) -> None:
    outside, tree = tmp_path / "outside", tmp_path / "tree"
    (outside / ".git").mkdir(parents=True)
    (tree / "a" / ".git" / "b" / ".git").mkdir(parents=True)
    (tree / "a" / "c").mkdir()
    (tree / "a" / "c" / ".GIT").symlink_to(outside)
    (tree / "a" / "d").symlink_to(outside)
    (tree / ".git").write_text("gitdir: a/.git\n")
    (tree / "a" / ".gitignore").write_text("x\n")
    remove_dot_git(tree)
    assert {str(path.relative_to(tree)) for path in tree.rglob("*")} == {"a", "a/c", "a/d", "a/.gitignore"}
    assert (outside / ".git").is_dir()


@pytest.mark.parametrize("names", [(".gitignore",), ("a/b/.gitattributes", "a/.gitignore")])
def test_rules_without_measure_are_refused_before_git_reads_them(
    world: OriginWithWorkers, names: tuple[str, ...]
) -> None:
    """Git takes 40 bytes of memory for each of them, in every folder on the way: a few files fill a machine."""
    worker = world.worker()
    workspace = worker.prepare(work(world.project, "job-1"))
    (workspace.path / "a" / "b").mkdir(parents=True)
    for name in names:
        (workspace.path / name).write_text("a\n" * (MAX_RULES_BYTES // len(names) // 2 + 1))
    refused = worker.commit(workspace, ChangeMessage("please", "all", "job-1", THREAD, "scott", "s@example.com"))
    assert isinstance(refused, InvalidChange)
    assert "1000 kB" in refused.reason
    clean = worker.prepare(work(world.project, "job-2"))
    assert not any((clean.path / name).exists() for name in names)


@pytest.mark.parametrize("ref", ["refs/heads/main", BRANCH])
def test_a_branch_with_rules_without_measure_is_refused(world: OriginWithWorkers, ref: str) -> None:
    large = subprocess.run(
        ["git", "-C", str(world.origin), "hash-object", "-w", "--stdin"],
        input=b"* text\n" * (MAX_RULES_BYTES // 7 + 1), capture_output=True, check=True,
    )  # fmt: skip
    push_entry(world, ref, mode="100644", name="sub/.gitattributes", oid=large.stdout.decode().strip())
    with pytest.raises(Permanent, match="more than 1000 kB"):
        world.worker().prepare(work(world.project, "job-1"))
    if ref != BRANCH:
        with pytest.raises(Permanent, match="more than 1000 kB"):
            build_what_was_pushed(world)


def build_what_was_pushed(world: OriginWithWorkers) -> None:
    """As the webhook of a site does."""
    Origins(world.folder / "origins", world.folder / "mirrors").export(world.project, world.folder / "export")


@pytest.mark.parametrize("ref", ["refs/heads/main", BRANCH])
def test_a_branch_that_would_fill_the_disk_is_refused_before_it_is_checked_out(
    world: OriginWithWorkers, ref: str
) -> None:
    """One object of 100 MB, packed into 100 kB, under many names and in folders that are one folder."""

    def git(*args: str, stdin: bytes = b"") -> str:
        words = ["git", "-C", str(world.origin), "-c", "user.name=P", "-c", "user.email=p@example.com", *args]
        return subprocess.run(words, input=stdin, capture_output=True, check=True).stdout.decode().strip()

    blob = git("hash-object", "-w", "--stdin", stdin=bytes(100_000_000))
    folder = git("mktree", stdin="".join(f"100644 blob {blob}\t{number}\n" for number in range(100)).encode())
    root = git("mktree", stdin="".join(f"040000 tree {folder}\t{number}\n" for number in range(100)).encode())
    git("update-ref", ref, git("commit-tree", root, "-p", "main", "-m", "By hand"))
    words = "1,000,000 MB, and a site of more than 5,000 MB"
    with pytest.raises(Permanent, match=words):
        world.worker().prepare(work(world.project, "job-1"))
    if ref != BRANCH:
        with pytest.raises(Permanent, match=words):
            build_what_was_pushed(world)
        assert not (world.folder / "export").exists()


def test_one_below_a_path_longer_than_the_system_takes_goes_as_well(tmp_path: Path) -> None:
    held = os.open(tmp_path, os.O_RDONLY)
    try:
        for _ in range(16):
            os.mkdir("d" * 255, dir_fd=held)
            below = os.open("d" * 255, os.O_RDONLY, dir_fd=held)
            os.close(held)
            held = below
        os.mkdir(".git", dir_fd=held)
        remove_dot_git(tmp_path)
        assert os.listdir(held) == []  # noqa: PTH208  no path leads there
    finally:
        os.close(held)


def test_a_submodule_in_the_index_and_a_repository_in_its_place_run_nothing(tmp_path: Path) -> None:
    checkout = AttackedCheckout(tmp_path)
    plant(checkout.path / "sub", tmp_path / "ran")
    checkout.commit()
    assert not (tmp_path / "ran").exists()
