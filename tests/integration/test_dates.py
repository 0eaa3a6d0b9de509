"""Wishes with a date: `later` is done when its time has come, `until` is taken back then; on real git."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.harness.embedded import AMELIA_SCOTT, WORKER
from tests.harness.site import SiteHarness, open_site_harness
from webordinary.adapters.files.system import SystemClock
from webordinary.compose import background
from webordinary.jobs.ports import AgentResult, AgentTask, Answered, Changed
from webordinary.jobs.site_files import Stage
from webordinary.model.claims import CancelToken, StartedJob
from webordinary.model.errors import NotNow
from webordinary.model.jobs import DeferReason, Job, JobOutcome, Requeue, RequeueReason, Settlement
from webordinary.operations.site_settings import SiteChanges, change_site
from webordinary.pool.reconciler import deliver_callback
from webordinary.worker.slot import refusal_to_start

pytestmark = pytest.mark.needs("git")
WEEK = timedelta(days=7)


class Shifted(SystemClock):
    """The time of the machine, and what a test adds to it."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead


class Dated:
    """Ends its first run with a date; does what is due."""

    is_free = True

    def __init__(self, then: str, at: str) -> None:
        self.then, self.at, self.seen = then, at, list[AgentTask]()

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        self.seen.append(task)
        if self.then == "later" and not task.is_due:
            (task.workspace / "index.html").write_text("begun too early")
            return Answered("The banner comes then.", then="later", at=self.at)
        page = task.workspace / "index.html"
        page.write_text(page.read_text().replace("<title>", "<title>Closed "))
        return Changed("The banner is there.", then=self.then if self.then == "until" else "", at=self.at)


@pytest.fixture
def clock() -> Shifted:
    return Shifted()


@pytest.fixture
def site(tmp_path: Path, clock: Shifted) -> Iterator[SiteHarness]:
    with open_site_harness(tmp_path / "data") as harness:
        moved(harness, clock)
        yield harness


def moved(site: SiteHarness, clock: Shifted) -> None:
    """All parts of the system see this clock."""
    site.services.clock = clock
    site.harness.engine = background.engine(site.services)


def ask(site: SiteHarness, then: str, at: str = "", text: str = "put up a banner") -> tuple[Dated, Job]:
    """A mail whose agent ends with this date; by default in a week."""
    agent = Dated(then, at or (site.services.clock.now() + WEEK).isoformat())
    site.deps = replace(site.deps, agents={"auto": agent})
    site.harness.receive(text, "<asked@example.com>")
    return agent, turn(site)


def turn(site: SiteHarness) -> Job:
    """A worker takes the key's next job to its end or date; the workflow goes on."""
    now, pool = site.services.clock.now, site.services.pool
    started = pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, now())
    assert isinstance(started, StartedJob), "a job may start"
    ending: Settlement | Requeue
    try:
        refusal = refusal_to_start(started.job)
        if refusal:
            ending = site.work().find_done(started, site.token(started)) or refusal
        else:
            ending = site.work().perform(started, site.token(started))
    except NotNow as held:
        ending = Requeue(RequeueReason.HELD, held.look_again_at, held.held, held.result)
    return finish(site, started, ending)


def finish(site: SiteHarness, started: StartedJob, ending: Settlement | Requeue) -> Job:
    pool, now = site.services.pool, site.services.clock.now
    pool.claims.end_and_take_next(started, ending, now(), more=False)
    assert pool.claims.begin_release(started.claim)
    pool.claims.end_release(started.claim)
    job = site.services.jobs.get(started.job.job_id)
    assert job
    deliver_callback(job, pool)
    site.harness.engine.run_ready()
    return job


def starts_nothing(site: SiteHarness) -> bool:
    return site.services.pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, site.services.clock.now()) is None


def told(site: SiteHarness, job: Job) -> list[str]:
    return [entry.reply.kind for entry in site.harness.replies(job.email_id)]


def plain_text(raw: bytes) -> str:
    body = email.message_from_bytes(raw, policy=email.policy.default).get_body(("plain",))
    assert body
    return " ".join(str(body.get_content()).split())


def last_words(site: SiteHarness, job: Job) -> str:
    return plain_text(site.harness.replies(job.email_id)[-1].reply.raw)


def status(site: SiteHarness) -> str:
    email_id = site.harness.receive("status")
    return plain_text(site.harness.replies(email_id)[-1].reply.raw)


def is_closed(site: SiteHarness) -> bool:
    return "<title>Closed " in site.page()


def test_a_wish_for_later_changes_nothing_until_its_date_and_is_done_then(site: SiteHarness, clock: Shifted) -> None:
    change_site(site.services, "amelia", SiteChanges(time_zone="Europe/Berlin"))
    before = site.shown()
    agent, job = ask(site, "later", f"{clock.now() + WEEK:%Y-%m-%d}")
    assert (job.open, job.held, site.shown()) == (True, DeferReason.LATER, before)
    assert "at 08:00 (Europe/Berlin)" in last_words(site, job)
    assert "will be done on" in status(site)
    clock.ahead = timedelta(days=3)
    assert (turn(site).held, site.shown()) == (DeferReason.LATER, before), "a worker looks now and then"
    clock.ahead = WEEK + timedelta(days=1)
    done = turn(site)
    assert (done.outcome, is_closed(site)) == (JobOutcome.SUCCEEDED, True)
    assert [task.is_due for task in agent.seen] == [False, True]
    assert told(site, job) == ["later", "answer"]
    assert "Done on your edit site" in last_words(site, job)


def test_an_agent_that_puts_off_what_is_due_is_not_asked_again(site: SiteHarness, clock: Shifted) -> None:
    agent, _ = ask(site, "later")
    clock.ahead = 2 * WEEK
    agent.run = lambda task, token: Answered("Not today.", then="later", at="2099-01-01")  # type: ignore[method-assign]
    done = turn(site)
    assert done.outcome is JobOutcome.FAILED
    assert starts_nothing(site)


def test_a_change_until_a_date_is_done_now_and_taken_back_by_itself(site: SiteHarness, clock: Shifted) -> None:
    _, job = ask(site, "until")
    assert (job.open, is_closed(site)) == (True, True)
    words = last_words(site, job)
    assert "This stays until" in words
    assert "Done on your edit site" in words
    assert "stays until" in status(site)
    clock.ahead = 2 * WEEK
    done = turn(site)
    assert (done.outcome, is_closed(site)) == (JobOutcome.SUCCEEDED, False)
    assert told(site, job) == ["until", "answer"]
    assert "Taken back on your edit site" in last_words(site, job)
    assert starts_nothing(site), "once"


def test_what_was_published_until_a_date_leaves_the_public_site_too(site: SiteHarness, clock: Shifted) -> None:
    _, job = ask(site, "until")
    site.mail("publish", answers=site.answer_to(job))
    assert "<title>Closed " in site.page(Stage.PUBLIC)
    clock.ahead = 2 * WEEK
    turn(site)
    assert "<title>Closed " not in site.page(Stage.PUBLIC)
    assert "Taken back on your edit site and your public site" in last_words(site, job)


def test_stop_ends_a_wish_for_later(site: SiteHarness, clock: Shifted) -> None:
    _, job = ask(site, "later")
    site.harness.receive("stop", answers=site.answer_to(job))
    done = turn(site)
    clock.ahead = 2 * WEEK
    assert (done.outcome, is_closed(site), starts_nothing(site)) == (JobOutcome.CANCELLED, False, True)


def test_stop_lets_a_change_until_a_date_stay(site: SiteHarness, clock: Shifted) -> None:
    _, job = ask(site, "until")
    site.harness.receive("stop", answers=site.answer_to(job))
    done = turn(site)
    clock.ahead = 2 * WEEK
    assert (done.outcome, is_closed(site), starts_nothing(site)) == (JobOutcome.CANCELLED, True, True)
    assert "the change stays on your site" in last_words(site, job)


def test_what_was_undone_before_its_date_is_not_undone_again(site: SiteHarness, clock: Shifted) -> None:
    _, job = ask(site, "until")
    site.mail("undo", answers=site.answer_to(job))
    assert not is_closed(site)
    before = site.shown()
    clock.ahead = 2 * WEEK
    assert (turn(site).outcome, site.shown()) == (JobOutcome.SUCCEEDED, before)
    assert "not on your site any more" in last_words(site, job)


def test_a_mail_that_waits_for_its_date_holds_up_no_other_of_its_conversation(site: SiteHarness) -> None:
    _, job = ask(site, "later")
    site.deps = replace(site.deps, agents={"auto": Dated("", "")})
    assert site.mail("do that now", answers=site.answer_to(job)).outcome is JobOutcome.SUCCEEDED
    assert is_closed(site)


def test_a_worker_that_dies_after_the_change_and_before_its_date_is_stored_repeats_nothing(
    site: SiteHarness, clock: Shifted
) -> None:
    agent = Dated("until", (clock.now() + WEEK).isoformat())
    site.deps = replace(site.deps, agents={"auto": agent})
    started = site.begin("put up a banner")
    for _ in range(2):
        with pytest.raises(NotNow):
            site.work().perform(started, site.token(started))
    assert (len(agent.seen), is_closed(site)) == (1, True)
    job = finish(site, started, Requeue(RequeueReason.STOPPED))
    assert not told(site, job)
    assert told(site, turn(site)) == ["until"]
    clock.ahead = 2 * WEEK
    begun = site.services.pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, clock.now())
    assert isinstance(begun, StartedJob)
    once = site.work().perform(begun, site.token(begun))
    taken_back = site.shown()
    again = site.work().find_done(begun, site.token(begun))  # it died before it was stored
    assert again
    assert (again.result.commit, site.shown(), is_closed(site)) == (once.result.commit, taken_back, False)
    assert site.work().perform(begun, site.token(begun)).result.commit == once.result.commit
    finish(site, begun, once)
    assert told(site, job) == ["until", "answer"]


@pytest.mark.parametrize("then", ["later", "until"])
def test_two_weeks_of_downtime_lose_no_date(tmp_path: Path, clock: Shifted, then: str) -> None:
    with open_site_harness(tmp_path / "data") as before:
        moved(before, clock)
        agent, job = ask(before, then)
        closed = is_closed(before)
    clock.ahead = 2 * WEEK
    with open_site_harness(tmp_path / "data") as after:
        moved(after, clock)
        after.deps = replace(after.deps, agents={"auto": agent})
        assert turn(after).outcome is JobOutcome.SUCCEEDED
        assert is_closed(after) is not closed
        assert told(after, job) == [then, "answer"]


def test_a_paused_site_waits_though_the_date_has_come(site: SiteHarness, clock: Shifted) -> None:
    _, job = ask(site, "until")
    project = site.services.directory.project("amelia")
    assert project
    site.services.directory.add_project(replace(project, paused=True), clock.now())
    clock.ahead = 2 * WEEK
    assert (turn(site).held, is_closed(site)) == (DeferReason.PAUSE, True)
    site.services.directory.add_project(project, clock.now())
    clock.ahead = 3 * WEEK
    assert (turn(site).outcome, is_closed(site)) == (JobOutcome.SUCCEEDED, False)
    assert told(site, job) == ["until", "held", "answer"], "that the site is paused is told as ever"


@pytest.mark.parametrize("then", ["later", "until"])
@pytest.mark.parametrize(
    ("at", "asked"),
    [("Sunday", "which day you mean"), ("2020-01-01", "is over"), ("2999-01-01", "further ahead"), ("", "which day")],
)
def test_a_date_that_cannot_be_kept_is_asked_about_and_changes_nothing(
    site: SiteHarness, then: str, at: str, asked: str
) -> None:
    before, agent = site.shown(), Dated(then, at)
    site.deps = replace(site.deps, agents={"auto": agent})
    job = site.mail("put up a banner")
    assert job.result
    assert asked in (job.result.question or "")
    assert site.shown() == before
