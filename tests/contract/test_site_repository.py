"""Workspaces, MainBranch and LiveBranch: the same sentences hold in memory and in git, for quick and for slow jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.fakes.repositories import MemoryOrigin, MemoryRepository
from tests.unit.jobs.fixtures import OTHER_THREAD, PAGE, SCOTT, THREAD, ZOE, work

from webordinary.adapters.git import GitRepository
from webordinary.adapters.git.repository import QUICK_SECONDS
from webordinary.jobs.history import LiveState, WaitingChange
from webordinary.jobs.site_files import release_name
from webordinary.jobs.source import Change, ChangeMessage, MergeConflict, Merged, Workspace
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import ClaimLost
from webordinary.model.projects import Project
from webordinary.operations.sample import make_origin

FILES = {"index.html": PAGE, "about.html": "About\n"}
Repository = MemoryRepository | GitRepository


class RepositoryBackend(Protocol):
    project: Project

    def worker(self, name: str) -> Repository: ...
    def put(self, repository: Repository, workspace: Workspace, name: str, text: str) -> None: ...
    def get(self, repository: Repository, workspace: Workspace, name: str) -> str: ...


class InMemory:
    quick = True

    def __init__(self, folder: Path) -> None:
        self.project = Project("amelia", "memory")
        self._origins = {"amelia": MemoryOrigin("amelia", FILES)}

    def worker(self, name: str) -> MemoryRepository:
        return MemoryRepository(self._origins, quick=lambda: self.quick)

    def put(self, repository: MemoryRepository, workspace: Workspace, name: str, text: str) -> None:
        repository.files_at(workspace.path)[name] = text

    def get(self, repository: MemoryRepository, workspace: Workspace, name: str) -> str:
        return repository.files_at(workspace.path)[name]


class InMemorySlowly(InMemory):
    quick = False


class InGit:
    quick_seconds = QUICK_SECONDS

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = Project("amelia", str(folder / "origin.git"))
        make_origin(folder / "origin.git", {name: text.encode() for name, text in FILES.items()})

    def worker(self, name: str) -> GitRepository:
        return GitRepository(self.folder / "mirrors", self.folder / name, name, quick_seconds=self.quick_seconds)

    def put(self, repository: GitRepository, workspace: Workspace, name: str, text: str) -> None:
        (workspace.path / name).write_text(text)

    def get(self, repository: GitRepository, workspace: Workspace, name: str) -> str:
        return (workspace.path / name).read_text()


class InGitSlowly(InGit):
    quick_seconds = 0.0


@pytest.fixture(
    params=[
        InMemory,
        InMemorySlowly,
        pytest.param(InGit, marks=pytest.mark.needs("git")),
        pytest.param(InGitSlowly, marks=pytest.mark.needs("git")),
    ]
)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> RepositoryBackend:
    return request.param(tmp_path)


def said(job_id: str, *, undoes: str = "", unfinished: bool = False, thread: str = THREAD) -> ChangeMessage:
    return ChangeMessage("please", f"did {job_id}", job_id, thread, "scott", "s@e.com", undoes, unfinished)


def changed(
    backend: RepositoryBackend,
    repository: Repository,
    job_id: str,
    name: str,
    text: str,
    **about: Any,  # noqa: ANN401
) -> Workspace:
    workspace = repository.prepare(work(backend.project, job_id, **about))
    backend.put(repository, workspace, name, text)
    change = committed(repository, workspace, said(job_id, thread=workspace.work.thread_id))
    return replace(workspace, made=change)


def merged(repository: Repository, workspace: Workspace) -> Merged:
    joined = repository.join(workspace)
    assert isinstance(joined, Merged)
    return joined


def committed(repository: Repository, workspace: Workspace, message: ChangeMessage) -> Change:
    change = repository.commit(workspace, message)
    assert isinstance(change, Change)
    return change


def published(repository: Repository, workspace: Workspace, lease: ProjectLease) -> Merged:
    joined = brought(repository, workspace, lease)
    assert isinstance(joined, Merged)
    return joined


def brought(repository: Repository, workspace: Workspace, lease: ProjectLease) -> Merged | MergeConflict:
    """What a publisher does: again from the start when main turns out to have moved."""
    for _ in range(2):
        repository.enter(workspace, lease)
        joined = repository.join(workspace)
        if isinstance(joined, MergeConflict) or repository.push(workspace, joined, lease):
            return joined
    raise AssertionError("main moved twice")


def lease(fence: int, worker: str = "w-1") -> ProjectLease:
    return ProjectLease("amelia", worker, fence)


def test_a_new_thread_starts_from_main(backend: RepositoryBackend) -> None:
    one = backend.worker("w-1")
    workspace = one.prepare(work(backend.project))
    assert backend.get(one, workspace, "about.html") == "About\n"
    assert (workspace.made, workspace.resumed) == (None, False)


def test_nothing_changed_is_no_commit(backend: RepositoryBackend) -> None:
    one = backend.worker("w-1")
    assert one.commit(one.prepare(work(backend.project)), said("job-1")) is None


def test_a_commit_knows_its_files(backend: RepositoryBackend) -> None:
    one = backend.worker("w-1")
    workspace = changed(backend, one, "job-1", "about.html", "Us\n")
    assert workspace.made
    assert (workspace.made.summary, workspace.made.changed_files) == ("did job-1", ("about.html",))


def test_what_is_not_saved_is_gone_when_the_workspace_is_prepared_again(backend: RepositoryBackend) -> None:
    one = backend.worker("w-1")
    workspace = one.prepare(work(backend.project))
    backend.put(one, workspace, "about.html", "Half\n")
    workspace = one.prepare(work(backend.project, "job-2"))
    assert backend.get(one, workspace, "about.html") == "About\n"


def test_a_saved_change_is_found_by_the_next_worker_and_not_made_again(backend: RepositoryBackend) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    saved = changed(backend, one, "job-1", "about.html", "Us\n")
    one.save(saved)
    found = two.prepare(work(backend.project, worker="w-2", fence=11))
    assert found.made == saved.made
    assert backend.get(two, found, "about.html") == "Us\n"


def test_unfinished_work_goes_on_where_it_was_and_becomes_one_commit(backend: RepositoryBackend) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    workspace = one.prepare(work(backend.project))
    backend.put(one, workspace, "about.html", "Half\n")
    one.commit(workspace, said("job-1", unfinished=True))
    one.save(workspace)
    resumed = two.prepare(work(backend.project, worker="w-2", fence=11))
    assert resumed.resumed
    assert backend.get(two, resumed, "about.html") == "Half\n"
    change = committed(two, resumed, said("job-1"))
    published(two, replace(resumed, made=change), lease(1, "w-2"))
    later = two.prepare(work(backend.project, "job-2", worker="w-2", fence=11))
    assert two.changes(later)[0].change.commit == change.commit


def test_what_another_job_left_unfinished_is_not_taken_over(backend: RepositoryBackend) -> None:
    one = backend.worker("w-1")
    workspace = one.prepare(work(backend.project))
    backend.put(one, workspace, "about.html", "Half\n")
    one.commit(workspace, said("job-1", unfinished=True))
    one.save(workspace)
    other = one.prepare(work(backend.project, "job-2"))
    assert backend.get(one, other, "about.html") == "About\n"


def test_a_worker_with_an_old_fence_cannot_save(backend: RepositoryBackend) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    stale = changed(backend, one, "job-1", "about.html", "Old\n", fence=10)
    two.prepare(work(backend.project, worker="w-2", fence=11))
    with pytest.raises(ClaimLost):
        one.save(stale)
    assert two.prepare(work(backend.project, worker="w-2", fence=11)).made is None


def test_a_worker_with_an_old_fence_cannot_even_prepare(backend: RepositoryBackend) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    two.prepare(work(backend.project, worker="w-2", fence=11))
    with pytest.raises(ClaimLost):
        one.prepare(work(backend.project, fence=10))


def test_a_published_change_is_on_main_for_everybody(backend: RepositoryBackend) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    published(one, changed(backend, one, "job-1", "about.html", "Us\n"), lease(1))
    other = two.prepare(work(backend.project, "job-9", key=ZOE, thread=OTHER_THREAD, worker="w-2"))
    assert backend.get(two, other, "about.html") == "Us\n"


def test_a_published_change_is_recognised_when_its_job_runs_again(backend: RepositoryBackend) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    joined = published(one, changed(backend, one, "job-1", "about.html", "Us\n"), lease(1))
    again = two.prepare(work(backend.project, worker="w-2", fence=11))
    assert again.on_main
    assert again.made == joined.change
    assert published(two, again, lease(2, "w-2")).on_main


def test_an_old_thread_goes_on_from_the_site_as_it_is_now(backend: RepositoryBackend) -> None:
    one = backend.worker("w-1")
    published(one, changed(backend, one, "job-1", "about.html", "Us\n"), lease(1))
    published(one, changed(backend, one, "job-2", "about.html", "All of us\n", thread=OTHER_THREAD), lease(2))
    reply = one.prepare(work(backend.project, "job-3"))
    assert backend.get(one, reply, "about.html") == "All of us\n"


def test_changes_of_different_files_join(backend: RepositoryBackend) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    mine = changed(backend, one, "job-1", "about.html", "Us\n")
    theirs = changed(backend, two, "job-2", "news.html", "New\n", key=ZOE, thread=OTHER_THREAD, worker="w-2")
    published(one, mine, lease(1))
    joined = published(two, theirs, lease(2, "w-2"))
    assert set(joined.tree.files) == {"index.html", "about.html", "news.html"}
    assert backend.get(two, theirs, "about.html") == "Us\n"


def test_changes_of_the_same_line_conflict_and_can_be_abandoned(backend: RepositoryBackend) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    mine = changed(backend, one, "job-1", "about.html", "Us\n")
    theirs = changed(backend, two, "job-2", "about.html", "Them\n", key=ZOE, thread=OTHER_THREAD, worker="w-2")
    published(one, mine, lease(1))
    assert brought(two, theirs, lease(2, "w-2")) == MergeConflict(("about.html",))
    two.abandon(theirs)
    fresh = two.prepare(work(backend.project, "job-2", key=ZOE, thread=OTHER_THREAD, worker="w-2"))
    assert fresh.made is None
    assert backend.get(two, fresh, "about.html") == "Us\n"


def test_main_that_moved_in_the_meantime_is_not_overwritten(backend: RepositoryBackend) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    mine = changed(backend, one, "job-1", "about.html", "Us\n")
    theirs = changed(backend, two, "job-2", "news.html", "New\n", key=ZOE, thread=OTHER_THREAD, worker="w-2")
    one.enter(mine, lease(5))
    joined = merged(one, mine)
    published(two, theirs, lease(5, "w-2"))  # the same fence: only main itself can tell
    assert not one.push(mine, joined, lease(5))
    assert set(published(one, mine, lease(6)).tree.files) == {"index.html", "about.html", "news.html"}


def test_a_publisher_with_an_old_lease_changes_nothing(backend: RepositoryBackend) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    mine = changed(backend, one, "job-1", "about.html", "Us\n")
    theirs = changed(backend, two, "job-2", "news.html", "New\n", key=ZOE, thread=OTHER_THREAD, worker="w-2")
    one.enter(mine, lease(5))
    joined = merged(one, mine)
    published(two, theirs, lease(6, "w-2"))
    with pytest.raises(ClaimLost):
        one.push(mine, joined, lease(5))
    with pytest.raises(ClaimLost):
        brought(one, mine, lease(5))


def test_two_publishers_who_both_believe_to_hold_the_lease_lose_no_change(backend: RepositoryBackend) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    mine = changed(backend, one, "job-1", "about.html", "Us\n")
    theirs = changed(backend, two, "job-2", "news.html", "New\n", key=ZOE, thread=OTHER_THREAD, worker="w-2")
    two.enter(theirs, lease(6, "w-2"))
    joined = merged(two, theirs)
    try:
        published(one, mine, lease(5))  # it woke up late, and nobody with a higher fence has spoken yet, or has
    except ClaimLost:
        assert two.push(theirs, joined, lease(6, "w-2"))
        return
    assert not two.push(theirs, joined, lease(6, "w-2"))
    assert set(published(two, theirs, lease(6, "w-2")).tree.files) == {"index.html", "about.html", "news.html"}


def test_a_change_that_is_on_main_already_is_shown_only_after_older_leases_are_shut_out(
    backend: RepositoryBackend,
) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    published(one, changed(backend, one, "job-1", "about.html", "Us\n"), lease(5))
    late = changed(backend, one, "job-2", "news.html", "New\n", key=ZOE, thread=OTHER_THREAD)
    one.enter(late, lease(6))
    joined = merged(one, late)
    again = two.prepare(work(backend.project, worker="w-2", fence=11))
    assert published(two, again, lease(7, "w-2")).on_main
    with pytest.raises(ClaimLost):
        one.push(late, joined, lease(6))


def test_undo_takes_back_the_threads_last_change_and_then_the_one_before(backend: RepositoryBackend) -> None:
    one = backend.worker("w-1")
    first = published(one, changed(backend, one, "job-1", "about.html", "Us\n"), lease(1)).change
    second = published(one, changed(backend, one, "job-2", "about.html", "All\n"), lease(2)).change
    for number, expected in ((3, second), (4, first)):
        workspace = one.prepare(work(backend.project, f"job-{number}"))
        last = next(past.change for past in one.changes(workspace) if past.stands)
        assert last == expected
        assert one.revert(workspace, last) is None
        change = committed(one, workspace, said(f"job-{number}", undoes=last.commit))
        published(one, replace(workspace, made=change), lease(number))
    workspace = one.prepare(work(backend.project, "job-5"))
    assert [past.stands for past in one.changes(workspace)] == [False, False]
    assert [past.job_id for past in one.changes(workspace)] == ["job-2", "job-1"]
    assert backend.get(one, workspace, "about.html") == "About\n"


def publication(job_id: str, state: LiveState, picks: Sequence[WaitingChange] | None) -> ChangeMessage:
    brought = state.waiting if picks is None else picks
    commits = tuple(one.commit for one in brought if not one.undoes)
    undone = tuple(one.undoes for one in brought if one.undoes)
    return replace(said(job_id), publishes=commits, takes_back=undone)


def made_live(
    backend: RepositoryBackend, repository: Repository, job_id: str, fence: int, *threads: str, public: str = ""
) -> tuple[LiveState, Merged]:
    """Publish these threads, or everything; what was compared before, and what came of it."""
    workspace = repository.prepare(work(backend.project, job_id))
    state = repository.compare(workspace, public)
    picks = tuple(one for one in state.waiting if one.thread_id in threads) if threads else None
    merged = repository.bring(workspace, state, picks, publication(job_id, state, picks))
    assert isinstance(merged, Merged)
    assert repository.push_live(workspace, merged, lease(fence))
    return state, merged


def compared(backend: RepositoryBackend, repository: Repository, public: str = "", fence: int = 10) -> LiveState:
    return repository.compare(repository.prepare(work(backend.project, "job-99", fence=fence)), public)


def waiting_in(state: LiveState) -> list[str]:
    return [one.words for one in state.waiting]


def test_live_begins_before_the_first_change_of_a_site_that_was_never_public(backend: RepositoryBackend) -> None:
    one = backend.worker("w-1")
    nothing = compared(backend, one)
    assert (nothing.head, nothing.begun, nothing.waiting) == (nothing.main, False, ())
    published(one, changed(backend, one, "job-1", "about.html", "Us\n"), lease(1))
    published(one, changed(backend, one, "job-2", "news.html", "New\n", thread=OTHER_THREAD), lease(2))
    state = compared(backend, one)
    assert (state.head, state.begun) == (nothing.main, False)
    assert waiting_in(state) == ["did job-1", "did job-2"]
    assert [one.customer for one in state.waiting] == ["scott", "scott"]
    assert [one.files for one in state.waiting] == [("about.html",), ("news.html",)]


def test_live_begins_at_what_is_public_already(backend: RepositoryBackend) -> None:
    one = backend.worker("w-1")
    public = published(one, changed(backend, one, "job-1", "about.html", "Us\n"), lease(1))
    published(one, changed(backend, one, "job-2", "news.html", "New\n", thread=OTHER_THREAD), lease(2))
    state = compared(backend, one, public=release_name(public.head))
    assert state.head == public.head
    assert waiting_in(state) == ["did job-2"]


def test_one_threads_changes_go_live_without_those_of_another(backend: RepositoryBackend) -> None:
    one = backend.worker("w-1")
    published(one, changed(backend, one, "job-1", "about.html", "Us\n"), lease(1))
    published(one, changed(backend, one, "job-2", "news.html", "New\n", thread=OTHER_THREAD), lease(2))
    published(one, changed(backend, one, "job-3", "index.html", "Home\n"), lease(3))
    _, merged = made_live(backend, one, "job-4", 4, THREAD)
    assert set(merged.tree.files) == {"index.html", "about.html"}
    assert (merged.on_main, merged.like_main) == (False, "")
    state = compared(backend, one)
    assert (state.head, waiting_in(state)) == (merged.head, ["did job-2"])
    _, merged = made_live(backend, one, "job-5", 5, OTHER_THREAD)
    assert merged.like_main == compared(backend, one).main, "both lines have the same content now"
    assert compared(backend, one).waiting == ()


def test_what_is_saved_after_a_preview_is_the_threads_work(backend: RepositoryBackend) -> None:
    one = backend.worker("w-1")
    workspace = changed(backend, one, "job-1", "about.html", "Us\n")
    published(one, workspace, lease(1))
    state = one.compare(workspace, "")
    preview = replace(publication("job-1", state, state.waiting), summary="Shown in a preview.")
    assert isinstance(one.bring(workspace, state, state.waiting, preview), Merged)
    one.save(workspace)
    again = backend.worker("w-2").prepare(work(backend.project, "job-1", worker="w-2", fence=11))
    assert again.on_main
    assert again.made
    assert again.made.summary != preview.summary


def test_everything_goes_live_at_once(backend: RepositoryBackend) -> None:
    one = backend.worker("w-1")
    published(one, changed(backend, one, "job-1", "about.html", "Us\n"), lease(1))
    made_live(backend, one, "job-2", 2, THREAD)
    published(one, changed(backend, one, "job-3", "about.html", "All of us\n", thread=OTHER_THREAD), lease(3))
    _, merged = made_live(backend, one, "job-4", 4)
    assert merged.like_main
    assert compared(backend, one).waiting == ()
    published(one, changed(backend, one, "job-5", "news.html", "New\n"), lease(5))
    assert waiting_in(compared(backend, one)) == ["did job-5"]


def test_changes_of_the_same_lines_cannot_go_live_one_without_the_other(backend: RepositoryBackend) -> None:
    one = backend.worker("w-1")
    published(one, changed(backend, one, "job-1", "about.html", "Us\n", thread=OTHER_THREAD), lease(1))
    published(one, changed(backend, one, "job-2", "about.html", "All of us\n"), lease(2))
    workspace = one.prepare(work(backend.project, "job-3"))
    state = one.compare(workspace, "")
    [_, mine] = state.waiting
    assert one.bring(workspace, state, [mine], publication("job-3", state, [mine])) == MergeConflict(("about.html",))
    both = one.bring(workspace, state, state.waiting, publication("job-3", state, state.waiting))
    assert isinstance(both, Merged)
    assert backend.get(one, workspace, "about.html") == "All of us\n"


def test_a_publication_is_recognised_when_its_job_runs_again_also_below_a_later_one(backend: RepositoryBackend) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    published(one, changed(backend, one, "job-1", "about.html", "Us\n"), lease(1))
    published(one, changed(backend, one, "job-2", "news.html", "New\n", thread=OTHER_THREAD), lease(2))
    before, first = made_live(backend, one, "job-3", 3, THREAD)
    _, later = made_live(backend, one, "job-4", 4, OTHER_THREAD)
    again = two.prepare(work(backend.project, "job-3", worker="w-2", fence=11))
    state = two.compare(again, "")
    assert (state.made, state.head) == (first.head, later.head)
    assert state.brought == before.waiting[:1]
    merged = two.bring(again, state, (), said("job-3"))
    assert isinstance(merged, Merged)
    assert (merged.head, merged.on_main) == (later.head, True)
    assert two.push_live(again, merged, lease(5, "w-2"))
    assert compared(backend, one, fence=12).head == later.head


def test_a_publisher_with_an_old_claim_or_lease_does_not_move_live(backend: RepositoryBackend) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    published(one, changed(backend, one, "job-1", "about.html", "Us\n"), lease(1))
    stale = one.prepare(work(backend.project, "job-2"))
    state = one.compare(stale, "")
    merged = one.bring(stale, state, state.waiting, publication("job-2", state, state.waiting))
    assert isinstance(merged, Merged)
    two.prepare(work(backend.project, "job-2", worker="w-2", fence=11))
    with pytest.raises(ClaimLost):
        one.push_live(stale, merged, lease(9))
    zoe = two.prepare(work(backend.project, "job-8", key=ZOE, thread=OTHER_THREAD, worker="w-2"))
    merged = two.bring(zoe, state, state.waiting, publication("job-8", state, state.waiting))
    assert isinstance(merged, Merged)
    published(one, changed(backend, one, "job-9", "news.html", "New\n", fence=12), lease(7))
    with pytest.raises(ClaimLost):
        two.push_live(zoe, merged, lease(6, "w-2"))
    assert not compared(backend, one, fence=12).begun


def test_a_first_publication_that_meets_another_one_finds_the_line_that_it_began(backend: RepositoryBackend) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    published(one, changed(backend, one, "job-1", "about.html", "Us\n"), lease(1))
    theirs = two.prepare(work(backend.project, "job-2", key=ZOE, thread=OTHER_THREAD, worker="w-2"))
    _, first = made_live(backend, one, "job-3", 5, THREAD)
    state = two.compare(theirs, release_name(first.head))
    assert (state.head, state.begun) == (first.head, True)


def test_live_that_moved_in_the_meantime_is_not_overwritten(backend: RepositoryBackend) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    published(one, changed(backend, one, "job-1", "about.html", "Us\n"), lease(1))
    theirs = two.prepare(work(backend.project, "job-2", key=ZOE, thread=OTHER_THREAD, worker="w-2"))
    state = two.compare(theirs, "")
    merged = two.bring(theirs, state, state.waiting, publication("job-2", state, state.waiting))
    assert isinstance(merged, Merged)
    _, first = made_live(backend, one, "job-3", 5, THREAD)
    assert not two.push_live(theirs, merged, lease(5, "w-2"))  # the same fence: only live itself can tell
    state = two.compare(theirs, "")
    assert (state.head, state.waiting) == (first.head, ())


def test_an_undone_change_waits_to_be_taken_back_where_it_is_public(backend: RepositoryBackend) -> None:
    one = backend.worker("w-1")
    first = published(one, changed(backend, one, "job-1", "about.html", "Us\n"), lease(1)).change
    second = published(one, changed(backend, one, "job-2", "news.html", "New\n"), lease(2)).change
    workspace = one.prepare(work(backend.project, "job-3"))
    state = one.compare(workspace, "")
    merged = one.bring(workspace, state, state.waiting[:1], publication("job-3", state, state.waiting[:1]))
    assert isinstance(merged, Merged)
    assert one.push_live(workspace, merged, lease(3))
    for number, change in ((4, first), (5, second)):
        workspace = one.prepare(work(backend.project, f"job-{number}"))
        assert one.revert(workspace, change) is None
        made = committed(one, workspace, said(f"job-{number}", undoes=change.commit))
        published(one, replace(workspace, made=made), lease(number))
    state = compared(backend, one)
    assert [(one.words, one.undoes) for one in state.waiting] == [("did job-4", first.commit)], "the second never was"
    _, merged = made_live(backend, one, "job-6", 6, THREAD)
    assert set(merged.tree.files) == {"index.html", "about.html"}
    assert merged.like_main
    assert compared(backend, one).waiting == ()


def test_an_undo_knows_what_it_takes_back_also_when_it_is_found_again(backend: RepositoryBackend) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    first = published(one, changed(backend, one, "job-1", "about.html", "Us\n"), lease(1)).change
    workspace = one.prepare(work(backend.project, "job-2"))
    assert one.revert(workspace, first) is None
    change = one.commit(workspace, said("job-2", undoes=first.commit))
    assert isinstance(change, Change)
    assert change.undoes == first.commit
    one.save(workspace)
    found = two.prepare(work(backend.project, "job-2", worker="w-2", fence=11))
    assert found.made == change
    assert published(two, found, lease(2, "w-2")).change.undoes == first.commit
    again = two.prepare(work(backend.project, "job-2", worker="w-2", fence=11))
    assert again.on_main
    assert again.made
    assert again.made.undoes == first.commit


def test_an_undo_in_the_way_of_later_changes_leaves_the_workspace_clean(backend: RepositoryBackend) -> None:
    one = backend.worker("w-1")
    mine = published(one, changed(backend, one, "job-1", "about.html", "Us\n"), lease(1)).change
    published(one, changed(backend, one, "job-2", "about.html", "Them\n", thread=OTHER_THREAD), lease(2))
    workspace = one.prepare(work(backend.project, "job-3"))
    assert one.revert(workspace, mine) == MergeConflict(("about.html",))
    assert backend.get(one, workspace, "about.html") == "Them\n"
    assert one.commit(workspace, said("job-3")) is None


def test_another_threads_change_is_not_this_threads_to_undo(backend: RepositoryBackend) -> None:
    one = backend.worker("w-1")
    published(one, changed(backend, one, "job-1", "about.html", "Us\n", thread=OTHER_THREAD), lease(1))
    assert one.changes(one.prepare(work(backend.project, "job-2", key=SCOTT))) == ()


def test_the_same_edit_made_by_two_people_is_done_for_both(backend: RepositoryBackend) -> None:
    one, two = backend.worker("w-1"), backend.worker("w-2")
    mine = changed(backend, one, "job-1", "about.html", "Us\n")
    theirs = changed(backend, two, "job-2", "about.html", "Us\n", key=ZOE, thread=OTHER_THREAD, worker="w-2")
    published(one, mine, lease(1))
    published(two, theirs, lease(2, "w-2"))
    again = two.prepare(work(backend.project, "job-2", key=ZOE, thread=OTHER_THREAD, worker="w-2"))
    assert again.on_main
    assert isinstance(again.made, Change)
