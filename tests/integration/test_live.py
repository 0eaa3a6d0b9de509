"""Two lines of a site: each conversation is published by itself, on real git and folders."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.any_port import AnyPort
from tests.fakes.cancel_token import FakeCancelToken
from tests.harness.sample_project import EndsWith, SampleProject
from tests.unit.jobs.fixtures import OTHER_THREAD, THREAD, ZOE, CrashingBefore, JobCrash, started
from webordinary.adapters.builders import PlainFiles
from webordinary.adapters.files.system import SystemClock
from webordinary.adapters.git.origins import GitSourceRollback
from webordinary.jobs import live
from webordinary.jobs.history import LiveState
from webordinary.jobs.job import SiteJobs
from webordinary.jobs.report import NO_LONGER_PUBLIC, NOT_YOURS, NOTHING_WAITS, STILL_PUBLIC
from webordinary.jobs.run import JobDeps
from webordinary.jobs.site_files import Stage, manifest_of, release_name
from webordinary.jobs.source import BuildFailed, Built, Merged, SourceTree, Workspace
from webordinary.mail.replies.answers import ANOTHER_PUBLISHES
from webordinary.model.claims import CancelToken, ProjectLease
from webordinary.model.errors import (
    Cancelled,
    Interrupted,
    MachineFault,
    NotNow,
    Permanent,
    Transient,
    WebOrdinaryError,
)
from webordinary.model.jobs import ChangeLine, JobOutcome, JobResult, Settlement
from webordinary.model.mail import Command, Instruction
from webordinary.model.projects import SenderRole
from webordinary.operations.releases import Rollback

pytestmark = pytest.mark.needs("git")
TITLE = "change the homepage title to Spring Sale"
ABOUT = "change the title of the about page to Who we are"
NEW_THREAD = "c" * 16


@pytest.fixture
def amelia(tmp_path: Path) -> SampleProject:
    return SampleProject(tmp_path)


def publish(amelia: SampleProject, job_id: str, named: str = "", **about: object) -> JobResult:
    settled = amelia.send("publish", job_id, command=Command.PUBLISH, named=named, **about)  # type: ignore[arg-type]
    assert settled.outcome is JobOutcome.SUCCEEDED, settled
    return settled.result


def public(amelia: SampleProject, name: str = "index.html") -> str:
    """The public page; what it shows is the newest commit of live."""
    current = amelia.releases.current("amelia", Stage.PUBLIC)
    assert current is not None
    assert current.name == release_name(amelia.git("rev-parse", "live"))
    return amelia.page(name, Stage.PUBLIC)


def told(lines: Sequence[ChangeLine]) -> list[tuple[str, str | None]]:
    """What each change does, and the user who asked for it."""
    return [(line.words, line.asked_by) for line in lines]


def jobs_on_live(amelia: SampleProject) -> list[str]:
    return amelia.git("log", "--format=%(trailers:key=Job-Id,valueonly,separator=)", "main..live").split()


@pytest.mark.parametrize("then", [Command.UNDO, Command.PUBLISH])
def test_a_yes_to_another_reply_of_a_thread_does_not_do_what_its_subject_names(
    amelia: SampleProject, then: Command
) -> None:
    amelia.send(TITLE, "job-1")
    ends = replace(amelia.deps(), agents={"builtin": EndsWith(then)})
    amelia.send("Yes, thanks", "job-2", deps=ends, subject=f"Re: {then} that", sender="bob@example.com")
    assert "<h1>Spring Sale</h1>" in amelia.page()
    assert amelia.releases.current("amelia", Stage.PUBLIC) is None


def test_publish_in_one_conversation_does_not_put_anothers_unfinished_work_on_the_public_site(
    amelia: SampleProject,
) -> None:
    amelia.send(ABOUT, "job-1", key=ZOE, thread=OTHER_THREAD)
    amelia.send(TITLE, "job-2")
    result = publish(amelia, "job-3")
    assert "<h1>Spring Sale</h1>" in public(amelia)
    assert "Who we are" not in public(amelia, "about.html")
    assert result.url == "http://public.amelia.localhost/"
    assert told(result.published) == [("Changed the title of the homepage to “Spring Sale”.", "scott")]
    assert told(result.waiting) == [("Changed the title of the about page to “Who we are”.", "zoe")]
    theirs = publish(amelia, "job-4", key=ZOE, thread=OTHER_THREAD)
    assert "Who we are" in public(amelia, "about.html")
    assert theirs.url == "http://public.amelia.localhost/about.html", "the one page that changed"
    assert "<h1>Spring Sale</h1>" in public(amelia)
    assert theirs.waiting == ()
    assert theirs.published[0].asked_by == "zoe"
    amelia.check()


def test_a_yes_publishes_the_change_that_it_answers_and_nothing_that_another_person_slipped_in_since(
    amelia: SampleProject,
) -> None:
    for number, text in enumerate((TITLE, ABOUT), 1):
        amelia.send(text, f"job-{number}")
    first = publish(amelia, "job-3", answers="job-1", sender="owner@example.com")
    assert "<h1>Spring Sale</h1>" in public(amelia)
    assert "Who we are" not in public(amelia, "about.html")
    assert told(first.waiting) == [("Changed the title of the about page to “Who we are”.", "scott")]
    second = publish(amelia, "job-4", answers="job-2", sender="owner@example.com")
    assert "Who we are" in public(amelia, "about.html")
    assert second.waiting == ()


def test_a_button_that_is_pressed_again_publishes_nothing_that_another_person_slipped_in_since(
    amelia: SampleProject,
) -> None:
    amelia.send(TITLE, "job-1")
    publish(amelia, "job-2", answers="job-1", sender="owner@example.com")
    amelia.send(ABOUT, "job-3")
    again = publish(amelia, "job-4", answers="job-1", sender="owner@example.com")
    assert "Who we are" not in public(amelia, "about.html")
    assert told(again.waiting) == [("Changed the title of the about page to “Who we are”.", "scott")]
    publish(amelia, "job-5", answers="job-1")
    assert "Who we are" in public(amelia, "about.html"), "their own change was not slipped in"


@pytest.mark.parametrize(
    "about",
    [{"answers": "job-1"}, {"answers": "job-7", "sender": "owner@example.com"}, {"sender": "owner@example.com"}],
    ids=["their own later change", "another mail of the conversation", "no answer"],
)
def test_a_publish_brings_the_whole_conversation_where_nothing_was_slipped_in(
    amelia: SampleProject, about: dict[str, str]
) -> None:
    for number, text in enumerate((TITLE, ABOUT), 1):
        amelia.send(text, f"job-{number}")
    assert publish(amelia, "job-3", **about).waiting == ()
    assert "Who we are" in public(amelia, "about.html")


def test_publish_all_brings_everything(amelia: SampleProject) -> None:
    amelia.send(ABOUT, "job-1", key=ZOE, thread=OTHER_THREAD)
    amelia.send(TITLE, "job-2")
    result = publish(amelia, "job-3", "all")
    assert "<h1>Spring Sale</h1>" in public(amelia)
    assert "Who we are" in public(amelia, "about.html")
    assert [line.asked_by for line in result.published] == ["zoe", "scott"]
    assert amelia.git("rev-parse", "live^{tree}") == amelia.git("rev-parse", "main^{tree}")


def test_what_was_published_before_the_two_lines_stays_public_and_live_begins_there(amelia: SampleProject) -> None:
    amelia.send(TITLE, "job-1")
    head = amelia.git("rev-parse", "main")
    shown = amelia.releases.promote("amelia", Stage.EDIT, Stage.PUBLIC, 1, head)
    assert shown
    amelia.releases.activate(shown, 1)
    amelia.send(ABOUT, "job-2", key=ZOE, thread=OTHER_THREAD)
    assert publish(amelia, "job-3").published == ()
    assert amelia.git("for-each-ref", "--format=%(objectname)", "refs/heads/live") == head
    assert "<h1>Spring Sale</h1>" in public(amelia)
    assert "Who we are" not in public(amelia, "about.html")


def test_a_public_release_whose_commit_is_gone_is_for_the_operator_to_mend(amelia: SampleProject) -> None:
    amelia.send(TITLE, "job-1")
    shown = amelia.releases.promote("amelia", Stage.EDIT, Stage.PUBLIC, 1, "f" * 40)
    assert shown
    amelia.releases.activate(shown, 1)
    with pytest.raises(Permanent, match="push a branch `live`"):
        publish(amelia, "job-2")
    amelia.git("branch", "live", "main")
    publish(amelia, "job-3")
    assert "<h1>Spring Sale</h1>" in public(amelia)


def test_changes_that_cannot_be_separated_are_asked_about_and_published_together(amelia: SampleProject) -> None:
    amelia.send("change the homepage title to Autumn", "job-1", key=ZOE, thread=OTHER_THREAD)
    amelia.send(ABOUT, "job-2", key=ZOE, thread=NEW_THREAD)
    amelia.send("change the homepage title to Winter", "job-3")
    asked = publish(amelia, "job-4")
    assert asked.question
    assert "index.html" in asked.question
    assert "Changed the title of the homepage to “Autumn”. (asked by zoe)" in asked.question
    assert "publish both" in asked.question
    assert amelia.releases.current("amelia", Stage.PUBLIC) is None
    both = publish(amelia, "job-5", "both")
    assert "<h1>Winter</h1>" in public(amelia)
    assert "Who we are" not in public(amelia, "about.html")
    assert len(both.published) == 2
    assert len(both.waiting) == 1


def test_a_change_on_top_of_a_commit_of_the_repository_goes_public_with_everything(amelia: SampleProject) -> None:
    amelia.send(ABOUT, "job-1")
    work = amelia.folder / "developer"
    amelia.git("clone", "-q", str(amelia.origin), str(work))
    page = work / "index.html"
    page.write_text(page.read_text().replace("See what is new", "Look around"))
    for args in (
        ("add", "."),
        ("-c", "user.name=d", "-c", "user.email=d@e", "commit", "-qm", "By hand"),
        ("push", "-q"),
    ):
        amelia.git("-C", str(work), *args)
    amelia.send("change “Look around” to “Look in”", "job-2", thread=OTHER_THREAD)
    asked = publish(amelia, "job-3", thread=OTHER_THREAD)
    assert asked.question
    assert "publish all" in asked.question
    apart = publish(amelia, "job-4")
    assert any("made in the repository itself" in line.words for line in apart.waiting)
    publish(amelia, "job-5", "all", thread=OTHER_THREAD)
    assert "Look in" in public(amelia)


def test_changes_that_end_where_they_began_are_not_told_as_published_by_another(amelia: SampleProject) -> None:
    amelia.send(TITLE, "job-1")
    publish(amelia, "job-2")
    amelia.send("change “See what is new” to “See more”", "job-3", key=ZOE, thread=OTHER_THREAD)
    amelia.send("change “See more” to “See what is new”", "job-4", key=ZOE, thread=NEW_THREAD)
    result = publish(amelia, "job-5")
    assert (result.summary, result.published, len(result.waiting)) == (NOTHING_WAITS, (), 2)


def test_a_new_mail_that_only_says_publish_means_the_one_conversation_of_its_sender_that_waits(
    amelia: SampleProject,
) -> None:
    amelia.send(TITLE, "job-1")
    publish(amelia, "job-2", thread=NEW_THREAD)
    assert "<h1>Spring Sale</h1>" in public(amelia)
    amelia.send(ABOUT, "job-3", thread=OTHER_THREAD)
    amelia.send("change “See what is new” to “See more”", "job-4")
    asked = publish(amelia, "job-5", thread="d" * 16)
    assert asked.question
    assert "publish all" in asked.question
    assert "See more" not in public(amelia)
    assert publish(amelia, "job-6", thread="e" * 16, key=ZOE).question, "nothing of it is hers"


def test_publish_in_a_conversation_that_changed_nothing_asks_and_publishes_no_other_change(
    amelia: SampleProject,
) -> None:
    amelia.send(TITLE, "job-1")
    asked = publish(amelia, "job-2", thread=NEW_THREAD, replies=True, answers="job-9")
    assert asked.question
    assert "no change of its own" in asked.question
    assert "Changed the title of the homepage to “Spring Sale”. (asked by you)" in asked.question
    assert "publish all" in asked.question
    assert amelia.releases.current("amelia", Stage.PUBLIC) is None
    publish(amelia, "job-3", "all", thread=NEW_THREAD, replies=True)
    assert "<h1>Spring Sale</h1>" in public(amelia)


def test_publish_beside_a_wish_that_changed_nothing_publishes_no_other_conversation(amelia: SampleProject) -> None:
    amelia.send(TITLE, "job-1")
    deps = replace(amelia.deps(), agents={"builtin": EndsWith(Command.PUBLISH)})
    asked = amelia.send("Change the year to 2026 and publish it", "job-2", thread=NEW_THREAD, deps=deps).result
    assert asked.question
    assert "Spring Sale" in asked.question
    assert amelia.releases.current("amelia", Stage.PUBLIC) is None


def test_an_undo_takes_a_change_back_on_each_line_that_it_reached_and_says_so(amelia: SampleProject) -> None:
    amelia.send(TITLE, "job-1")
    publish(amelia, "job-2")
    amelia.send(ABOUT, "job-3")
    only_edit = amelia.send("undo", "job-4", command=Command.UNDO).result
    assert NO_LONGER_PUBLIC not in only_edit.summary
    assert not only_edit.is_public
    assert jobs_on_live(amelia) == ["job-2"]
    amelia.send(ABOUT, "job-5", key=ZOE, thread=OTHER_THREAD)
    both = amelia.send("undo", "job-6", command=Command.UNDO).result
    assert both.summary.endswith(NO_LONGER_PUBLIC)
    assert both.is_public
    assert "Spring Sale" not in amelia.page()
    assert "Spring Sale" not in public(amelia)
    assert "Who we are" not in public(amelia, "about.html")
    assert jobs_on_live(amelia) == ["job-6", "job-2"]
    assert publish(amelia, "job-7").published == ()


def test_an_undo_that_cannot_be_separated_on_live_says_that_it_is_still_public(amelia: SampleProject) -> None:
    amelia.send("change “See what is new” to “See more”", "job-1")
    publish(amelia, "job-2")
    amelia.send("change “See more” to “See it all”", "job-3", key=ZOE, thread=OTHER_THREAD)
    publish(amelia, "job-4", key=ZOE, thread=OTHER_THREAD)
    amelia.send("undo", "job-5", key=ZOE, thread=OTHER_THREAD, command=Command.UNDO, deps=without_live(amelia))
    undone = amelia.send("undo", "job-6", command=Command.UNDO).result
    assert undone.summary.endswith(STILL_PUBLIC)
    assert "See it all" in public(amelia)
    assert "See what is new" in amelia.page()
    assert publish(amelia, "job-7").question
    publish(amelia, "job-8", "both")
    assert "See what is new" in public(amelia)


def without_live(amelia: SampleProject) -> JobDeps:
    """A worker of the earlier version, which undid a change on the edit site only."""
    deps = amelia.deps()

    class NothingPublic:
        def __getattr__(self, name: str) -> object:
            return getattr(deps.live, name)

        def compare(self, workspace: Workspace, public: str) -> LiveState:
            return replace(deps.live.compare(workspace, public), waiting=())

    return replace(deps, live=NothingPublic())  # type: ignore[arg-type]


def test_a_site_that_does_not_build_from_live_stays_as_it_was(amelia: SampleProject) -> None:
    amelia.send(TITLE, "job-1")
    publish(amelia, "job-2")
    amelia.send(ABOUT, "job-3")
    amelia.send("change “See what is new” to “See more”", "job-4", key=ZOE, thread=OTHER_THREAD)
    live = amelia.git("rev-parse", "live")
    settled = amelia.send("publish", "job-5", command=Command.PUBLISH, deps=replace(amelia.deps(), builders={}))
    assert settled.outcome is JobOutcome.FAILED
    assert "stays as it was" in settled.result.summary
    assert amelia.git("rev-parse", "live") == live
    assert "Who we are" not in public(amelia, "about.html")


def test_a_rollback_of_the_public_site_takes_live_along_and_a_publish_brings_it_again(amelia: SampleProject) -> None:
    amelia.send(TITLE, "job-1")
    publish(amelia, "job-2")
    amelia.send(ABOUT, "job-3", thread=OTHER_THREAD)
    publish(amelia, "job-4", thread=OTHER_THREAD)
    source = GitSourceRollback(amelia.folder / "mirrors", "operator")
    rollback = Rollback(amelia.leases, amelia.releases, source, SystemClock().now, lambda _: None)
    main = amelia.git("rev-parse", "main")
    done = rollback.roll_back(amelia.project, Stage.PUBLIC, "", "operator")
    assert done.commit == amelia.git("rev-parse", "live")
    assert amelia.git("rev-parse", "main") == main
    assert "Who we are" not in amelia.page("about.html", Stage.PUBLIC)
    amelia.send("change “See what is new” to “See more”", "job-5")
    result = publish(amelia, "job-6")
    assert "See more" in public(amelia)
    assert "Who we are" not in public(amelia, "about.html"), "a later publication brings nothing back"
    assert len(result.waiting) == 1
    publish(amelia, "job-7", thread=OTHER_THREAD)
    assert "Who we are" in public(amelia, "about.html")


def test_what_was_undone_or_rolled_back_on_the_edit_site_is_not_published(amelia: SampleProject) -> None:
    amelia.send(TITLE, "job-1")
    amelia.send(ABOUT, "job-2", thread=OTHER_THREAD)
    amelia.send("change “See what is new” to “See more”", "job-3")
    amelia.send("undo", "job-4", command=Command.UNDO)
    source = GitSourceRollback(amelia.folder / "mirrors", "operator")
    rollback = Rollback(amelia.leases, amelia.releases, source, SystemClock().now, lambda _: None)
    first = amelia.releases.list("amelia", Stage.EDIT)[-1]
    rollback.roll_back(amelia.project, Stage.EDIT, first.name, "operator")
    result = publish(amelia, "job-5")
    assert len(result.published) == 1
    assert "<h1>Spring Sale</h1>" in public(amelia)
    assert "See more" not in public(amelia)
    gone = publish(amelia, "job-6", thread=OTHER_THREAD)
    assert gone.summary == NOTHING_WAITS
    assert "Who we are" not in public(amelia, "about.html")


CALLS, UNDO_CALLS = 19, 37
PORTS = ("workspaces", "live", "leases", "releases")


def crashing(deps: JobDeps, count: list[int], at: int, ports: Sequence[str] = PORTS) -> JobDeps:
    wrapped: dict[str, Any] = {name: CrashingBefore(getattr(deps, name), count, at) for name in ports}
    return replace(deps, **wrapped)


@pytest.mark.parametrize("crash_at", range(1, CALLS))
def test_a_crash_at_any_step_of_a_publication_ends_in_one_commit_and_one_release(
    amelia: SampleProject, crash_at: int
) -> None:
    amelia.send(ABOUT, "job-1", key=ZOE, thread=OTHER_THREAD)
    amelia.send(TITLE, "job-2")
    with suppress(JobCrash):
        publish(amelia, "job-3", deps=crashing(amelia.deps(), [0], crash_at))
    amelia.dead.add("w-1")
    result = publish(amelia, "job-3", worker="w-2", fence=11)
    assert told(result.published) == [("Changed the title of the homepage to “Spring Sale”.", "scott")]
    assert len(result.waiting) == 1
    assert jobs_on_live(amelia) == ["job-3"]
    assert len(amelia.releases.list("amelia", Stage.PUBLIC)) == 1
    assert "<h1>Spring Sale</h1>" in public(amelia)


@pytest.mark.parametrize("crash_at", range(10, UNDO_CALLS))
def test_a_crash_at_any_step_of_an_undo_takes_it_back_once_on_both_lines(amelia: SampleProject, crash_at: int) -> None:
    amelia.send(TITLE, "job-1")
    publish(amelia, "job-2")
    deps = crashing(amelia.deps(), [0], crash_at, (*PORTS, "main"))
    with suppress(JobCrash):
        amelia.send("undo", "job-3", command=Command.UNDO, deps=deps)
    amelia.dead.add("w-1")
    undone = amelia.send("undo", "job-3", command=Command.UNDO, worker="w-2", fence=11)
    assert undone.result.summary.endswith(NO_LONGER_PUBLIC)
    assert amelia.jobs_on_main() == ["job-3", "job-1"]
    assert jobs_on_live(amelia) == ["job-3", "job-2"]
    assert "Spring Sale" not in public(amelia)
    amelia.check()


def test_all_steps_are_crashed_by_the_tests_above(amelia: SampleProject) -> None:
    amelia.send(TITLE, "job-1")
    count = [0]
    publish(amelia, "job-2", deps=crashing(amelia.deps(), count, 1_000))
    assert count[0] < CALLS
    count = [0]
    amelia.send("undo", "job-3", command=Command.UNDO, deps=crashing(amelia.deps(), count, 1_000, (*PORTS, "main")))
    assert count[0] < UNDO_CALLS


@pytest.mark.parametrize(("port", "calls"), [("main", 2), ("main", 3), ("live", 1), ("live", 4)])
def test_an_edit_that_ends_with_an_undo_takes_it_back_on_both_lines_after_a_crash(
    amelia: SampleProject, port: str, calls: int
) -> None:
    amelia.send(TITLE, "job-1")
    publish(amelia, "job-2")
    deps = replace(amelia.deps(quick_seconds=0.0), agents={"builtin": EndsWith(Command.UNDO)})
    dying: Any = {port: CrashingBefore(getattr(deps, port), [0], calls, after=True)}
    with pytest.raises(JobCrash):
        amelia.send("it was nicer before, undo it", "job-3", deps=replace(deps, **dying))
    amelia.dead.add("w-1")
    undone = amelia.send("it was nicer before, undo it", "job-3", worker="w-2", fence=11)
    assert undone.result.summary.endswith(NO_LONGER_PUBLIC)
    assert amelia.jobs_on_main() == ["job-3", "job-1"]
    assert jobs_on_live(amelia) == ["job-3", "job-2"]
    assert "Spring Sale" not in public(amelia)


def test_a_change_on_main_that_does_not_build_any_more_is_not_told_as_left_out(amelia: SampleProject) -> None:
    deps = amelia.deps()
    dying: Any = CrashingBefore(deps.main, [0], 3, after=True)  # enter, join, push
    with pytest.raises(JobCrash):
        amelia.send(TITLE, "job-1", deps=replace(deps, main=dying))
    amelia.dead.add("w-1")
    broken = replace(amelia.deps("w-2"), builders={"plain": Unbuildable()})
    with pytest.raises(Transient, match="in the repository already"):
        amelia.send(TITLE, "job-1", deps=broken, worker="w-2", fence=11)
    assert amelia.jobs_on_main() == ["job-1"]
    assert amelia.send(TITLE, "job-1", worker="w-2", fence=11).outcome is JobOutcome.SUCCEEDED
    dying = CrashingBefore(deps.live, [0], 3, after=True)  # compare, bring, push
    deps = replace(amelia.deps("w-2"), live=dying)
    with pytest.raises(JobCrash):
        publish(amelia, "job-2", deps=deps, worker="w-2", fence=11)
    amelia.dead.add("w-2")
    amelia.releases.drop("amelia", Stage.EDIT)  # else the public site takes its release
    with pytest.raises(Transient, match="in the repository already"):
        publish(amelia, "job-2", deps=replace(amelia.deps("w-3"), builders=broken.builders), worker="w-3", fence=12)
    publish(amelia, "job-2", worker="w-3", fence=12)
    assert "<h1>Spring Sale</h1>" in public(amelia)


class Unbuildable(PlainFiles):
    """No package can be installed just now, say."""

    def build(self, tree: SourceTree, into: Path, previous: Path | None, token: CancelToken) -> BuildFailed:
        return BuildFailed("the registry is not reached")


def found(
    amelia: SampleProject, job_id: str, worker: str, fence: int, command: Command = Command.PUBLISH
) -> Settlement | None:
    """What a worker that took the job over finds of an earlier attempt."""
    mail = Instruction("publish", "", "scott@example.com", command)
    work = SiteJobs(amelia.deps(worker), lambda job: mail, amelia.heard, SystemClock().now)
    begun = started(job_id, command, worker=worker, fence=fence)
    return work.find_done(begun, FakeCancelToken(worker, fence, job_id))


@pytest.mark.parametrize("command", [Command.PUBLISH, Command.EDIT])
def test_a_publish_that_was_done_already_is_found_and_not_told_as_failed(
    amelia: SampleProject, command: Command
) -> None:
    amelia.send(TITLE, "job-1")
    assert found(amelia, "job-2", "w-2", 10, command) is None, "nothing is public yet"
    deps = replace(amelia.deps(), agents={"builtin": EndsWith(Command.PUBLISH)})
    dying: Any = CrashingBefore(deps.live, [0], 3, after=True)  # compare, bring, push
    with pytest.raises(JobCrash):
        amelia.send("publish", "job-2", command=command, deps=replace(deps, live=dying))
    amelia.dead.add("w-1")
    assert amelia.releases.current("amelia", Stage.PUBLIC) is None
    settled = found(amelia, "job-2", "w-2", 11, command)
    assert settled is not None
    assert settled.outcome is JobOutcome.SUCCEEDED
    assert settled.result.published
    assert "<h1>Spring Sale</h1>" in public(amelia)


@pytest.mark.parametrize(("calls", "published"), [(1, False), (3, True)])  # of live: compare, bring, push
def test_a_mail_that_was_stopped_begins_no_publication_and_completes_one(
    amelia: SampleProject, calls: int, published: bool
) -> None:
    wish = f"{TITLE.replace('Spring Sale', '“Spring Sale”')} and publish it"
    deps = amelia.deps()
    dying: Any = CrashingBefore(deps.live, [0], calls, after=True)
    with pytest.raises(JobCrash):
        amelia.send(wish, "job-1", deps=replace(deps, live=dying))
    amelia.dead.add("w-1")
    mail = Instruction(wish, "", "scott@example.com", Command.EDIT)
    jobs = SiteJobs(amelia.deps("w-2"), lambda job: mail, amelia.heard, SystemClock().now)
    begun = started("job-1", worker="w-2", fence=11)
    stopped = replace(begun, job=begun.job._replace(cancel_requested=True))
    done = jobs.find_done(stopped, FakeCancelToken("w-2", 11, "job-1"))
    assert done
    assert done.outcome is JobOutcome.SUCCEEDED
    assert bool(done.result.published) is published
    assert "<h1>Spring Sale</h1>" in amelia.page()
    assert (amelia.releases.current("amelia", Stage.PUBLIC) is not None) is published


def test_who_slept_while_publishing_is_too_late_once_somebody_has_looked(amelia: SampleProject) -> None:
    amelia.send(TITLE, "job-1")
    deps = amelia.deps()

    class Sleeping(AnyPort):
        """Its push comes after another worker took the job over."""

        def __getattr__(self, name: str) -> object:
            return getattr(deps.live, name)

        def push_live(self, workspace: Workspace, merged: Merged, lease: ProjectLease) -> bool:
            assert found(amelia, "job-2", "w-2", 11) is None
            return deps.live.push_live(workspace, merged, lease)

    amelia.dead.add("w-1")
    with pytest.raises(Exception, match="a newer claim"):
        publish(amelia, "job-2", deps=replace(deps, live=Sleeping()))
    assert amelia.git("for-each-ref", "refs/heads/live") == ""
    assert amelia.releases.current("amelia", Stage.PUBLIC) is None
    publish(amelia, "job-3", worker="w-2", fence=11)
    assert "<h1>Spring Sale</h1>" in public(amelia)


def test_a_repository_whose_main_branch_is_named_live_has_another_name_for_the_public_line(
    amelia: SampleProject,
) -> None:
    amelia.git("branch", "-m", "main", "live")
    amelia.send(TITLE, "job-1")
    publish(amelia, "job-2")
    assert "<h1>Spring Sale</h1>" in amelia.page(stage=Stage.PUBLIC)
    assert "Publish: " in amelia.git("log", "-1", "--format=%s", "public")
    assert "Publish: " not in amelia.git("log", "-1", "--format=%s", "live")


PREVIEW = Stage.of_thread(THREAD)


def shown_files(amelia: SampleProject, stage: Stage) -> dict[str, str]:
    """The digest of each file that a site shows."""
    return {path: mark.digest for path, mark in manifest_of(amelia.releases.current("amelia", stage)).items()}


def test_the_preview_of_a_conversation_shows_exactly_what_publish_then_makes(amelia: SampleProject) -> None:
    amelia.send(ABOUT, "job-1", key=ZOE, thread=OTHER_THREAD)
    result = amelia.send(TITLE, "job-2").result
    assert result.preview == f"http://t-{THREAD}.amelia.localhost/"
    assert "<h1>Spring Sale</h1>" in amelia.page(stage=PREVIEW)
    assert "Who we are" not in amelia.page("about.html", PREVIEW)
    promised = shown_files(amelia, PREVIEW)
    publish(amelia, "job-3")
    assert promised
    assert shown_files(amelia, Stage.PUBLIC) == promised
    assert amelia.releases.current("amelia", PREVIEW) is None, "nothing of the conversation waits any more"


def test_a_publish_that_answers_an_earlier_mail_keeps_the_preview_of_what_still_waits(amelia: SampleProject) -> None:
    amelia.send("change “See what is new” to “See more”", "job-1", key=ZOE, thread=OTHER_THREAD)
    for number, text in enumerate((TITLE, ABOUT), 2):
        amelia.send(text, f"job-{number}")
    publish(amelia, "job-4", answers="job-2", sender="owner@example.com")
    assert "Who we are" not in public(amelia, "about.html")
    assert "Who we are" in amelia.page("about.html", PREVIEW)
    promised = shown_files(amelia, PREVIEW)
    publish(amelia, "job-5", answers="job-3", sender="owner@example.com")
    assert shown_files(amelia, Stage.PUBLIC) == promised
    assert amelia.releases.current("amelia", PREVIEW) is None


def test_a_publication_builds_nothing_that_the_preview_has_built(amelia: SampleProject) -> None:
    amelia.send(ABOUT, "job-1", key=ZOE, thread=OTHER_THREAD)
    amelia.send(TITLE, "job-2")
    built = amelia.heard.kinds().count("SiteBuilt")
    assert built == 2, "the events of a mail tell of the edit site alone"
    publish(amelia, "job-3")
    assert amelia.heard.kinds().count("SiteBuilt") == built
    amelia.send("change the homepage title to Summer", "job-4")
    publish(amelia, "job-5", "all")
    assert "<h1>Summer</h1>" in public(amelia)
    assert "Who we are" in public(amelia, "about.html")


def test_a_conversation_that_has_the_edit_site_for_itself_needs_no_preview(amelia: SampleProject) -> None:
    assert amelia.send(TITLE, "job-1").result.preview is None
    assert amelia.releases.previews("amelia") == ()


def test_an_undone_change_leaves_the_preview(amelia: SampleProject) -> None:
    amelia.send(ABOUT, "job-1", key=ZOE, thread=OTHER_THREAD)
    amelia.send(TITLE, "job-2")
    amelia.send("change the homepage title to Summer", "job-3")
    assert "<h1>Summer</h1>" in amelia.page(stage=PREVIEW)
    amelia.send("undo", "job-4", command=Command.UNDO)
    assert "<h1>Spring Sale</h1>" in amelia.page(stage=PREVIEW)
    amelia.send("undo", "job-5", command=Command.UNDO)
    assert amelia.releases.previews("amelia") == ()


def test_changes_that_publish_would_ask_about_have_no_preview(amelia: SampleProject) -> None:
    amelia.send("change the homepage title to Autumn", "job-1", key=ZOE, thread=OTHER_THREAD)
    assert amelia.send("change the homepage title to Winter", "job-2").result.preview is None
    assert amelia.releases.current("amelia", PREVIEW) is None


class BreaksInPreviews(PlainFiles):
    """Fails where a preview is built: with this problem, or as a build that fails."""

    def __init__(self, problem: WebOrdinaryError | None) -> None:
        super().__init__()
        self.problem = problem

    def build(self, tree: SourceTree, into: Path, previous: Path | None, token: CancelToken) -> Built | BuildFailed:
        if PREVIEW.value not in str(into):
            return super().build(tree, into, previous, token)
        if self.problem is None:
            return BuildFailed("a page is broken")
        raise self.problem


@pytest.mark.parametrize("problem", [Transient("the remote is asleep"), MachineFault("the disk is full"), None])
def test_a_preview_that_cannot_be_built_does_not_fail_the_change(
    amelia: SampleProject, caplog: pytest.LogCaptureFixture, problem: WebOrdinaryError | None
) -> None:
    amelia.send(ABOUT, "job-1", key=ZOE, thread=OTHER_THREAD)
    done = amelia.send(TITLE, "job-2", deps=replace(amelia.deps(), builders={"plain": BreaksInPreviews(problem)}))
    assert "SiteNotBuilt" not in amelia.heard.kinds(), "the change itself was built"
    assert str(problem or "a page is broken") in caplog.text
    assert done.outcome is JobOutcome.SUCCEEDED
    assert done.result.preview is None
    assert "<h1>Spring Sale</h1>" in amelia.page()


@pytest.mark.parametrize("problem", [Interrupted("a drain"), Cancelled("stop")])
def test_the_end_of_a_job_is_not_taken_for_a_broken_preview(amelia: SampleProject, problem: WebOrdinaryError) -> None:
    amelia.send(ABOUT, "job-1", key=ZOE, thread=OTHER_THREAD)
    deps = replace(amelia.deps(), builders={"plain": BreaksInPreviews(problem)})
    with pytest.raises(type(problem)):
        amelia.send(TITLE, "job-2", deps=deps)


def test_what_an_interruption_saves_is_the_threads_work_and_never_its_preview(amelia: SampleProject) -> None:
    amelia.send(ABOUT, "job-1", key=ZOE, thread=OTHER_THREAD)
    deps = replace(amelia.deps(), builders={"plain": BreaksInPreviews(Interrupted("a newer mail"))})
    mail = Instruction(TITLE, "a wish", "scott@example.com", Command.EDIT)
    jobs = SiteJobs(deps, lambda job: mail, amelia.heard, SystemClock().now)
    with pytest.raises(Interrupted):
        jobs.perform(started("job-2"), FakeCancelToken())
    jobs.save(started("job-2"), FakeCancelToken())
    done = amelia.send(TITLE, "job-2", worker="w-2", fence=11)
    assert done.result.summary == "Changed the title of the homepage to “Spring Sale”."
    assert sorted(amelia.jobs_on_main()) == ["job-1", "job-2"]


def test_a_worker_that_dies_at_any_call_of_an_edit_leaves_the_preview_right_after_the_next_attempt(
    tmp_path: Path,
) -> None:
    crash_at, done = 0, False
    while not done:
        crash_at += 1
        amelia = SampleProject(tmp_path / str(crash_at))
        amelia.send(ABOUT, "job-1", key=ZOE, thread=OTHER_THREAD)
        count, deps = [0], amelia.deps()
        releases: Any = CrashingBefore(deps.releases, count, crash_at)
        try:
            amelia.send(TITLE, "job-2", deps=replace(deps, releases=releases))
            done = True
        except JobCrash:
            amelia.send(TITLE, "job-2", worker="w-2", fence=11)
        assert "<h1>Spring Sale</h1>" in amelia.page(stage=PREVIEW)
        assert "Who we are" not in amelia.page("about.html", PREVIEW)
        assert len(amelia.jobs_on_main()) == 2
    assert crash_at > 8


def test_a_site_keeps_a_bounded_number_of_previews(amelia: SampleProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST_PREVIEWS", 2)
    amelia.send(ABOUT, "job-1", key=ZOE, thread=OTHER_THREAD)
    for number, letter in enumerate("def"):
        amelia.send(f"change the homepage title to Number{number}", f"job-{letter}", thread=letter * 16, fence=10)
        amelia.send("publish", f"job-{letter}-p", thread=letter * 16, command=Command.PUBLISH)
        amelia.send(f"change the homepage title to Again{number}", f"job-{letter}-2", thread=letter * 16)
        amelia.send("publish all", f"job-{letter}-a", thread="0" * 16, command=Command.PUBLISH, named="all")
        amelia.send(ABOUT.replace("Who we are", f"We {number}"), f"job-{letter}-z", key=ZOE, thread=OTHER_THREAD)
        amelia.send(f"change the homepage title to Open{number}", f"job-{letter}-3", thread=letter * 16)
    assert len(amelia.releases.previews("amelia")) <= 2


def test_the_question_names_no_conversation_that_changed_other_lines_of_the_same_page(amelia: SampleProject) -> None:
    amelia.send("change the homepage title to Autumn", "job-1", key=ZOE, thread=OTHER_THREAD)
    amelia.send("change “See what is new” to “Hand-made” on the homepage", "job-2", key=ZOE, thread=NEW_THREAD)
    assert amelia.git("diff", "--name-only", "main~2", "main") == "index.html"
    amelia.send("change the homepage title to Winter", "job-3")
    asked = publish(amelia, "job-4")
    assert asked.question
    assert "Autumn" in asked.question
    assert "Hand-made" not in asked.question
    both = publish(amelia, "job-5", "both")
    assert "<h1>Winter</h1>" in public(amelia)
    assert "Hand-made" not in public(amelia)
    assert len(both.waiting) == 1


def only_asks(amelia: SampleProject, worker: str = "w-1") -> JobDeps:
    return replace(amelia.deps(worker), role_of=lambda project_id, address: SenderRole.EDITOR)


def test_an_undo_of_a_person_who_only_asks_leaves_the_public_site_to_a_publisher(amelia: SampleProject) -> None:
    amelia.send(TITLE, "job-1")
    publish(amelia, "job-2")
    undone = amelia.send("undo", "job-3", command=Command.UNDO, deps=only_asks(amelia)).result
    assert undone.summary.endswith(NOT_YOURS)
    assert "Spring Sale" not in amelia.page()
    assert "<h1>Spring Sale</h1>" in public(amelia)
    publish(amelia, "job-4")
    assert "Spring Sale" not in public(amelia)


def test_a_publish_that_waited_while_its_sender_lost_the_role_publishes_nothing(amelia: SampleProject) -> None:
    amelia.send(TITLE, "job-1")
    amelia.project = replace(amelia.project, paused=True)
    with pytest.raises(NotNow):
        amelia.send("publish", "job-2", command=Command.PUBLISH)
    amelia.project = replace(amelia.project, paused=False)
    settled = amelia.send("publish", "job-2", command=Command.PUBLISH, deps=only_asks(amelia))
    assert settled.outcome is JobOutcome.FAILED
    assert settled.result.summary == ANOTHER_PUBLISHES
    assert amelia.releases.current("amelia", Stage.PUBLIC) is None
    assert not amelia.git("branch", "--list", "live")


def test_a_change_with_a_publish_of_a_person_who_only_asks_stays_on_the_edit_site(amelia: SampleProject) -> None:
    both = "change the homepage title to “Spring Sale” and publish it"
    asked = amelia.send(both, "job-1", deps=only_asks(amelia)).result
    assert "another person publishes" in asked.summary
    assert "<h1>Spring Sale</h1>" in amelia.page()
    assert amelia.releases.current("amelia", Stage.PUBLIC) is None
    assert amelia.send(both.replace("Spring", "Summer"), "job-2").result.published
