"""Deployment to the edit site, and publication, over fake ports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.cancel_token import FakeCancelToken
from tests.fakes.events import EventRecorder
from tests.fakes.releases import MemoryReleases
from tests.fakes.repositories import MAIN, MemoryOrigin, MemoryRepository
from tests.unit.jobs.fixtures import (
    OTHER_THREAD,
    SCOTT,
    THREAD,
    ZOE,
    CrashingBefore,
    JobCrash,
    TickingClock,
    leases,
    started,
    work,
)
from webordinary.adapters.git.workspaces import project_fence_ref
from webordinary.jobs.deploy import EditDeployment, SiteDeployer
from webordinary.jobs.edit import deploy_edit
from webordinary.jobs.page_checks import Flawed
from webordinary.jobs.ports import no_check
from webordinary.jobs.run import JobDeps, JobRun
from webordinary.jobs.site_files import Release, Stage
from webordinary.jobs.source import (
    BuildFailed,
    Built,
    ChangeMessage,
    MergeConflict,
    SourceTree,
    Workspace,
)
from webordinary.model.claims import CancelToken, OperatorToken, ProjectLease
from webordinary.model.errors import ClaimLost, Interrupted, MustWait
from webordinary.model.mail import Command, Instruction
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, SenderRole

PROJECT = Project("amelia", "memory")
FILES = {"index.html": "Pots", "about.html": "About"}
STEPS = 12


Build = Callable[[SourceTree, Path, Path | None], Built | BuildFailed]


def build(tree: SourceTree, into: Path, previous: Path | None) -> Built | BuildFailed:
    return BuildFailed("no home page") if "index.html" not in tree.files else Built(len(tree.files), "test")


@dataclass
class FunctionBuilder:
    """A builder that is one function."""

    function: Build

    def fits(self, tree: SourceTree) -> bool:
        return True

    def build(self, tree: SourceTree, into: Path, previous: Path | None, token: CancelToken) -> Built | BuildFailed:
        return self.function(tree, into, previous)


def deploy(
    deployer: SiteDeployer, workspace: Workspace, token: FakeCancelToken, build: Build = build
) -> EditDeployment | MergeConflict | BuildFailed | Flawed:
    """Deploy a committed change over the ports of this deployer."""
    deps = JobDeps(
        deployer.workspaces, deployer.main, deployer.main, deployer.leases, deployer.releases, agents={},  # type: ignore[arg-type]
        builders={"test": FunctionBuilder(build)}, project_of=lambda _: PROJECT, attachment_path=lambda _: Path(),
        site_url=lambda project_id, stage: f"http://{stage}.{project_id}/",
        role_of=lambda *_: SenderRole.BOTH,
    )  # fmt: skip
    begun = started(token.job_id, worker=token.worker, fence=token.fence)
    instruction = Instruction("please", "", "s@e.com", Command.EDIT)
    return deploy_edit(
        JobRun(begun, instruction, PROJECT, token, deps, deployer, EventRecorder(), deployer.now), workspace
    )


class SharedProject:
    """One project, its origin and its releases, as all workers see them."""

    def __init__(self) -> None:
        self.origin = MemoryOrigin("amelia", FILES)
        self.releases = MemoryReleases()
        self.dead: set[str] = set()
        self.leases = leases(self.dead)

    def repository(self) -> MemoryRepository:
        return MemoryRepository({"amelia": self.origin})

    def deployer(self, repository: MemoryRepository, count: list[int] | None = None, crash_at: int = 0) -> SiteDeployer:
        count = count if count is not None else [0]
        ports: list[Any] = [repository, repository, self.leases, self.releases]
        if crash_at:
            ports = [CrashingBefore(port, count, crash_at) for port in ports]
        workspaces, main, leases, releases = ports
        return SiteDeployer(workspaces, main, leases, releases, TickingClock(), lambda seconds: None)

    def main(self) -> dict[str, str]:
        return dict(self.origin.commits[self.origin.refs[MAIN]].files)

    def jobs_on_main(self) -> list[str]:
        return [c.note.job_id for c in self.origin.history(self.origin.refs[MAIN]) if c.note.job_id]


def edited(
    repository: MemoryRepository, job_id: str, files: dict[str, str], key: ProjectUser = SCOTT,
    thread: str = THREAD, worker: str = "w-1", fence: int = 10,
) -> Workspace:  # fmt: skip
    workspace = repository.prepare(work(PROJECT, job_id, key=key, thread=thread, worker=worker, fence=fence))
    if workspace.made is None:
        repository.files_at(workspace.path).update(files)
        message = ChangeMessage("please", "done", job_id, thread, key.user_id, "s@e.com")
        workspace = replace(workspace, made=repository.commit(workspace, message))
    return workspace


def test_a_change_reaches_main_and_the_edit_site() -> None:
    site, token = SharedProject(), FakeCancelToken()
    repository = site.repository()
    outcome = deploy(site.deployer(repository), edited(repository, "job-1", {"index.html": "Sale"}), token)
    assert isinstance(outcome, EditDeployment)
    assert outcome.flipped
    assert site.main()["index.html"] == "Sale"
    assert site.releases.current("amelia", Stage.EDIT) == outcome.release.path


@pytest.mark.parametrize("crash_at", range(1, STEPS))
def test_a_crash_between_any_two_steps_publishes_once_when_run_again(crash_at: int) -> None:
    site = SharedProject()
    count = [0]
    repository = site.repository()
    workspace = edited(repository, "job-1", {"index.html": "Sale"})
    try:
        deploy(site.deployer(repository, count, crash_at), workspace, FakeCancelToken())
    except JobCrash:
        site.dead.add("w-1")
    successor = site.repository()
    workspace = edited(successor, "job-1", {"index.html": "Sale"}, worker="w-2", fence=11)
    outcome = deploy(site.deployer(successor), workspace, FakeCancelToken("w-2", 11))
    assert isinstance(outcome, EditDeployment)
    assert site.jobs_on_main() == ["job-1"]
    assert list(site.releases.finished.values()) == [1]
    assert site.releases.current("amelia", Stage.EDIT) == outcome.release.path


def test_all_steps_are_crashed_by_the_test_above() -> None:
    site, count = SharedProject(), [0]
    repository = site.repository()
    workspace = edited(repository, "job-1", {"index.html": "Sale"})
    deploy(site.deployer(repository, count, crash_at=1_000), workspace, FakeCancelToken())
    assert count[0] < STEPS


def test_what_is_on_main_already_moves_the_fences_before_it_is_shown() -> None:
    site = SharedProject()
    repository = site.repository()
    deploy(site.deployer(repository), edited(repository, "job-1", {"index.html": "Sale"}), FakeCancelToken())
    before = site.origin.marks[project_fence_ref("amelia")]
    again = edited(repository, "job-1", {}, fence=11)
    assert again.on_main
    deploy(site.deployer(repository), again, FakeCancelToken("w-1", 11))
    assert site.origin.marks[project_fence_ref("amelia")].fence > before.fence


def test_two_users_at_once_both_get_their_change() -> None:
    site = SharedProject()
    one, two = site.repository(), site.repository()
    first = edited(one, "job-1", {"index.html": "Sale"})
    second = edited(two, "job-2", {"about.html": "Us"}, key=ZOE, thread=OTHER_THREAD, worker="w-2")
    deploy(site.deployer(one), first, FakeCancelToken())
    deploy(site.deployer(two), second, FakeCancelToken("w-2"))
    assert site.main() == {"index.html": "Sale", "about.html": "Us"}
    assert site.jobs_on_main() == ["job-2", "job-1"]


def test_two_changes_of_the_same_place_conflict_and_nothing_changes() -> None:
    site = SharedProject()
    one, two = site.repository(), site.repository()
    first = edited(one, "job-1", {"index.html": "Sale"})
    second = edited(two, "job-2", {"index.html": "Autumn"}, key=ZOE, thread=OTHER_THREAD, worker="w-2")
    deploy(site.deployer(one), first, FakeCancelToken())
    shown = site.releases.current("amelia", Stage.EDIT)
    assert deploy(site.deployer(two), second, FakeCancelToken("w-2")) == MergeConflict(("index.html",))
    assert site.jobs_on_main() == ["job-1"]
    assert site.releases.current("amelia", Stage.EDIT) == shown


def test_a_failed_build_leaves_main_and_the_site_alone() -> None:
    site = SharedProject()
    repository = site.repository()
    workspace = repository.prepare(work(PROJECT))
    del repository.files_at(workspace.path)["index.html"]
    made = repository.commit(workspace, ChangeMessage("x", "y", "job-1", THREAD, "scott", "s@e.com"))
    outcome = deploy(site.deployer(repository), replace(workspace, made=made), FakeCancelToken())
    assert isinstance(outcome, BuildFailed)
    assert site.main() == FILES
    assert site.releases.current("amelia", Stage.EDIT) is None
    assert site.leases.take("amelia", FakeCancelToken("w-2"), TickingClock()()) is not None


def test_a_worker_whose_claim_moved_on_changes_nothing() -> None:
    site = SharedProject()
    old, new = site.repository(), site.repository()
    stale = edited(old, "job-1", {"index.html": "Old"}, fence=10)
    edited(new, "job-1", {"index.html": "New"}, worker="w-2", fence=11)
    with pytest.raises(ClaimLost):
        deploy(site.deployer(old), stale, FakeCancelToken())
    assert site.main() == FILES


def test_a_holder_that_slept_past_its_lease_cannot_push_main() -> None:
    site = SharedProject()
    old, new = site.repository(), site.repository()
    stale = edited(old, "job-1", {"index.html": "Old"})
    sleeper = site.leases.take("amelia", FakeCancelToken(), TickingClock()())
    assert sleeper
    old.enter(stale, sleeper)
    joined = old.join(stale)
    site.dead.add("w-1")
    other = edited(new, "job-2", {"about.html": "Us"}, key=ZOE, thread=OTHER_THREAD, worker="w-2")
    deploy(site.deployer(new), other, FakeCancelToken("w-2"))
    with pytest.raises(ClaimLost):
        old.push(stale, joined, sleeper)  # type: ignore[arg-type]
    assert site.jobs_on_main() == ["job-2"]


def test_while_another_worker_publishes_the_work_is_saved_and_waits() -> None:
    site = SharedProject()
    repository = site.repository()
    workspace = edited(repository, "job-1", {"index.html": "Sale"})
    assert site.leases.take("amelia", FakeCancelToken("w-9", job_id="job-9"), TickingClock()())
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            site.dead.add("w-9")

    deployer = replace(site.deployer(repository), wait=wait)
    assert isinstance(deploy(deployer, workspace, FakeCancelToken()), EditDeployment)
    assert len(waits) == 3


def test_waiting_for_the_lease_ends_with_an_interrupt() -> None:
    site, token = SharedProject(), FakeCancelToken()
    repository = site.repository()
    workspace = edited(repository, "job-1", {"index.html": "Sale"})
    assert site.leases.take("amelia", FakeCancelToken("w-9", job_id="job-9"), TickingClock()())
    deployer = replace(site.deployer(repository), wait=lambda seconds: token.end(Interrupted("another thread")))
    with pytest.raises(Interrupted):
        deploy(deployer, workspace, token)
    assert site.origin.refs[f"thread-{THREAD}"] == workspace.made.commit  # type: ignore[union-attr]


def test_who_waits_for_long_gives_its_slot_back_and_loses_nothing() -> None:
    site, clock = SharedProject(), TickingClock()
    repository = site.repository()
    workspace = edited(repository, "job-1", {"index.html": "Sale"})
    assert site.leases.take("amelia", FakeCancelToken("w-9", job_id="job-9"), clock())

    def wait(seconds: float) -> None:
        clock.time += timedelta(seconds=20)

    with pytest.raises(MustWait, match="another change of this site"):
        deploy(replace(site.deployer(repository), wait=wait, now=clock), workspace, FakeCancelToken())
    assert site.origin.refs[f"thread-{THREAD}"] == workspace.made.commit  # type: ignore[union-attr]


def overtake(site: SharedProject) -> ProjectLease:
    lease = site.leases.overtake("amelia", OperatorToken("operator"), TickingClock()())
    assert lease
    site.leases.confirm(lease)
    return lease


@pytest.mark.parametrize("failing", [False, True])
def test_an_operator_does_not_wait_for_a_build_and_who_builds_goes_on_afterwards(failing: bool) -> None:
    site = SharedProject()
    repository = site.repository()
    workspace = edited(repository, "job-1", {"index.html": "Sale"})
    main, operators = site.origin.refs["main"], []

    def slow(tree: SourceTree, into: Path, previous: Path | None) -> Built | BuildFailed:
        operators.append(overtake(site))
        return BuildFailed("its folder was swept away") if failing else build(tree, into, previous)

    deployer = site.deployer(repository)
    with pytest.raises(MustWait, match="operator"):
        deploy(deployer, workspace, FakeCancelToken(), slow)
    assert site.origin.refs["main"] == main
    assert site.origin.refs[f"thread-{THREAD}"] == workspace.made.commit  # type: ignore[union-attr]
    assert site.releases.current("amelia", Stage.EDIT) is None
    site.leases.release(operators[0])
    again = repository.prepare(workspace.work)
    assert isinstance(deploy(deployer, again, FakeCancelToken()), EditDeployment)


def test_an_operator_waits_while_something_is_being_shown() -> None:
    site = SharedProject()
    repository = site.repository()
    workspace = edited(repository, "job-1", {"index.html": "Sale"})
    asked: list[object] = []

    class Watched(MemoryReleases):
        def activate(self, release: Release, fence: int, check: Callable[[], None] = lambda: None) -> bool:
            asked.append(site.leases.overtake("amelia", OperatorToken("operator"), TickingClock()()))
            return super().activate(release, fence, check)

    deployer = replace(site.deployer(repository), releases=Watched())
    assert isinstance(deploy(deployer, workspace, FakeCancelToken()), EditDeployment)
    assert asked == [None]
    assert overtake(site)


class SlowReleases(MemoryReleases):
    """Showing takes so long that the job is told to end meanwhile."""

    def __init__(self, tell: Callable[[], None]) -> None:
        super().__init__()
        self.tell = tell

    def activate(self, release: Release, fence: int, check: Callable[[], None] = no_check) -> bool:
        self.tell()
        check()
        return super().activate(release, fence)


def test_what_main_has_is_shown_whoever_interrupts_but_not_under_a_lost_claim() -> None:
    site, token = SharedProject(), FakeCancelToken()
    repository = site.repository()
    site.releases = SlowReleases(lambda: token.end(Interrupted("another thread")))
    change = edited(repository, "job-1", {"index.html": "Sale"})
    assert isinstance(deploy(site.deployer(repository), change, token), EditDeployment)
    lost = FakeCancelToken()
    site.releases = SlowReleases(lambda: lost.end(ClaimLost(SCOTT, "w-1", 10)))
    with pytest.raises(ClaimLost):
        deploy(site.deployer(repository), edited(repository, "job-2", {"index.html": "Late"}), lost)
