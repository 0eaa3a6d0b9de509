"""What a workspace may hold and how much of it is kept: huge files, submodules, Git LFS, the cache, the mirrors."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.harness.sample_project import SampleProject
from tests.integration.test_git_workspace import OriginWithWorkers, changed
from tests.unit.jobs.fixtures import OTHER_THREAD, SCOTT, ZOE, work
from webordinary.adapters.git import GitRepository, WorkspaceCache, command
from webordinary.adapters.git.command import clear_leftovers, harden_origin, harden_origins, remove_stale_locks
from webordinary.adapters.git.mirrors import (
    MANY_PACKS,
    MANY_PUSHES,
    UNUSED_SECONDS,
    maintain_mirrors,
    tend_origins,
)
from webordinary.adapters.git.objects import LARGEST_FILE_BYTES
from webordinary.adapters.git.origins import Origins
from webordinary.adapters.git.workspaces import size_of
from webordinary.jobs.ports import AgentResult, AgentTask, Changed
from webordinary.model.claims import CancelToken
from webordinary.model.errors import Permanent, Transient
from webordinary.model.jobs import JobOutcome
from webordinary.model.names import ProjectUser

pytestmark = pytest.mark.needs("git")
ANN = ProjectUser("amelia", "ann")


@pytest.fixture
def world(tmp_path: Path) -> OriginWithWorkers:
    return OriginWithWorkers(tmp_path)


class Filming:
    """An agent that puts a film onto the site, and a smaller one if it is asked again."""

    def __init__(self, sizes: list[int]) -> None:
        self.notes: list[str] = []
        self._sizes = sizes

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        self.notes.append(task.note)
        with (task.workspace / "film.mp4").open("wb") as film:
            film.truncate(self._sizes.pop(0))
        return Changed("The film is on the site.")


def test_an_object_that_would_fill_the_memory_ends_git_and_not_the_machine(
    world: OriginWithWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit of 300 MB, packed into 300 kB; git reads it whole to find its parents."""
    head = f"tree {world.git('rev-parse', 'main^{tree}')}\nauthor P <p@x> 0 +0000\ncommitter P <p@x> 0 +0000\n\n"
    made = subprocess.run(
        ["git", "-C", str(world.origin), "hash-object", "-w", "-t", "commit", "--stdin"],
        input=head.encode() + b"x" * 300_000_000, capture_output=True, check=True,
    )  # fmt: skip
    world.git("update-ref", "refs/heads/main", made.stdout.decode().strip())
    monkeypatch.setattr(command, "MEMORY_BYTES", 100_000_000)
    with pytest.raises(Transient, match="ut of memory"):
        world.worker().prepare(work(world.project, "job-1"))


def test_a_huge_file_is_refused_in_words_for_the_customer(tmp_path: Path) -> None:
    amelia, agent = SampleProject(tmp_path), Filming([LARGEST_FILE_BYTES + 1, LARGEST_FILE_BYTES + 2])
    settled = amelia.send("add my film", "job-1", deps=replace(amelia.deps(), agents={"builtin": agent}))
    assert settled.outcome is JobOutcome.FAILED
    assert "film.mp4 has 50 MB, and files over 50 MB cannot be part of the site" in settled.result.summary
    assert "film.mp4" in agent.notes[1]
    assert amelia.jobs_on_main() == []
    settled = amelia.send("change the homepage title to Spring Sale", "job-2")
    assert settled.result.changed_files == ("index.html",)


def test_an_agent_that_hears_of_it_can_do_better(tmp_path: Path) -> None:
    amelia, agent = SampleProject(tmp_path), Filming([LARGEST_FILE_BYTES + 1, 1000])
    settled = amelia.send("add my film", "job-1", deps=replace(amelia.deps(), agents={"builtin": agent}))
    assert settled.outcome is JobOutcome.SUCCEEDED
    assert settled.result.changed_files == ("film.mp4",)


def person_commits(world: OriginWithWorkers, *commands: list[str]) -> None:
    clone = world.clone("person")
    person = ["-c", "user.name=P", "-c", "user.email=p@example.com", "-c", "protocol.file.allow=always"]
    for args in (*commands, ["add", "."], ["commit", "-qm", "By hand"], ["push", "-q", "origin", "HEAD:main"]):
        subprocess.run(["git", "-C", str(clone), *person, *args], check=True, capture_output=True)


def origins(world: OriginWithWorkers) -> Origins:
    return Origins(world.folder / "origins", world.folder / "mirrors")


def test_a_repository_with_a_submodule_is_refused_at_onboarding_and_by_the_worker(world: OriginWithWorkers) -> None:
    origins(world).check(world.project)
    person_commits(world, ["submodule", "add", "-q", str(world.origin), "theme"])
    with pytest.raises(Permanent, match="theme is a submodule: put its files into"):
        origins(world).check(world.project)
    amelia = SampleProject(world.folder / "sample")
    amelia.project, amelia.origin = world.project, world.origin
    with pytest.raises(Permanent, match="theme is a submodule"):
        amelia.send("change the homepage title to Spring Sale", "job-1")


def test_a_repository_with_lfs_is_refused_at_onboarding_and_by_the_worker(world: OriginWithWorkers) -> None:
    clone = world.folder / "person"
    subprocess.run(["git", "clone", "-q", str(world.origin), str(clone)], check=True)
    (clone / "pictures").mkdir()
    (clone / "pictures" / ".gitattributes").write_text("*.jpg filter=lfs diff=lfs merge=lfs -text\n")
    person = ["-c", "user.name=P", "-c", "user.email=p@example.com"]
    for args in (["add", "."], ["commit", "-qm", "By hand"], ["push", "-q", "origin", "HEAD:main"]):
        subprocess.run(["git", "-C", str(clone), *person, *args], check=True, capture_output=True)
    with pytest.raises(Permanent, match=r"pictures/\.gitattributes sends files to Git LFS"):
        origins(world).check(world.project)
    amelia = SampleProject(world.folder / "sample")
    amelia.project, amelia.origin = world.project, world.origin
    with pytest.raises(Permanent, match="Git LFS"):
        amelia.send("change the homepage title to Spring Sale", "job-1")


def cached(world: OriginWithWorkers, limit: int, busy: set[ProjectUser]) -> GitRepository:
    cache = WorkspaceCache(world.folder / "w-1", limit, lambda key: key in busy)
    return GitRepository(world.folder / "mirrors", world.folder / "w-1", "w-1", cache=cache)


def kept(world: OriginWithWorkers) -> set[str]:
    return {path.name for path in (world.folder / "w-1" / "amelia").iterdir()}


def use(world: OriginWithWorkers, repository: GitRepository, key: ProjectUser, seconds_ago: int) -> None:
    workspace = repository.prepare(work(world.project, f"job-{key.user_id}", key=key, thread=OTHER_THREAD))
    mark = workspace.path.parent / "used"
    when = mark.stat().st_mtime - seconds_ago
    os.utime(mark, (when, when))


def test_the_least_recently_used_workspace_goes_first(world: OriginWithWorkers) -> None:
    one = cached(world, limit=1, busy=set())
    use(world, one, SCOTT, 1000)
    assert kept(world) == {"scott"}, "the one that was just made stays, whatever its size"
    one_size = size_of(world.folder / "w-1" / "amelia" / "scott")
    roomy = cached(world, limit=one_size * 5 // 2, busy=set())
    use(world, roomy, ZOE, 2000)
    assert kept(world) == {"scott", "zoe"}
    use(world, roomy, ANN, 0)
    assert kept(world) == {"ann", "scott"}, "zoe's was not used for longest"
    assert not list((world.folder / "w-1").glob(".gone-*"))


def test_a_workspace_in_work_is_never_taken_away(world: OriginWithWorkers) -> None:
    one = cached(world, limit=1, busy={SCOTT})
    use(world, one, SCOTT, 20)
    use(world, one, ZOE, 10)
    use(world, one, ANN, 0)
    assert kept(world) == {"ann", "scott"}


def test_a_workspace_that_was_taken_away_is_made_again(world: OriginWithWorkers) -> None:
    one = cached(world, limit=1, busy=set())
    use(world, one, SCOTT, 20)
    use(world, one, ZOE, 10)
    assert kept(world) == {"zoe"}
    one.save(changed(one, one.prepare(work(world.project, "job-9")), "about.html", "Us\n"))


def test_a_worn_workspace_is_made_anew(world: OriginWithWorkers) -> None:
    one = world.worker()
    first = one.prepare(work(world.project))
    loose = first.path.parent / "git" / "objects" / "17"
    loose.mkdir(exist_ok=True)
    for number in range(30):
        (loose / f"{number:038x}").touch()
    one.prepare(work(world.project, "job-2"))
    assert not loose.exists() or len(list(loose.iterdir())) < 30


def scattered(world: OriginWithWorkers) -> Path:
    """A mirror with as many packs as fetches, one of them with a commit that no branch names any more."""
    world.worker().prepare(work(world.project))
    mirror = world.folder / "mirrors" / "amelia.git"
    clone = world.clone("person")
    person = ["-c", "user.name=P", "-c", "user.email=p@example.com"]
    for number in range(MANY_PACKS + 1):
        (clone / "n.html").write_text(str(number))
        for args in (["add", "."], ["commit", "-qm", f"{number}"], ["push", "-q", "-f", "origin", "HEAD:draft"]):
            subprocess.run(["git", "-C", str(clone), *person, *args], check=True, capture_output=True)
        fetch = ["-c", "fetch.unpackLimit=1", "fetch", "-q", str(world.origin), "+refs/*:refs/*"]
        subprocess.run(["git", "-C", str(mirror), *fetch], check=True)
        subprocess.run(["git", "-C", str(clone), "reset", "-q", "--hard", "origin/main"], check=True)
    return mirror


def test_a_scattered_mirror_is_packed_and_loses_nothing_that_workspaces_borrow(world: OriginWithWorkers) -> None:
    mirror = scattered(world)
    listed = ["git", "-C", str(mirror), "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]
    before = set(subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split())
    assert maintain_mirrors(world.folder / "mirrors", world.folder) == "packed the mirror of amelia"
    after = set(subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split())
    assert after == before
    assert len(list((mirror / "objects" / "pack").glob("*.pack"))) == 1
    assert maintain_mirrors(world.folder / "mirrors", world.folder) == ""
    one = world.worker()
    one.save(changed(one, one.prepare(work(world.project)), "about.html", "Us\n"))


def test_an_origin_of_many_pushes_is_packed_and_keeps_its_history(world: OriginWithWorkers) -> None:
    harden_origin(world.origin)
    one = world.worker()
    workspace = one.prepare(work(world.project))
    for number in range(MANY_PUSHES + 1):
        one.save(changed(one, workspace, "about.html", f"Us {number}\n"))
    packs, origins = world.origin / "objects" / "pack", world.origin.parent
    assert len(list(packs.glob("*.pack"))) > MANY_PUSHES
    assert tend_origins(origins) == 1
    # Unreachable objects of the last two weeks are in a pack of their own, marked by a file of their times.
    reachable = [pack for pack in packs.glob("*.pack") if not pack.with_suffix(".mtimes").exists()]
    assert len(reachable) == 1
    assert tend_origins(origins) == 0
    subprocess.run(["git", "-C", str(world.origin), "fsck", "--strict"], check=True, capture_output=True)
    one.save(changed(one, one.prepare(work(world.project)), "about.html", "Us again\n"))


def test_origins_of_an_earlier_version_are_hardened_once(world: OriginWithWorkers) -> None:
    own = ["git", "-C", str(world.origin), "config"]
    subprocess.run([*own, "core.fsyncMethod", "batch"], check=True)
    assert (harden_origins(world.origin.parent), harden_origins(world.origin.parent)) == (1, 0)
    listed = subprocess.run([*own, "--list"], check=True, capture_output=True, text=True).stdout
    settings = dict(line.split("=", 1) for line in listed.splitlines())
    assert (settings["core.fsync"], settings["core.fsyncmethod"], settings["core.bare"]) == ("all", "fsync", "true")


def test_a_mirror_goes_only_when_no_workspace_borrows_from_it(world: OriginWithWorkers) -> None:
    world.worker("w1").prepare(work(world.project))
    lock = world.folder / "mirrors" / ".amelia.lock"
    long_ago = lock.stat().st_mtime - UNUSED_SECONDS - 1
    os.utime(lock, (long_ago, long_ago))
    assert maintain_mirrors(world.folder / "mirrors", world.folder) == ""
    (world.folder / "w1").rename(world.folder / "gone")
    assert "removed" in maintain_mirrors(world.folder / "mirrors", world.folder)
    assert world.worker("w2").prepare(work(world.project, worker="w2", fence=11)).path.is_dir()


def test_what_killed_git_processes_left_is_cleared_at_start_and_what_is_under_way_stays(tmp_path: Path) -> None:
    objects = tmp_path / "amelia.git" / "objects"
    (objects / "pack").mkdir(parents=True)
    left = (objects / "tmp_objdir-incoming-a", objects / "pack" / "tmp_pack_b", objects / "pack" / ".tmp-1-pack-c.pack")
    kept = (objects / "tmp_objdir-incoming-young", objects / "pack" / "pack-d.pack")
    left[0].mkdir()
    kept[0].mkdir()
    for path in (*left[1:], kept[1]):
        path.touch()
    for path in (*left, kept[1]):
        os.utime(path, (0, 0))
    assert clear_leftovers(tmp_path, datetime.now(UTC)) == len(left)
    assert [path.exists() for path in (*left, *kept)] == [False, False, False, True, True]


@contextmanager
def at_work(*args: str, cwd: Path) -> Iterator[None]:
    """A process that stands in this folder, or names it, and lives."""
    with subprocess.Popen(
        ["cat", *args], cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        yield
        assert process.poll() is None
        process.communicate()


def test_a_clock_that_jumps_ahead_removes_no_lock_of_a_git_that_lives(world: OriginWithWorkers) -> None:
    """As after a jump, every file is long past its age."""
    lock = world.origin / "refs" / "heads" / "main.lock"
    lock.touch()
    os.utime(lock, (0, 0))
    with at_work(cwd=world.origin):  # as a receive-pack
        assert remove_stale_locks(str(world.origin)) == 0
    assert remove_stale_locks(str(world.origin)) == 1


def test_a_clock_that_jumps_ahead_removes_no_mirror_and_no_push_under_way(world: OriginWithWorkers) -> None:
    world.worker("w1").prepare(work(world.project))
    mirrors, mirror = world.folder / "mirrors", world.folder / "mirrors" / "amelia.git"
    left = mirror / "objects" / "tmp_objdir-incoming-a"
    left.mkdir()
    for path in (left, mirrors / ".amelia.lock"):
        os.utime(path, (0, 0))
    (world.folder / "w1").rename(world.folder / "gone")
    with at_work("-", str(mirror), cwd=world.folder):  # as a clone of it
        assert clear_leftovers(mirrors, datetime.now(UTC)) == 0
        assert maintain_mirrors(mirrors, world.folder) == ""
    assert clear_leftovers(mirrors, datetime.now(UTC)) == 1
    assert "removed" in maintain_mirrors(mirrors, world.folder)
