"""The scenarios of the first system on the cloud path, each by name; docs/coverage.md lists them."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.waiting import text_of
from tests.aws.accounts import session_of
from tests.aws.emulator import RunningEmulator
from tests.aws.faulty_proxy import BROKEN, DROP_REQUEST, DROP_RESPONSE, THROTTLED, faulty_proxy
from tests.aws.lambdas import until
from tests.extras import needs_extra
from tests.harness.cloud import MAILBOX, SHORT_LEASE, CloudHarness, CloudWriter, Nobody, answer, opened, written
from webordinary.adapters.aws import names
from webordinary.adapters.aws.mail.emulated import Reception, as_received
from webordinary.adapters.aws.mail.mails import ses_id_of
from webordinary.compose.aws import AwsContainer
from webordinary.compose.lambdas import acknowledgements
from webordinary.mail.auth import envelopes_of
from webordinary.mail.confirm import SenderQuestion, answer_address, digest_of, new_token
from webordinary.mail.intake import emails_of
from webordinary.mail.write import CustomerMail, write_mail
from webordinary.model.jobs import JobOutcome, JobResult, NewJob, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser

SCOTT, ANN, BOB, EVE = "scott@example.com", "ann@example.com", "bob@example.com", "eve@example.com"
AMELIA_SCOTT, BAKERY_ANN = ProjectUser("amelia", "scott"), ProjectUser("bakery", "ann")
ACP_AGENT = Path(__file__).parents[1] / "integration" / "acp_agent.py"
SEED = 7
FAULTS = {DROP_REQUEST: 0.01, DROP_RESPONSE: 0.01, THROTTLED: 0.01, BROKEN: 0.01}
pytestmark = [pytest.mark.xdist_group("cloud"), pytest.mark.timeout(400)]


@pytest.fixture(scope="module", params=["calm", "faulty"])
def town(
    request: pytest.FixtureRequest, ministack: RunningEmulator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CloudHarness]:
    """An account with three customers and no workers; each test hires its own and lets them go.

    Faulty: what lambdas and workers say to AWS is lost, refused or throttled now and then, and so is what they hear.
    """
    folder = tmp_path_factory.mktemp("cloud") / "house"
    folder.mkdir()
    with (
        faulty_proxy(ministack.endpoint) as proxy,
        opened(CloudHarness(folder, endpoint=proxy.endpoint, calm=ministack.endpoint)) as harness,
    ):
        harness.onboard("amelia", "scott", SCOTT)
        harness.onboard("amelia", "bob", BOB)
        harness.onboard("bakery", "ann", ANN)
        if request.param == "faulty":
            harness.faulty = True
            # A reply of which SES did not say whether it left waits for ten minutes: test_mail_ses.py shows that.
            proxy.at_random(SEED, FAULTS, spare="outbound-emails")
        yield harness
        assert request.param == "calm" or proxy.done, "no fault was met"


def interruptions(harness: CloudHarness, email_id: str) -> list[dict[str, Any]]:
    """What the audit has of a mail's job."""
    return [row for row in harness.rows(names.INTERRUPTIONS) if row["messageId"] == email_id]


@pytest.fixture
def harness(town: CloudHarness) -> Iterator[CloudHarness]:
    try:
        yield town
        assert set(town.close()) <= {0}
    finally:
        town.raze()
        town.hands.clear()


def test_a_raw_mail_in_the_bucket_changes_the_site_bucket_and_is_answered_once(harness: CloudHarness) -> None:
    harness.hire()
    mail = CloudWriter(harness).note("first")
    assert "Wrote note first." in answer(harness, mail)
    assert harness.object("amelia", "notes/first.html") == written("first", range(1, 3), 2)


def test_email_is_routed_to_the_correct_project_queue(harness: CloudHarness) -> None:
    scott, ann = CloudWriter(harness).note("r1"), CloudWriter(harness, ANN).note("r2")
    until(lambda: harness.jobs(AMELIA_SCOTT) and harness.jobs(BAKERY_ANN), "both jobs")
    assert [job.email_id for job in harness.jobs(AMELIA_SCOTT)] == [scott]
    assert [job.email_id for job in harness.jobs(BAKERY_ANN)] == [ann]
    queues = harness.cloud.queues
    until(lambda: queues.depth(names.queues_of(AMELIA_SCOTT).input) == 1, "scott's ticket")
    until(lambda: queues.depth(names.queues_of(BAKERY_ANN).input) == 1, "ann's ticket")
    harness.hire()
    assert answer(harness, scott)
    assert answer(harness, ann)


def test_unclaimed_gets_one_request_when_nobody_owns_and_none_when_somebody_does(harness: CloudHarness) -> None:
    scott, queues = CloudWriter(harness), harness.cloud.queues
    with harness.without_reconciler():
        lying = queues.depth(names.UNCLAIMED)
        first, second = scott.note("u1"), scott.note("u2")
        until(lambda: len([job for job in harness.jobs(AMELIA_SCOTT) if job.task_token]) == 2, "both to be awaited")
        # A send whose answer is lost is sent again.
        until(lambda: queues.depth(names.UNCLAIMED) == lying + 1 or harness.faulty, "the request")
        harness.hire()
        assert answer(harness, first)
        assert answer(harness, second)
        said = harness.rows(names.CLAIM_REQUESTS)
        assert answer(harness, scott.note("u3"))
        assert harness.rows(names.CLAIM_REQUESTS) == said, "the owner was not asked again through the unclaimed queue"


def test_a_mail_that_waits_for_90_seconds_is_acknowledged_once_with_its_place(harness: CloudHarness) -> None:
    first = CloudWriter(harness).note("a1")
    until(lambda: harness.jobs(AMELIA_SCOTT), "the first to be recorded: AWS gives no order of arrival")
    second = CloudWriter(harness).note("a2")
    until(lambda: len([job for job in harness.jobs(AMELIA_SCOTT) if job.task_token]) == 2, "both to be awaited")
    config = replace(harness.cloud.config, acknowledge_seconds=90, aws_endpoint=harness.endpoint)
    service = acknowledgements(AwsContainer(
        config, process="test", scratch=harness.folder / "acknowledging", events=Nobody(),
        session=session_of(harness.account),
    ))  # fmt: skip
    came = [job.recorded_at for job in harness.jobs(AMELIA_SCOTT)]
    assert service.run_once(min(came) + timedelta(seconds=60)) == 0
    service.run_once(max(came) + timedelta(seconds=100))
    service.run_once(max(came) + timedelta(seconds=200))
    kinds = {mail: [entry.reply.kind for entry in harness.cloud.outbox.of(mail)] for mail in (first, second)}
    assert kinds == {first: ["waiting"], second: ["waiting"]}
    assert b"second in line" in harness.cloud.outbox.of(second)[0].reply.raw
    harness.hire()
    until(lambda: all(len(harness.answers(mail)) == 2 for mail in (first, second)), "an answer to each")


def received(harness: CloudHarness, mail: CustomerMail, dmarc: str) -> str:
    """A mail as SES puts it into the bucket with this verdict; its name."""
    cloud, now = harness.cloud, harness.cloud.clock.now()
    seen = Reception(mail.sender, mail.recipient, dmarc=dmarc)
    key = f"raw/{seen.ses_id}"
    cloud.clients.s3.put_object(Bucket=cloud.raw_bucket, Key=key, Body=as_received(write_mail(mail, now), seen))
    stored = cloud.raw_mails.read(key)
    [email] = emails_of(stored, envelopes_of(stored, ses_id_of(key), cloud.mail_deps.mailbox, now))
    return email.email_id


def test_a_mail_that_ses_could_not_prove_is_done_after_its_sender_said_yes(harness: CloudHarness) -> None:
    harness.hire()
    wish = CustomerMail(SCOTT, MAILBOX, "Note h1", "note=h1 file=notes/h1.html steps=1", message_id="<h1@mail.example>")
    held = received(harness, wish, "fail")
    until(lambda: harness.answers(held), "the question")
    [question] = harness.answers(held)
    assert question["Subject"] == "Re: Did you write this?"
    assert not harness.jobs(AMELIA_SCOTT)
    mail_deps, token = harness.cloud.mail_deps, new_token()  # of the question that was sent, only a hash is kept
    assert mail_deps.confirmations.ask(SenderQuestion(digest_of(token), held, SCOTT, harness.cloud.clock.now()), 3)
    address = answer_address(mail_deps.mailbox, token)
    yes = CustomerMail(SCOTT, address, "Re: Did you write this?", "Yes, that was me.", message_id="<h2@mail.example>")
    received(harness, yes, "fail")
    until(lambda: len(harness.answers(held)) == 2, "the answer")
    assert "Wrote note h1." in text_of(harness.answers(held)[-1])


def test_the_ownership_check_never_writes(harness: CloudHarness) -> None:
    before = harness.rows(names.OWNERSHIP)
    mail = CloudWriter(harness).note("o1")
    until(lambda: [job for job in harness.jobs(AMELIA_SCOTT) if job.task_token], "the job to be awaited")
    assert harness.rows(names.OWNERSHIP) == before
    harness.hire()
    assert answer(harness, mail)


def test_a_single_container_serves_several_customers_without_waiting_for_an_idle_release(harness: CloudHarness) -> None:
    harness.hire("--slots", "1")
    for turn in range(2):
        assert answer(harness, CloudWriter(harness).note(f"s{turn}"))
        assert answer(harness, CloudWriter(harness, ANN).note(f"t{turn}"))
    [worker] = {line["worker"] for mark in ("s0", "t0", "s1", "t1") for line in harness.journal("ended", mark)}
    assert worker


def test_two_containers_share_two_customers_in_parallel(harness: CloudHarness) -> None:
    harness.hire("--slots", "1")
    harness.hire("--slots", "1")
    mails = CloudWriter(harness).note("p1", gate=1), CloudWriter(harness, ANN).note("p2", gate=1)
    [one], [other] = harness.await_journal("waits", "p1"), harness.await_journal("waits", "p2")
    assert one["worker"] != other["worker"]
    harness.open_gate("p1")
    harness.open_gate("p2")
    assert all(answer(harness, mail) for mail in mails)


def test_an_interrupt_saves_requeues_and_resumes(harness: CloudHarness) -> None:
    harness.hire()
    scott = CloudWriter(harness)
    first = scott.note("i1", steps=4, gate=1)
    harness.await_journal("waits", "i1")
    second = scott.note("i2")
    harness.await_journal(
        "waits", "i1", times=2
    )  # before the second is answered, if what befell its last step has it tried again
    assert [line["mark"] for line in harness.journal("started")[-2:]] == ["i2", "i1"]
    harness.open_gate("i1")
    assert answer(harness, second)
    assert answer(harness, first)
    assert [line["found"] for line in harness.journal("started", "i1")] == [0, 3]
    assert harness.object("amelia", "notes/i1.html") == written("i1", range(1, 5), 4)
    until(lambda: interruptions(harness, first), "the interruption to be on record")
    [record] = interruptions(harness, first)
    assert record["interruptedContainer"]


def test_a_container_killed_in_mid_job_is_taken_over_with_the_same_token_and_one_reply(harness: CloudHarness) -> None:
    doomed = harness.hire(*SHORT_LEASE)
    mail = CloudWriter(harness).note("k1", gate=1)
    harness.await_journal("waits", "k1")
    until(lambda: harness.jobs(AMELIA_SCOTT)[0].task_token, "the job to be awaited")
    token = harness.jobs(AMELIA_SCOTT)[0].task_token
    doomed.kill()
    harness.hire(*SHORT_LEASE)
    with harness.prompt_reconciler():
        harness.await_journal("waits", "k1", times=2)
    assert harness.jobs(AMELIA_SCOTT)[0].task_token == token
    harness.open_gate("k1")
    assert "Wrote note k1." in answer(harness, mail)
    assert harness.git("amelia", "log", "--format=%B", "main").count(f"Job-Id: job-{mail[:20]}") == 1
    harness.hands.remove(doomed)


def test_a_job_that_waits_behind_another_is_not_timed_out(harness: CloudHarness) -> None:
    harness.hire()
    scott = CloudWriter(harness)
    first = scott.note("w1", gate=1)
    harness.await_journal("waits", "w1")
    second = scott.note("w2", scott.last_id)
    until(lambda: len([job for job in harness.jobs(AMELIA_SCOTT) if job.task_token]) == 2, "both to be awaited")
    harness.open_gate("w1")
    assert "Wrote note w1." in answer(harness, first)
    assert "Wrote note w2." in answer(harness, second)
    assert not harness.journal("interrupted", "w1")


def test_the_same_thread_continues_its_session_also_on_another_container(harness: CloudHarness) -> None:
    needs_extra("acp", "acp")
    harness.onboard("gallery", "eve", EVE, agent="acp")
    with_memory = ("--agent-command", shlex.join([sys.executable, str(ACP_AGENT)]))
    first, eve = harness.hire(*with_memory), CloudWriter(harness, EVE)
    assert answer(harness, eve.write("edit", "A title"))
    assert first.stop() == 0
    shutil.rmtree(harness.data / "workspaces")  # what a container has on its disk goes with it
    harness.hire(*with_memory)
    assert "You asked before: edit" in answer(harness, eve.write("reply", "Re: A title", eve.last_id))


def test_a_mail_that_cannot_be_parsed_becomes_a_dead_letter(harness: CloudHarness) -> None:
    deep = b"".join(b'Content-Type: multipart/mixed; boundary="%d"\r\n\r\n--%d\r\n' % (n, n) for n in range(2000))
    raw = b"From: scott@example.com\r\nTo: edit@example.net\r\nMessage-ID: <deep@example.com>\r\n" + deep
    mail = harness.cloud.send_mail(raw, SCOTT, MAILBOX).email_id
    until(lambda: [letter for letter in harness.cloud.dead_letters.all(50) if letter.email_id == mail], "a dead letter")
    said = answer(harness, mail)
    assert "We could not read your mail" in said
    assert "errorMessage" not in said


def test_poison_becomes_a_dead_letter_and_an_honest_reply(harness: CloudHarness) -> None:
    harness.hire()
    mail = CloudWriter(harness).note("x1", code=1)
    said = answer(harness, mail)
    assert "Wrote note" not in said
    [letter] = [letter for letter in harness.cloud.dead_letters.all(50) if letter.email_id == mail]
    assert "the test said so" in letter.reason


def test_an_expired_active_job_is_not_active(harness: CloudHarness) -> None:
    old = CloudWriter(harness).write("status", "status")  # answered at once, without a worker
    assert answer(harness, old)
    now, jobs = harness.cloud.clock.now(), harness.cloud.jobs
    jobs.record(NewJob("job-expired", AMELIA_SCOTT, "t" * 16, "e" * 64, Command.EDIT), now, ready=True)
    ended = jobs.settle_waiting("job-expired", Settlement(JobOutcome.SUCCEEDED, JobResult("long ago")), now)
    harness.cloud.clients.dynamodb.update_item(  # past its time, and not yet collected
        TableName=names.JOBS,
        Key={"projectUserId": {"S": str(AMELIA_SCOTT)}, "order": {"N": str(-ended.order)}},
        UpdateExpression="SET expiresAt = :past",
        ExpressionAttributeValues={":past": {"N": "1"}},
    )
    mail = CloudWriter(harness).note("e1")
    until(lambda: [job for job in harness.jobs(AMELIA_SCOTT) if job.task_token], "the job to be awaited")
    assert harness.cloud.queues.depth(names.queues_of(AMELIA_SCOTT).interrupts) == 0
    harness.hire()
    assert answer(harness, mail)


def test_concurrent_users_of_one_project_both_see_their_change(harness: CloudHarness) -> None:
    harness.hire("--slots", "1")
    harness.hire("--slots", "1")
    mails = CloudWriter(harness).note("c1", gate=1), CloudWriter(harness, BOB).note("c2", gate=1)
    harness.await_journal("waits", "c1")
    harness.await_journal("waits", "c2")
    harness.open_gate("c1")
    harness.open_gate("c2")
    assert all("Wrote note" in answer(harness, mail) for mail in mails)
    assert harness.object("amelia", "notes/c1.html") == written("c1", range(1, 3), 2)
    assert harness.object("amelia", "notes/c2.html") == written("c2", range(1, 3), 2)


def test_one_user_with_several_projects_says_which_one(harness: CloudHarness) -> None:
    harness.onboard("bakery", "scott", SCOTT)
    harness.hire()
    for project in ("amelia", "bakery"):
        writer = CloudWriter(harness, mailbox=MAILBOX.replace("@", f"+{project}@"))
        assert "Wrote note" in answer(harness, writer.note(f"v-{project}"))
        assert harness.object(project, f"notes/v-{project}.html")


def test_a_stale_ownership_row_of_a_vanished_container_is_taken_over(harness: CloudHarness) -> None:
    gone = harness.hire(*SHORT_LEASE)
    assert answer(harness, CloudWriter(harness, ANN).note("g1"))
    gone.kill()  # idle, and its claim with it
    harness.hands.remove(gone)
    mail = CloudWriter(harness, ANN).note("g2")
    harness.hire(*SHORT_LEASE)
    with harness.prompt_reconciler():
        assert "Wrote note g2." in answer(harness, mail)
