"""Running work from the console: cancel, interrupt, release, drain; the workflow of a mail; its rehearsal."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.harness.console import FORM, open_console
from tests.harness.embedded import AMELIA_SCOTT, DONE, EmbeddedHarness, open_harness
from webordinary.compose.embedded import COPIES
from webordinary.entrypoints.cli import main
from webordinary.model.errors import Permanent
from webordinary.model.events import Event, EventKind
from webordinary.model.jobs import JobOutcome, JobState
from webordinary.model.names import job_id_of
from webordinary.model.snapshot import MailSummary
from webordinary.operations import onboarding, pool
from webordinary.operations.console import Console
from webordinary.pool.metrics import Sampling


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path / "data") as harness:
        yield harness


@pytest.fixture
def page(harness: EmbeddedHarness) -> Iterator[TestClient]:
    with open_console(harness.services) as client:
        yield client


def command(harness: EmbeddedHarness, *words: str) -> int:
    return main([*words, "--data", str(harness.services.config.data)])


def test_a_waiting_mail_is_cancelled_by_one_click_and_its_customer_is_told(
    harness: EmbeddedHarness, page: TestClient
) -> None:
    email_id = harness.receive()
    assert ">Cancel<" in page.get(f"/mails/{email_id}").text
    back = page.post(f"/mails/{email_id}/cancellations", headers=FORM, data={"back": f"/mails/{email_id}"})
    assert (back.status_code, back.headers["location"]) == (303, f"/mails/{email_id}")
    harness.engine.run_ready()
    job = harness.services.jobs.get(job_id_of(email_id))
    assert job
    assert job.outcome is JobOutcome.CANCELLED
    assert len(harness.replies(email_id)) == 1
    assert page.post(f"/mails/{email_id}/cancellations", headers=FORM).status_code == 409


def test_a_running_mail_is_asked_to_end_by_command(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    harness.start_job()
    assert command(harness, "mails", "cancel", email_id) == 0
    job = harness.services.jobs.get(job_id_of(email_id))
    assert job
    assert (job.state, job.cancel_requested) == (JobState.RUNNING, True)


def test_a_running_mail_is_asked_to_make_way_by_click_and_by_command(
    harness: EmbeddedHarness, page: TestClient
) -> None:
    email_id = harness.receive()
    assert page.post(f"/mails/{email_id}/interrupts", headers=FORM).status_code == 409, "it does not run yet"
    begun = harness.start_job()
    assert page.post(f"/mails/{email_id}/interrupts", headers=FORM).status_code == 303
    [asked] = harness.services.pool.interrupts.take(AMELIA_SCOTT)
    assert asked.job_id == begun.job.job_id
    assert command(harness, "mails", "interrupt", email_id) == 0
    assert harness.services.pool.interrupts.take(AMELIA_SCOTT) == [asked]
    [written] = harness.services.interruptions.listing(10, email_id)
    assert written.reason == "by the operator", "asked twice about one start, written once"


def test_the_mail_of_an_author_who_was_let_in_is_done_once(harness: EmbeddedHarness, page: TestClient) -> None:
    email_id = harness.receive(sender="scott@new.example")
    assert summary_of(harness, email_id).stopped == "refused"
    for _ in range(2):
        assert page.post(f"/mails/{email_id}/admissions", headers=FORM, data={"key": "amelia#scott"}).status_code == 303
    harness.engine.run_ready()
    assert harness.work().job.job_id == job_id_of(email_id, 1)
    assert [entry.reply.recipient for entry in harness.replies(email_id)] == ["scott@new.example"]
    harness.services.events.close()
    shown = page.get(f"/mails/{email_id}").text
    assert "refused</span>" not in shown
    assert "Done once more, by the operator" in shown
    again = page.post(f"/mails/{email_id}/admissions", headers=FORM, data={"key": "amelia#scott"})
    assert (again.status_code, "only a refused mail is let in" in again.text) == (409, True)


def test_letting_an_author_in_does_not_prove_that_the_author_wrote_the_mail(tmp_path: Path) -> None:
    with open_harness(tmp_path / "data", trusted_peers=()) as harness:
        email_id = harness.receive(sender="scott@new.example")
        assert command(harness, "mails", "let-in", "amelia#scott", email_id) == 0
        harness.engine.run_ready()
        assert summary_of(harness, email_id).stopped == "held"
        assert harness.services.jobs.get(job_id_of(email_id, 1)) is None
        assert command(harness, "mails", "release", email_id) == 0
        harness.engine.run_ready()
        assert harness.work().job.email_id == email_id


def summary_of(harness: EmbeddedHarness, email_id: str) -> MailSummary:
    detail = harness.services.overview.mail(email_id)
    assert detail
    return detail.summary


def test_an_idle_claim_is_released_and_a_busy_one_is_not(harness: EmbeddedHarness, page: TestClient) -> None:
    assert command(harness, "pool", "release", "amelia#scott") == 1, "no worker holds it"
    harness.receive()
    begun = harness.start_job()
    assert command(harness, "pool", "release", "amelia#scott") == 1, "it is busy"
    harness.services.pool.claims.end_and_take_next(begun, DONE, harness.services.clock.now(), more=False)
    assert page.post("/claims/amelia%23scott/releases", headers=FORM).status_code == 303
    assert harness.services.pool.claims.look(AMELIA_SCOTT) is None


def test_a_claim_that_its_worker_gives_up_by_itself_is_not_said_to_be_released(harness: EmbeddedHarness) -> None:
    harness.receive()
    begun = harness.start_job()
    harness.services.pool.claims.end_and_take_next(begun, DONE, harness.services.clock.now(), more=False)
    assert harness.services.pool.claims.begin_release(begun.claim)
    with pytest.raises(Permanent, match="changed meanwhile"):
        pool.release_claim(harness.services, AMELIA_SCOTT, "olga")
    harness.services.events.close()
    found = harness.services.overview.events_after(0, 100)
    assert EventKind.CLAIM_RELEASED not in [one.kind for one in found]


def test_a_worker_ends_by_itself_once_it_is_asked_to(harness: EmbeddedHarness) -> None:
    argv = [sys.executable, "-m", "webordinary", "worker", "--name", "w9", "--data", str(harness.services.config.data)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stdout
        assert "w9 serves" in worker.stdout.readline()
        assert command(harness, "pool", "drain", "w9") == 0
        _, errors = worker.communicate(timeout=60)
    assert (worker.returncode, errors) == (0, "")
    assert command(harness, "pool", "drain", "w9") == 1, "it is gone"


def test_the_way_of_a_mail_through_the_workflow_stays_when_its_history_is_forgotten(
    harness: EmbeddedHarness, page: TestClient
) -> None:
    email_id = harness.receive()
    detail = harness.services.overview.mail(email_id)
    assert detail
    assert detail.path[-1].state == "AwaitResult"
    assert 'class="node busy current"' in page.get(f"/mails/{email_id}").text
    harness.work()
    assert harness.services.executions.load(email_id).events == ()  # type: ignore[union-attr]
    detail = harness.services.overview.mail(email_id)
    assert detail
    way = [visit.state for visit in detail.path]
    assert way[0] == "AuthenticateSender"
    assert way[-2:] == ["Reply", "Answered"]
    assert "now at" not in page.get(f"/mails/{email_id}").text


def test_the_html_of_a_reply_is_shown_where_nothing_can_run(harness: EmbeddedHarness, page: TestClient) -> None:
    email_id = harness.receive("Change <script>alert(1)</script>")
    harness.work()
    shown = page.get(f"/mails/{email_id}/replies/0")
    assert shown.status_code == 200
    assert "title is now Spring Sale" in shown.text
    policy = shown.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "sandbox" in policy
    assert f'<iframe class="as-seen" sandbox src="/mails/{email_id}/replies/0"' in page.get(f"/mails/{email_id}").text
    assert page.get(f"/mails/{email_id}/replies/7").status_code == 404


def test_the_pool_shows_workers_claims_and_queues_with_what_can_be_done(
    harness: EmbeddedHarness, page: TestClient
) -> None:
    harness.receive()
    begun = harness.start_job()
    harness.receive()
    text = page.get("/pool").text
    for shown in ("worker 7", "1 of 4 slots work", str(begun.claim.fence), "works", "Stop when done", "1 waiting"):
        assert shown in text, shown
    assert "/claims/" not in text, "a busy claim cannot be released"
    harness.services.pool.claims.end_and_take_next(begun, DONE, harness.services.clock.now(), more=False)
    assert 'action="/claims/amelia%23scott/releases"' in page.get("/pool").text
    assert page.post("/workers/nobody/drains", headers=FORM).status_code == 409
    assert page.post("/claims/no key/releases", headers=FORM).status_code == 404


def test_the_charts_of_the_pool_are_made_of_what_is_sampled(harness: EmbeddedHarness, page: TestClient) -> None:
    services = harness.services
    harness.receive()
    begun = harness.start_job()
    services.events.emit(Event(EventKind.JOB_SETTLED, data={"outcome": "succeeded", "latency_ms": 700}))
    services.events.close()
    assert Sampling(services.metrics, services.pool_history).run_once(services.clock.now()) == 1
    services.pool.claims.end_and_take_next(begun, DONE, services.clock.now(), more=False)
    for span in ("24h", "30d", "nonsense"):
        text = page.get(f"/pool?span={span}").text
        assert text.count('class="card chart"') == 5
        assert "succeeded 1, cancelled 0" in text


def test_a_mail_is_shown_although_the_repository_of_its_site_cannot_be_read(harness: EmbeddedHarness) -> None:
    assert onboarding.diff_of(harness.services, "amelia", "c" * 40) == "", "its repository was never made"


def test_the_copies_that_a_killed_rehearsal_left_are_removed_at_the_next_start(harness: EmbeddedHarness) -> None:
    data, now = harness.services.config.data, harness.services.clock.now().timestamp()
    for name in ("rehearsal-x", "replay-old", "replay-new", "upgrade-old"):
        (data / name / "sites").mkdir(parents=True)
        os.utime(data / name, (now - 7200 * name.endswith("old"),) * 2)
    harness.services.prepare()
    assert [path.name for pattern in COPIES for path in data.glob(pattern)] == ["replay-new"], "its command may run"


def test_a_rehearsal_whose_thread_cannot_start_holds_the_next_one_up_no_longer(
    harness: EmbeddedHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    email_id, console = harness.receive(), Console(harness.services)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    for _ in range(2):
        with pytest.raises(Permanent, match="can start no thread"):
            console.rehearse(email_id, "olga")
    assert console.rehearsal(email_id) is None
