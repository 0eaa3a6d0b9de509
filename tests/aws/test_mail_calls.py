"""What one mail costs in calls of AWS, step by step as its lambdas make them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.aws.emulator import REGION, RunningEmulator
from tests.extras import needs_extra

needs_extra("boto3", "aws")
needs_extra("aws_lambda_powertools", "aws")

from tests.aws.faulty_proxy import FaultyProxy, faulty_proxy  # noqa: E402
from tests.aws.mail_tables import MailTables  # noqa: E402
from tests.fakes.events import EventRecorder  # noqa: E402
from tests.fakes.parser import InProcessParser  # noqa: E402
from tests.unit.lambdas.harness import LambdaHarness  # noqa: E402
from tests.unit.mail.letters import SCOTT, multipart, raw_mail  # noqa: E402
from webordinary.adapters.aws import names  # noqa: E402
from webordinary.adapters.aws.mail.directory import FRESH_SECONDS, AwsDirectory  # noqa: E402
from webordinary.adapters.aws.mail.emulated import Reception, as_received  # noqa: E402
from webordinary.adapters.aws.mail.mails import AwsConfirmations, AwsHourlyRates, AwsIntake  # noqa: E402
from webordinary.adapters.aws.mail.ses import SesTransport  # noqa: E402
from webordinary.mail.addresses import Mailbox  # noqa: E402
from webordinary.mail.auth import SesVerdicts  # noqa: E402
from webordinary.mail.outbox import PromptOutbox  # noqa: E402
from webordinary.model.claims import StartedJob  # noqa: E402
from webordinary.model.jobs import (  # noqa: E402
    JobOutcome,
    JobResult,
    Settlement,
)
from webordinary.model.names import ProjectUser  # noqa: E402
from webordinary.model.projects import Project, Sender  # noqa: E402
from webordinary.workflow.answering import Answering  # noqa: E402
from webordinary.workflow.reading import MailDeps, Reading  # noqa: E402

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
KEY = ProjectUser("amelia", "scott")
EDIT = Mailbox.parse("edit@example.org")
DONE = Settlement(JobOutcome.SUCCEEDED, JobResult("The title is new.", commit="c" * 40))


class Counted:
    """One mail's way through the steps of mail; every step is a process of its own. The pool is in memory."""

    def __init__(self, world: MailTables, proxy: FaultyProxy) -> None:
        self.world, self.proxy, self.pool = world.through(proxy.endpoint), proxy, LambdaHarness().pool
        world.clients.ses.create_email_identity(EmailIdentity=EDIT.address)
        world.directory().add_project(Project("amelia", "https://git.example.com/amelia.git"), NOON)
        world.directory().add_sender(Sender(SCOTT, KEY), NOON)

    def mail_deps(self) -> MailDeps:
        world, items = self.world, self.world.items()
        return MailDeps(
            world.raw_mails(items), world.parsed_mails(items), world.manifest(), world.blobs(), world.threads(),
            world.directory(), InProcessParser(), SesVerdicts(), EDIT, AwsConfirmations(items), AwsHourlyRates(items),
        )  # fmt: skip

    def reading(self) -> Reading:
        mail_deps = self.mail_deps()
        return Reading(mail_deps, self.pool.jobs, EventRecorder(), lambda: NOON, began=mail_deps.raw_mails.mark_started)

    def answering(self) -> Answering:
        mail_deps, cloud, now = self.mail_deps(), LambdaHarness(), lambda: NOON
        ses = SesTransport(self.world.clients.ses, EDIT.address, REGION)
        outbox = PromptOutbox(self.world.outbox(), ses, EventRecorder(), now)
        return Answering(
            mail_deps, outbox, self.pool, cloud.dead_letters, cloud.interruptions, EventRecorder(), now,
            outbox.deliver_written,
            renamed=True,
        )  # fmt: skip

    def accept(self, raw: bytes) -> str:
        seen = Reception(SCOTT, EDIT.address)
        key, mails = self.world.put_raw(seen.ses_id, as_received(raw, seen)), self.world.raw_mails()
        self.proxy.forget_calls()
        (accepted,) = AwsIntake(mails, EDIT, EventRecorder()).take(key, NOON)
        return accepted.email_id

    def settle(self) -> None:
        """As a worker does it."""
        for job in self.pool.jobs.open_jobs(KEY):
            self.pool.jobs.enqueue(job.job_id, NOON)
        started = self.pool.claims.claim_and_start(KEY, "w1", NOON)
        assert isinstance(started, StartedJob)
        self.pool.claims.end_and_take_next(started, DONE, NOON, more=False)

    def counted(self) -> int:
        count = sum(self.proxy.calls.values())
        self.proxy.forget_calls()
        return count


def test_the_steps_of_a_mail_make_few_calls(ministack: RunningEmulator) -> None:
    with faulty_proxy(ministack.endpoint) as proxy:
        counted = Counted(MailTables(ministack.endpoint), proxy)
        email_id = counted.accept(raw_mail())
        calls = {"intake": counted.counted()}
        payload = {"emailId": email_id, "redrive": 0, "retries": 0}
        sender = counted.reading().authenticate_sender(payload)
        assert sender == {"verdict": "admitted"}
        calls["AuthenticateSender"] = counted.counted()
        counted.reading().parse_email(payload)
        calls["ParseEmail"] = counted.counted()
        job = counted.reading().identify_project_user(payload)
        calls["IdentifyProjectUser"] = counted.counted()
        counted.settle()
        assert counted.answering().reply({**payload, "sender": sender, "job": job}) == {"replied": True}
        calls["Reply"] = counted.counted()
        assert calls == {
            "intake": 2,  # the mail, its note
            "AuthenticateSender": 3,  # that it runs, which reads the note; the head of the mail, the sender
            "ParseEmail": 3,  # the note, the mail, its reading
            "IdentifyProjectUser": 4,  # note and reading, the sender, is the thread there, record it
            "Reply": 4,  # note and reading, the outbox; SES; sent, with SES's Message-ID
        }
        (entry,) = counted.world.outbox().of(email_id)
        assert entry.sent_at == NOON
        answered = counted.accept(
            raw_mail("And the footer", message_id="<2@example.com>", in_reply_to=entry.sent_as or "")
        )
        counted.counted()
        counted.reading().parse_email({"emailId": answered})
        counted.counted()
        again = counted.reading().identify_project_user({**payload, "emailId": answered})
        assert again["threadId"] == job["threadId"]
        assert counted.counted() == 5  # the thread is found by a Message-ID that is not its root's


@pytest.mark.parametrize("files", [1, 3])
def test_an_attachment_costs_two_calls(ministack: RunningEmulator, files: int) -> None:
    part = ('content-type: application/pdf\r\ncontent-disposition: attachment; filename="a.pdf"', b"%PDF-1.7 ...")
    with faulty_proxy(ministack.endpoint) as proxy:
        counted = Counted(MailTables(ministack.endpoint), proxy)
        email_id = counted.accept(multipart(*([part] * files)))
        counted.reading().parse_email({"emailId": email_id})
        counted.counted()
        counted.reading().store_attachment({"emailId": email_id})
        assert counted.counted() == 2 + 2 * files  # the note, the mail; of each the file, its line
        assert len(counted.world.manifest().of(email_id)) == files


def test_a_file_that_comes_again_is_written_again_so_that_the_days_until_it_expires_begin_anew(
    ministack: RunningEmulator,
) -> None:
    """S3 counts the days of a lifecycle rule from when an object was last written."""
    tables, picture = MailTables(ministack.endpoint), b"the same picture"
    blobs = tables.blobs()
    digest = blobs.put(picture)
    tables.clients.s3.put_object(Bucket=tables.store_bucket, Key=f"blobs/{digest}", Body=b"what a write replaces")
    assert blobs.put(picture) == digest
    assert blobs.get(digest) == picture


def test_whether_a_project_wants_output_is_known_for_a_minute_after_it_was_read(ministack: RunningEmulator) -> None:
    with faulty_proxy(ministack.endpoint) as proxy:
        counted, seconds = Counted(MailTables(ministack.endpoint), proxy), [0.0]
        world = counted.world
        directory = AwsDirectory(
            world.clients.dynamodb, world.dynamo, names.PROJECTS + world.suffix, monotonic=lambda: seconds[0]
        )
        directory.project("amelia")
        counted.counted()
        assert not directory.wants_output("amelia")
        world.directory().add_project(Project("amelia", "https://git.example.com/amelia.git", output=True), NOON)
        counted.counted()
        seconds[0] = FRESH_SECONDS - 1
        assert not directory.wants_output("amelia")
        assert counted.counted() == 0
        seconds[0] = FRESH_SECONDS
        assert directory.wants_output("amelia")
        assert counted.counted() == 1
        assert not directory.wants_output("unknown")
