"""Workspaces and fences in real git: what only git, folders and killed processes can break."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.jobs.fixtures import OTHER_THREAD, PAGE, SCOTT, THREAD, ZOE, work
from webordinary.adapters.git import GitHistory, GitRepository
from webordinary.adapters.git.repository import QUICK_SECONDS
from webordinary.jobs.source import ChangeMessage, InvalidChange, MergeConflict, Merged, Workspace
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import ClaimLost, Permanent, Transient, is_machine_fault
from webordinary.model.projects import Project
from webordinary.operations.sample import make_origin

pytestmark = pytest.mark.needs("git")
BRANCH = f"refs/heads/thread-{THREAD}"


class OriginWithWorkers:
    """An origin and as many workers as a test likes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.origin = folder / "origin.git"
        make_origin(self.origin, {"index.html": PAGE.encode(), "about.html": b"About\n"})
        self.project = Project("amelia", str(self.origin))

    def worker(self, name: str = "w-1", quick_seconds: float = QUICK_SECONDS) -> GitRepository:
        return GitRepository(self.folder / "mirrors", self.folder / name, name, quick_seconds=quick_seconds)

    def git(self, *args: str) -> str:
        return subprocess.run(
            ["git", "-C", str(self.origin), *args], check=True, capture_output=True, text=True
        ).stdout.strip()

    def refs(self) -> str:
        return self.git("for-each-ref", "--format=%(refname) %(objectname)")

    def clone(self, name: str) -> Path:
        """What a person has at home."""
        path = self.folder / name
        subprocess.run(["git", "clone", "-q", str(self.origin), str(path)], check=True, capture_output=True)
        return path


@pytest.fixture
def world(tmp_path: Path) -> OriginWithWorkers:
    return OriginWithWorkers(tmp_path)


def changed(repository: GitRepository, workspace: Workspace, name: str, text: str) -> Workspace:
    (workspace.path / name).write_text(text)
    job = workspace.work
    made = repository.commit(
        workspace, ChangeMessage("please", "done", job.job_id, job.thread_id, job.key.user_id, "scott@example.com")
    )
    assert not isinstance(made, InvalidChange)
    return replace(workspace, made=made)


def commit_by_hand(clone: Path, name: str, text: str) -> None:
    (clone / name).write_text(text)
    person = ["-c", "user.name=P", "-c", "user.email=p@example.com"]
    for args in (["add", "."], ["commit", "-qm", "By hand"], ["push", "-q", "origin", "HEAD:main"]):
        subprocess.run(["git", "-C", str(clone), *person, *args], check=True, capture_output=True)


@pytest.mark.parametrize("clock", ["2001-01-01T00:00:00Z", "2040-01-01T00:00:00Z"])
@pytest.mark.parametrize("later_commits", [0, 150])
@pytest.mark.parametrize("known_start", [True, False])
def test_a_change_on_main_is_found_whatever_the_clock_said(
    world: OriginWithWorkers, clock: str, later_commits: int, known_start: bool
) -> None:
    one = world.worker("w-1")
    push_to_main(one, changed(one, one.prepare(work(world.project)), "about.html", "Us\n"))
    on_main = date_anew(world, clock)
    advance_by_others(world, later_commits)
    again = replace(work(world.project, worker="w-2", fence=11), is_first_start=not known_start)
    found = world.worker("w-2").prepare(again)
    assert found.on_main
    assert found.made
    assert found.made.commit == on_main


def test_a_change_is_found_where_a_killed_push_moved_main_and_not_the_branch_of_the_thread(
    world: OriginWithWorkers,
) -> None:
    one = world.worker("w-1")
    push_to_main(one, changed(one, one.prepare(work(world.project, "job-1")), "about.html", "Us\n"))
    before = world.git("rev-parse", BRANCH)
    push_to_main(one, changed(one, one.prepare(work(world.project, "job-2")), "about.html", "Both of us\n"))
    on_main = world.git("rev-parse", "main")
    world.git("update-ref", BRANCH, before)
    advance_by_others(world, 150)
    again = world.worker("w-2").prepare(work(world.project, "job-2", worker="w-2", fence=11))
    assert again.on_main
    assert again.made
    assert again.made.commit == on_main


def push_to_main(repository: GitRepository, workspace: Workspace) -> None:
    joined = repository.join(workspace)
    assert isinstance(joined, Merged)
    assert repository.push(workspace, joined, ProjectLease("amelia", "w-1", 1))


def date_anew(world: OriginWithWorkers, clock: str) -> str:
    """The newest commit of main as a machine with another clock would have made it."""
    dates = {"GIT_AUTHOR_DATE": clock, "GIT_COMMITTER_DATE": clock}
    person = ["-c", "user.name=P", "-c", "user.email=p@example.com"]
    commit = subprocess.run(
        ["git", "-C", str(world.origin), *person, "commit-tree", "main^{tree}", "-p", "main^", "-F", "-"],
        input=world.git("log", "-1", "--format=%B", "main") + "\n",
        env=os.environ | dates, text=True, check=True, capture_output=True,
    ).stdout.strip()  # fmt: skip
    for ref in ("refs/heads/main", BRANCH):
        world.git("update-ref", ref, commit)
    return commit


def advance_by_others(world: OriginWithWorkers, commits: int) -> None:
    """Main moves on, by one fast import."""
    lines = ["feature done"]
    for number in range(commits):
        text = f"By others {number}"
        lines += ["commit refs/heads/main", "committer P <p@example.com> now", f"data {len(text)}", text]
        lines += ["from refs/heads/main^0"] if number == 0 else []
    subprocess.run(
        ["git", "-C", str(world.origin), "fast-import", "--quiet", "--date-format=now"],
        input="\n".join([*lines, "done", ""]), text=True, check=True,
    )  # fmt: skip


def test_a_stale_push_is_refused_and_both_refs_stay(world: OriginWithWorkers) -> None:
    old, new = world.worker("w-1"), world.worker("w-2")
    stale = changed(old, old.prepare(work(world.project, fence=10)), "about.html", "Old\n")
    new.prepare(work(world.project, worker="w-2", fence=11))
    before = world.refs()
    with pytest.raises(ClaimLost) as lost:
        old.save(stale)
    assert lost.value.fence == 10
    assert world.refs() == before


def test_a_stale_publisher_is_refused_and_all_refs_stay(world: OriginWithWorkers) -> None:
    old, new = world.worker("w-1"), world.worker("w-2")
    stale = changed(old, old.prepare(work(world.project)), "about.html", "Old\n")
    lease = ProjectLease("amelia", "w-1", 5)
    old.enter(stale, lease)
    joined = old.join(stale)
    assert isinstance(joined, Merged)
    other = changed(
        new, new.prepare(work(world.project, "job-2", key=ZOE, thread=OTHER_THREAD, worker="w-2")), "x.html", "X\n"
    )
    new.enter(other, ProjectLease("amelia", "w-2", 6))
    theirs = new.join(other)
    assert isinstance(theirs, Merged)
    assert new.push(other, theirs, ProjectLease("amelia", "w-2", 6))
    before = world.refs()
    with pytest.raises(ClaimLost):
        old.push(stale, joined, lease)
    assert world.refs() == before


def test_the_fence_mark_moves_in_every_push(world: OriginWithWorkers) -> None:
    one = world.worker()
    marks = set()
    for number in range(3):
        workspace = one.prepare(work(world.project, f"job-{number}"))
        one.save(changed(one, workspace, "about.html", f"{number}\n"))
        marks.add(world.git("rev-parse", "refs/fence/key/amelia/scott"))
    assert len(marks) == 3
    assert world.git("cat-file", "-p", "refs/fence/key/amelia/scott").startswith("fence 10\n")


def test_two_people_with_real_clones_conflict_in_words_of_files(world: OriginWithWorkers) -> None:
    one = world.worker(quick_seconds=0)
    mine = changed(one, one.prepare(work(world.project)), "about.html", "Mine\n")
    commit_by_hand(world.clone("person"), "about.html", "Theirs\n")
    one.enter(mine, ProjectLease("amelia", "w-1", 1))
    assert one.join(mine) == MergeConflict(("about.html",))
    one.abandon(mine)
    assert (one.prepare(work(world.project, "job-2")).path / "about.html").read_text() == "Theirs\n"


def test_a_commit_that_a_person_pushed_meanwhile_is_kept(world: OriginWithWorkers) -> None:
    one = world.worker()
    mine = changed(one, one.prepare(work(world.project)), "about.html", "Mine\n")
    lease = ProjectLease("amelia", "w-1", 1)
    one.enter(mine, lease)
    joined = one.join(mine)
    assert isinstance(joined, Merged)
    commit_by_hand(world.clone("person"), "news.html", "News\n")
    assert not one.push(mine, joined, lease)
    one.enter(mine, lease)
    again = one.join(mine)
    assert isinstance(again, Merged)
    assert one.push(mine, again, lease)
    assert world.git("ls-tree", "--name-only", "main").split() == ["about.html", "index.html", "news.html"]
    assert world.git("log", "--format=%s", "main").splitlines()[:2] == ["please", "By hand"]


@pytest.mark.parametrize(
    ("name", "beside", "left"),
    [
        ("my kiln.jpg", "<img src='my%20kiln.jpg'>\n", True),
        ("my kiln.jpg", "<img src='/my kiln.jpg'>\n", True),
        ("my kiln.jpg", "<img src='my kiln.png'>\n", False),
        ("new.html", "<a href='new.html'>New</a>\n", False),
    ],
    ids=["shown by another page", "shown by its plain name", "shown by none", "a page"],
)
def test_what_another_page_shows_stays_when_the_change_that_added_it_goes(
    world: OriginWithWorkers, name: str, beside: str, left: bool
) -> None:
    one = world.worker(quick_seconds=0)
    workspace = one.prepare(work(world.project))
    (workspace.path / "index.html").write_text(f"{PAGE}{name}\n")
    mine, lease = changed(one, workspace, name, "as it was"), ProjectLease("amelia", "w-1", 1)
    one.enter(mine, lease)
    joined = one.join(mine)
    assert isinstance(joined, Merged)
    assert one.push(mine, joined, lease)
    commit_by_hand(world.clone("person"), "about.html", beside)
    workspace = one.prepare(work(world.project, "job-2"))
    assert one.revert(workspace, joined.change) is None
    assert (workspace.path / "index.html").read_text() == PAGE
    assert (workspace.path / name).exists() == left


def test_the_commit_is_the_customers(world: OriginWithWorkers) -> None:
    one = world.worker()
    one.save(changed(one, one.prepare(work(world.project)), "about.html", "Us\n"))
    assert world.git("log", "-1", "--format=%an <%ae> by %cn", BRANCH) == "scott <scott@example.com> by WebOrdinary"


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: shutil.rmtree(folder / "tree"),
        lambda folder: shutil.rmtree(folder / "git" / "objects"),
        lambda folder: (folder / "git" / "HEAD").write_text("nonsense"),
        lambda folder: (folder / "git" / "index.lock").touch(),
        lambda folder: (folder / "git" / "index").write_bytes(b"\0" * 100),
        lambda folder: (folder / "git" / "objects" / "info" / "alternates").unlink(),
        lambda folder: (folder / "tree" / "left-behind.html").write_text("x"),
    ],
    ids=["no tree", "no objects", "bad HEAD", "index locked", "bad index", "no mirror", "left-overs"],
)
def test_a_broken_workspace_repairs_itself(world: OriginWithWorkers, damage: object) -> None:
    one = world.worker()
    one.prepare(work(world.project))
    damage(world.folder / "w-1" / "amelia" / "scott")  # type: ignore[operator]
    workspace = one.prepare(work(world.project, "job-2"))
    assert sorted(path.name for path in workspace.path.iterdir()) == ["about.html", "index.html"]
    one.save(changed(one, workspace, "about.html", "Us\n"))


def test_a_broken_mirror_is_made_again(world: OriginWithWorkers) -> None:
    world.worker("w-1").prepare(work(world.project))
    shutil.rmtree(world.folder / "mirrors" / "amelia.git" / "refs")
    two = world.worker("w-2")
    assert two.prepare(work(world.project, key=ZOE, worker="w-2")).path.is_dir()


def test_a_lock_that_a_killed_push_left_in_the_origin_is_cleared(world: OriginWithWorkers) -> None:
    one = world.worker()
    workspace = one.prepare(work(world.project))
    lock = world.origin / "refs" / "fence" / "key" / "amelia" / "scott.lock"
    lock.touch()
    os.utime(lock, (0, 0))
    one.save(changed(one, workspace, "about.html", "Us\n"))
    assert not lock.exists()


def test_hooks_filters_and_foreign_settings_do_not_run(world: OriginWithWorkers, tmp_path: Path) -> None:
    one = world.worker()
    workspace = one.prepare(work(world.project))
    ran = tmp_path / "ran"
    (workspace.path / ".git").mkdir()
    (workspace.path / ".git" / "config").write_text(f"[core]\n\tfsmonitor = touch {ran}\n")
    (workspace.path / ".gitattributes").write_text("* filter=evil\n")
    hooks = world.folder / "w-1" / "amelia" / "scott" / "git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "post-commit", "pre-push", "post-checkout", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (hooks / name).chmod(0o755)
    one.save(changed(one, workspace, "about.html", "Us\n"))
    assert not ran.exists()
    assert world.git("ls-tree", "-r", "--name-only", BRANCH).split() == [".gitattributes", "about.html", "index.html"]


def test_links_are_refused(world: OriginWithWorkers) -> None:
    one = world.worker()
    workspace = one.prepare(work(world.project))
    (workspace.path / "evil").symlink_to("/etc/passwd")
    message = ChangeMessage("please", "done", "job-1", THREAD, "scott", "scott@example.com")
    refused = one.commit(workspace, message)
    assert isinstance(refused, InvalidChange)
    assert "evil" in refused.reason
    assert one.commit(one.prepare(work(world.project, "job-2")), message) is None


def test_an_origin_that_does_not_answer_is_tried_again_later(world: OriginWithWorkers) -> None:
    one = world.worker()
    one.prepare(work(world.project))
    world.origin.rename(world.folder / "away")
    with pytest.raises(Transient):
        one.prepare(work(world.project, "job-2"))
    with pytest.raises(Transient):
        world.worker("w-2").prepare(work(replace(world.project, project_id="other"), key=SCOTT))
    (world.folder / "away").rename(world.origin)
    assert one.prepare(work(world.project, "job-2")).path.is_dir()


def test_a_worker_without_file_descriptors_blames_neither_the_site_nor_the_mail(world: OriginWithWorkers) -> None:
    one = world.worker()
    workspace = one.prepare(work(world.project))
    (workspace.path / "about.html").write_text("Us\n")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        with pytest.raises(OSError, match="Too many open files") as raised:
            one.commit(workspace, ChangeMessage("please", "done", "job-1", THREAD, "scott", "scott@example.com"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert is_machine_fault(raised.value)
    changed(one, one.prepare(work(world.project)), "about.html", "Us\n")


def test_an_empty_origin_is_refused_in_words(world: OriginWithWorkers) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(world.folder / "empty.git")], check=True)
    with pytest.raises(Permanent, match="push a first page"):
        world.worker().prepare(work(replace(world.project, repo=str(world.folder / "empty.git"))))


def test_an_origin_with_another_main_branch_works(world: OriginWithWorkers) -> None:
    world.git("branch", "-m", "main", "trunk")
    world.git("symbolic-ref", "HEAD", "refs/heads/trunk")
    one = world.worker()
    mine = changed(one, one.prepare(work(world.project)), "about.html", "Us\n")
    lease = ProjectLease("amelia", "w-1", 1)
    one.enter(mine, lease)
    joined = one.join(mine)
    assert isinstance(joined, Merged)
    assert one.push(mine, joined, lease)
    assert world.git("rev-parse", "trunk") == joined.head


def test_a_published_change_can_be_looked_at(world: OriginWithWorkers) -> None:
    one = world.worker()
    mine = changed(one, one.prepare(work(world.project)), "about.html", "Us\n")
    one.save(mine)
    history = GitHistory(world.folder / "mirrors")
    assert mine.made
    diff = history.diff(world.project, mine.made.commit)
    assert diff is not None
    assert "-About\n+Us\n" in diff
    assert history.diff(world.project, "0" * 40) is None
    assert history.diff(world.project, "--output=/tmp/x") is None


def programs_of_git(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which each start of git that we make leaves what it was asked."""
    log, real = folder / "asked", shutil.which("git")
    (folder / "bin").mkdir()
    first_word = f'for word; do case $word in -*) ;; *) echo "$word" >> {log}; break ;; esac; done'
    (folder / "bin" / "git").write_text(f'#!/bin/sh\n{first_word}\nexec {real} "$@"\n')
    (folder / "bin" / "git").chmod(0o755)
    log.touch()
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    return log


def test_a_mail_of_a_held_key_starts_git_six_times(
    world: OriginWithWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, lease = world.worker(), ProjectLease("amelia", "w-1", 1)
    publish(one, changed(one, one.prepare(work(world.project)), "about.html", "Us\n"), lease)
    asked = programs_of_git(tmp_path, monkeypatch)
    publish(one, changed(one, one.prepare(work(world.project, "job-2")), "about.html", "We\n"), lease)
    assert asked.read_text().split() == ["checkout", "clean", "add", "write-tree", "pack-objects", "update-ref"]
    assert world.git("show", "main:about.html") == "We"
    assert world.git("fsck", "--full", "--strict", "--no-dangling") == ""


def test_who_takes_a_key_over_starts_git_for_what_is_new(
    world: OriginWithWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = world.worker("w-1"), world.worker("w-2")
    two.prepare(work(world.project, worker="w-2", fence=10))
    publish(
        one,
        changed(one, one.prepare(work(world.project, fence=11)), "about.html", "Us\n"),
        ProjectLease("amelia", "w-1", 1),
    )
    asked = programs_of_git(tmp_path, monkeypatch)
    workspace = two.prepare(work(world.project, "job-2", worker="w-2", fence=12))
    assert asked.read_text().split() == ["pack-objects", "update-ref", "pack-objects", "checkout", "clean"]
    assert (workspace.path / "about.html").read_text() == "Us\n"


@pytest.mark.parametrize("way", ["hook", "settings"])
def test_an_origin_that_does_more_with_a_push_gets_one(
    world: OriginWithWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "hook":
        hook = world.origin / "hooks" / "post-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path / 'received'}\n")
        hook.chmod(0o755)
    else:
        config = world.origin / "config"
        config.write_text(f"[receive]\n\tfsckObjects = true\n{config.read_text()}")
    one = world.worker()
    workspace = one.prepare(work(world.project))
    asked = programs_of_git(tmp_path, monkeypatch)
    one.save(changed(one, workspace, "about.html", "Us\n"))
    assert "push" in asked.read_text().split()
    assert way != "hook" or (tmp_path / "received").exists()


def test_a_push_to_a_plain_origin_that_moved_is_refused(world: OriginWithWorkers) -> None:
    one, lease = world.worker(), ProjectLease("amelia", "w-1", 1)
    mine = changed(one, one.prepare(work(world.project)), "about.html", "Us\n")
    one.enter(mine, lease)
    joined = one.join(mine)
    assert isinstance(joined, Merged)
    commit_by_hand(world.clone("person"), "index.html", "By hand\n")
    before = world.refs()
    assert not one.push(mine, joined, lease)
    assert world.refs() == before


def publish(repository: GitRepository, workspace: Workspace, lease: ProjectLease) -> None:
    repository.enter(workspace, lease)
    joined = repository.join(workspace)
    assert isinstance(joined, Merged)
    assert repository.push(workspace, joined, lease)
