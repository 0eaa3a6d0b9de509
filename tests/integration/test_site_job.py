"""An instruction becomes a published site: real git, real files, the built-in agent."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.cancel_token import FakeCancelToken
from tests.harness.sample_project import EndsWith, SampleProject
from tests.unit.jobs.fixtures import OTHER_THREAD, SCOTT, THREAD, ZOE, CrashingBefore, JobCrash, started
from webordinary.adapters.agents.builtin import BuiltinAgent
from webordinary.adapters.agents.claude_agent import AutoAgent
from webordinary.adapters.files.system import SystemClock
from webordinary.adapters.git.repository import QUICK_SECONDS
from webordinary.jobs.job import SiteJobs
from webordinary.jobs.ports import Agent, AgentResult, AgentTask, Answered, Changed
from webordinary.jobs.site_files import Stage
from webordinary.model.claims import CancelToken
from webordinary.model.errors import Interrupted
from webordinary.model.jobs import JobOutcome
from webordinary.model.mail import Attachment, AttachmentKind, Command, Instruction
from webordinary.model.names import ProjectUser
from webordinary.operations.sample import sample_photo

pytestmark = pytest.mark.needs("git")
PHOTO = Attachment("spring-table.jpg", "image/jpeg", AttachmentKind.IMAGE, 1, "0" * 64)
TITLE = "change the homepage title to Spring Sale"


@pytest.fixture
def amelia(tmp_path: Path) -> SampleProject:
    return SampleProject(tmp_path)


def test_a_mail_with_a_photo_changes_the_site(amelia: SampleProject) -> None:
    settled = amelia.send(f"{TITLE}, and add the attached photo", "job-1", photos=(PHOTO,))
    assert settled.outcome is JobOutcome.SUCCEEDED
    assert settled.result.commit == amelia.git("rev-parse", "main")
    assert settled.result.url == "http://edit.amelia.localhost/"
    assert settled.result.changed_files == ("images/spring-table.jpg", "index.html")
    assert "<h1>Spring Sale</h1>" in amelia.page()
    shown = amelia.releases.current("amelia", Stage.EDIT)
    assert shown is not None
    assert (shown / "images" / "spring-table.jpg").read_bytes() == sample_photo()
    assert amelia.heard.kinds() == [
        "WorkspacePrepared", "AgentFinished", "ChangeCommitted", "SiteBuilt", "SitePublished"
    ]  # fmt: skip
    assert all("duration_ms" in event.data for event in amelia.heard)
    amelia.check()


@pytest.mark.parametrize(("ready", "who"), [(False, "builtin"), (True, "claude")])
def test_the_timeline_names_the_agent_that_ran(amelia: SampleProject, ready: bool, who: str) -> None:
    amelia.project = replace(amelia.project, agent="auto")
    auto = AutoAgent(BuiltinAgent(), BuiltinAgent(), lambda: ready)
    amelia.send(TITLE, "job-1", deps=replace(amelia.deps(), agents={"auto": auto}))
    [finished] = [event for event in amelia.heard if event.kind == "AgentFinished"]
    assert finished.data["agent"] == who


def test_undo_takes_it_back_and_a_second_undo_says_there_is_nothing(amelia: SampleProject) -> None:
    before = amelia.git("rev-parse", "main^{tree}")
    amelia.send(f"{TITLE}. Add this photo to the about page.", "job-1", photos=(PHOTO,))
    settled = amelia.send("undo", "job-2", command=Command.UNDO)
    assert settled.outcome is JobOutcome.SUCCEEDED
    assert settled.result.summary.startswith("Undone: Changed the title")
    assert "<h1>Pots for every day</h1>" in amelia.page()
    assert amelia.git("rev-parse", "main^{tree}") == before
    again = amelia.send("undo", "job-3", command=Command.UNDO)
    assert again.result.commit is None
    assert "nothing to undo" in again.result.summary
    amelia.check()


def test_the_first_of_two_photos_that_stand_beside_each_other_is_undone(amelia: SampleProject) -> None:
    vase = replace(PHOTO, name="vase.jpg")
    before = amelia.send("Add this photo to the homepage", "job-1", photos=(PHOTO,))
    with_one = amelia.page()
    amelia.send("Add this photo to the homepage", "job-2", photos=(vase,), thread=OTHER_THREAD)
    settled = amelia.send("undo", "job-3", command=Command.UNDO)
    assert settled.outcome is JobOutcome.SUCCEEDED, settled.result.summary
    assert settled.result.changed_files == before.result.changed_files
    assert "spring-table.jpg" not in amelia.page()
    amelia.send("undo", "job-4", command=Command.UNDO, thread=OTHER_THREAD)
    amelia.send("Add this photo to the homepage", "job-5", photos=(PHOTO,))
    assert amelia.page() == with_one, "nothing else was touched"


def test_an_undo_under_later_changes_is_explained(amelia: SampleProject) -> None:
    amelia.send(TITLE, "job-1")
    amelia.send("change the homepage title to Autumn", "job-2", thread=OTHER_THREAD)
    settled = amelia.send("undo", "job-3", command=Command.UNDO)
    assert settled.outcome is JobOutcome.FAILED
    assert "index.html" in settled.result.summary
    assert "<h1>Autumn</h1>" in amelia.page()


def test_what_is_not_understood_changes_nothing(amelia: SampleProject) -> None:
    before = amelia.git("for-each-ref", "refs/heads")
    settled = amelia.send("make it pop", "job-1")
    assert settled.outcome is JobOutcome.FAILED
    assert "make it pop" in settled.result.summary
    assert amelia.git("for-each-ref", "refs/heads") == before
    assert amelia.releases.current("amelia", Stage.EDIT) is None


def test_a_question_goes_back_to_the_customer(amelia: SampleProject) -> None:
    settled = amelia.send("change “Visit the workshop” to “Come by”", "job-1")
    assert settled.outcome is JobOutcome.SUCCEEDED
    assert settled.result.question
    assert settled.result.commit is None


def test_a_mail_without_words_is_asked_back_and_no_agent_has_to_guess(amelia: SampleProject) -> None:
    nobody = replace(amelia.deps(), agents={})
    settled = amelia.send(" \n", "job-1", deps=nobody, subject="")
    assert settled.outcome is JobOutcome.SUCCEEDED
    assert settled.result.question
    assert "came without words" in settled.result.question
    settled = amelia.send("", "job-2", deps=nobody, subject="", photos=(PHOTO,))
    assert settled.result.question
    assert "I got spring-table.jpg" in settled.result.question
    assert amelia.jobs_on_main() == []
    assert amelia.send("", "job-3", subject=TITLE).result.commit, "a mail without a body speaks through its subject"


def test_the_answer_leads_to_the_page_that_was_changed(amelia: SampleProject) -> None:
    amelia.send(TITLE, "job-1")
    photo = amelia.send("Add this photo to the about page.", "job-2", photos=(PHOTO,))
    assert photo.result.url == "http://edit.amelia.localhost/about.html"
    assert amelia.send("undo", "job-3", command=Command.UNDO).result.url == photo.result.url
    colour = amelia.send("make the background colour green", "job-4")
    assert [file for file in colour.result.changed_files if not file.endswith(".css")] == []
    assert colour.result.url == "http://edit.amelia.localhost/", "a style is seen on the home page"


def test_a_reply_goes_on_where_the_thread_stands(amelia: SampleProject) -> None:
    amelia.send(TITLE, "job-1")
    amelia.send("change “Spring Sale” to “Summer Sale” everywhere", "job-2")
    assert "<h1>Summer Sale</h1>" in amelia.page()
    assert amelia.git("rev-parse", f"thread-{THREAD}") == amelia.git("rev-parse", "main")
    amelia.check()


def test_a_site_without_a_home_page_is_not_published_and_the_old_one_stays(amelia: SampleProject) -> None:
    amelia.send(TITLE, "job-1")
    main = amelia.git("rev-parse", "main")
    deps = replace(amelia.deps(), agents={"builtin": Deleting("index.html")})
    settled = amelia.send("remove the homepage", "job-2", deps=deps)
    assert settled.outcome is JobOutcome.FAILED
    assert "so it stays as it was" in settled.result.summary
    assert amelia.git("rev-parse", "main") == main
    assert "<h1>Spring Sale</h1>" in amelia.page()
    amelia.send("change “See what is new” to “See more”", "job-3")  # the thread is not stuck with the bad change
    assert "See more" in amelia.page()
    amelia.check()


class Deleting:
    """An agent that deletes a file."""

    def __init__(self, name: str) -> None:
        self._name = name

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        (task.workspace / self._name).unlink()
        return Changed("Deleted.")


CALLS = 17


@pytest.mark.parametrize("quick_seconds", [QUICK_SECONDS, 0.0], ids=["quick", "slow"])
@pytest.mark.parametrize("crash_at", range(1, CALLS))
def test_a_crash_at_any_step_ends_in_one_commit_one_release_and_the_right_page(
    amelia: SampleProject, crash_at: int, quick_seconds: float
) -> None:
    count = [0]
    deps = amelia.deps(quick_seconds=quick_seconds)
    crashing: dict[str, Any] = {
        name: CrashingBefore(getattr(deps, name), count, crash_at)
        for name in ("workspaces", "main", "leases", "releases")
    }
    with suppress(JobCrash):
        amelia.send(TITLE, "job-1", deps=replace(deps, **crashing))
    amelia.dead.add("w-1")
    settled = amelia.send(TITLE, "job-1", worker="w-2", fence=11)
    assert settled.outcome is JobOutcome.SUCCEEDED
    assert settled.result.summary == "Changed the title of the homepage to “Spring Sale”."
    assert settled.result.changed_files == ("index.html",)
    assert amelia.jobs_on_main() == ["job-1"]
    assert len(amelia.releases.list("amelia", Stage.EDIT)) == 1
    assert "<h1>Spring Sale</h1>" in amelia.page()
    amelia.check()


def test_all_steps_are_crashed_by_the_test_above(amelia: SampleProject) -> None:
    count = [0]
    deps = amelia.deps()
    counting: dict[str, Any] = {
        name: CrashingBefore(getattr(deps, name), count, 1_000) for name in ("workspaces", "main", "leases", "releases")
    }
    amelia.send(TITLE, "job-1", deps=replace(deps, **counting))
    assert count[0] < CALLS


def test_an_agent_that_took_long_is_not_asked_again(amelia: SampleProject) -> None:
    count = [0]
    deps = amelia.deps(quick_seconds=0)
    with suppress(JobCrash):  # commit is the second call, take the third, enter the fourth
        amelia.send(TITLE, "job-1", deps=replace(deps, main=CrashingBefore(deps.main, count, 1, after=True)))
    amelia.dead.add("w-1")
    amelia.heard.clear()
    settled = amelia.send(TITLE, "job-1", deps=replace(amelia.deps("w-2"), agents={}), worker="w-2", fence=11)
    assert settled.outcome is JobOutcome.SUCCEEDED
    assert "AgentFinished" not in amelia.heard.kinds()


class Unhurried:
    """An agent that writes half of its work and is then interrupted."""

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        page = task.workspace / "about.html"
        half = page.read_text().replace("About the workshop", "About us")
        first = half != page.read_text()
        page.write_text(half)
        if first:
            assert isinstance(token, FakeCancelToken)
            token.end(Interrupted("a newer mail of another thread"))
        token.check()
        (task.workspace / "news.html").write_text("<h1>News</h1>")
        return Changed("Both.")


def test_an_interrupted_job_goes_on_from_its_saved_work_on_another_worker(amelia: SampleProject) -> None:
    clock = SystemClock().now
    mail = Instruction("both", "", "scott@example.com", Command.EDIT)

    def at(worker: str) -> SiteJobs:
        return SiteJobs(
            replace(amelia.deps(worker), agents={"builtin": Unhurried()}), lambda job: mail, amelia.heard, clock
        )

    one, token = at("w-1"), FakeCancelToken()
    with pytest.raises(Interrupted):
        one.perform(started("job-1"), token)
    one.save(started("job-1"), FakeCancelToken())
    assert amelia.jobs_on_main() == []
    settled = at("w-2").perform(started("job-1", worker="w-2", fence=11), FakeCancelToken("w-2", 11))
    assert settled.outcome is JobOutcome.SUCCEEDED
    assert settled.result.changed_files == ("about.html", "news.html")
    assert amelia.jobs_on_main() == ["job-1"]
    assert len(amelia.git("log", "--format=%H", "main").split()) == 2
    amelia.check()


class InterruptedAtItsEnd:
    """The built-in agent, with an interruption that comes when all of its work is there."""

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        result = BuiltinAgent().run(task, token)
        assert isinstance(token, FakeCancelToken)
        token.end(Interrupted("a newer mail of another thread"))
        return result


class Content:
    """Writes all that is missing and is interrupted; asked again, it says that nothing is left to do."""

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        page = task.workspace / "about.html"
        if "About us" not in page.read_text():
            page.write_text(page.read_text().replace("About the workshop", "About us"))
            assert isinstance(token, FakeCancelToken)
            token.end(Interrupted("a newer mail of another thread"))
        token.check()
        return Answered("It is so already.")


@pytest.mark.parametrize(("agent", "wish"), [(InterruptedAtItsEnd(), TITLE), (Content(), "both")])
def test_what_was_done_before_an_interruption_is_shown_whatever_the_agent_says_later(
    amelia: SampleProject, agent: Agent, wish: str
) -> None:
    clock, mail = SystemClock().now, Instruction(wish, "", "scott@example.com", Command.EDIT)
    work = SiteJobs(replace(amelia.deps(), agents={"builtin": agent}), lambda job: mail, amelia.heard, clock)
    with pytest.raises(Interrupted):
        work.perform(started("job-1"), FakeCancelToken())
    work.save(started("job-1"), FakeCancelToken())
    assert amelia.jobs_on_main() == []
    settled = work.perform(started("job-1"), FakeCancelToken())
    assert settled.outcome is JobOutcome.SUCCEEDED
    assert settled.result.commit
    assert amelia.jobs_on_main() == ["job-1"]


def test_two_users_publishing_at_once_lose_nothing(amelia: SampleProject) -> None:
    rounds = 4
    wishes = {
        SCOTT: ("change the homepage title to Sale {}", "w-1", "a"),
        ZOE: ("set the heading on the contact page to Visit {}", "w-2", "b"),
    }
    problems: list[BaseException] = []

    def run(key: ProjectUser) -> None:
        text, worker, letter = wishes[key]
        deps = amelia.deps(worker)
        try:
            for number in range(rounds):
                settled = amelia.send(
                    text.format(number), f"job-{letter}{number}", deps=deps, key=key, worker=worker,
                    thread=f"{letter * 15}{number}",
                )  # fmt: skip
                assert settled.outcome is JobOutcome.SUCCEEDED, settled
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(key,)) for key in wishes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(amelia.jobs_on_main()) == 2 * rounds
    assert "<h1>Sale 3</h1>" in amelia.page()
    assert "<h1>Visit 3</h1>" in amelia.page("contact.html")
    assert amelia.git("rev-list", "--merges", "main") == ""
    amelia.check()


def test_a_mail_that_asks_for_a_change_and_to_publish_it_gets_both_in_order(amelia: SampleProject) -> None:
    settled = amelia.send(f"{TITLE} and publish it", "job-1")
    assert settled.outcome is JobOutcome.SUCCEEDED, settled.result
    assert settled.result.published
    assert settled.result.url == amelia.deps().site_url("amelia", Stage.PUBLIC)
    assert settled.result.summary.startswith("Changed the title of the homepage")
    for stage in (Stage.EDIT, Stage.PUBLIC):
        shown = amelia.releases.current("amelia", stage)
        assert shown is not None
        assert "<h1>Spring Sale</h1>" in (shown / "index.html").read_text()


def test_a_change_that_is_asked_about_is_not_published(amelia: SampleProject) -> None:
    before = amelia.releases.current("amelia", Stage.PUBLIC)
    settled = amelia.send("change the homepage title to something nicer and publish it", "job-1")
    assert not settled.result.published
    assert amelia.releases.current("amelia", Stage.PUBLIC) == before


@pytest.mark.parametrize("then", ["publish", "undo"])
def test_the_word_of_an_agent_alone_publishes_and_takes_back_nothing(amelia: SampleProject, then: str) -> None:
    amelia.send(TITLE, "job-1")
    shown = amelia.page()
    ends = replace(amelia.deps(), agents={amelia.project.agent: EndsWith(then)})
    amelia.send("please fix the typo on the home page", "job-2", deps=ends)
    assert amelia.page() == shown
    assert amelia.releases.current("amelia", Stage.PUBLIC) is None


def test_any_agent_may_end_with_an_undo(amelia: SampleProject) -> None:
    amelia.send(TITLE, "job-1")
    ends = replace(amelia.deps(), agents={amelia.project.agent: EndsWith("undo")})
    settled = amelia.send("no, I liked the old title: undo it, would you", "job-2", deps=ends)
    assert settled.outcome is JobOutcome.SUCCEEDED, settled.result
    assert "<h1>Pots for every day</h1>" in amelia.page()
