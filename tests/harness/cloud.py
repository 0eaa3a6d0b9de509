"""The whole cloud path on an emulator: lambdas from their zip, the deployed workflow, workers as real processes."""

from __future__ import annotations

import email
import email.policy
import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Any

from tests.acceptance.waiting import text_of
from tests.aws.accounts import session_of
from tests.aws.emulator import REGION
from tests.aws.lambdas import ROOT, close_down, packaged, until
from tests.harness.chaos import ChaosHarness, Hand
from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import from_item
from webordinary.adapters.aws.provision.deployment import Tools, connect_tools
from webordinary.compose.aws import AwsContainer
from webordinary.compose.provision import bring_up
from webordinary.config import Config
from webordinary.mail.write import CustomerMail, write_mail
from webordinary.model.events import Event
from webordinary.model.names import ProjectUser
from webordinary.operations import onboarding

MAILBOX = "edit@example.net"
SHORT_LEASE = ("--lease-seconds", "6", "--renew-seconds", "2")
"""A claim on AWS is taken over once its beat stood still for so long; without that, a slow moment loses no claim."""


class Nobody:
    def emit(self, event: Event) -> None: ...


@dataclass
class CloudHarness(ChaosHarness):
    """An account with its settings, its journal of agents, and the workers started on it.

    `endpoint` is what lambdas and workers talk to; the test itself talks to `calm`, the emulator.
    """

    endpoint: str = ""
    calm: str = ""
    faulty: bool = False
    account: str = field(default_factory=lambda: f"{random.SystemRandom().randrange(10**11, 10**12)}")

    def __post_init__(self) -> None:
        self.domain = f"t{self.account}.example"  # names of buckets are the whole emulator's
        self.settings = {
            "backend": "aws", "aws_endpoint": self.endpoint, "aws_account": self.account, "mailbox": MAILBOX,
            "domain": self.domain, "slots": 1, "aws_poll_seconds": 1, **self.settings,
        }  # fmt: skip
        super().__post_init__()
        packaged()  # skips where it cannot be made
        config = Config.load(overrides={"data": str(self.data)})
        bring_up(config, ROOT, lambda line: None, session_of(self.account))
        self.cloud: AwsContainer = AwsContainer(
            replace(config, aws_endpoint=self.calm),
            process="test", scratch=self.folder / "scratch", events=Nobody(), session=session_of(self.account),
        )  # fmt: skip
        self.cloud.clients.ses.create_email_identity(EmailIdentity=MAILBOX)

    def credentials(self) -> dict[str, str]:
        """The emulator takes twelve digits for the account, and keeps accounts apart."""
        return {"AWS_ACCESS_KEY_ID": self.account, "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": REGION}

    def hire(self, *flags: str, env: Mapping[str, str] | None = None) -> Hand:
        """Start one more worker."""
        return super().hire(*flags, env={**self.credentials(), **(env or {})})

    def await_journal(self, what: str, mark: str, times: int = 1) -> list[dict[str, Any]]:
        """The agents' lines, once there are as many."""
        until(lambda: len(self.journal(what, mark)) >= times, f"{mark} to have {what} {times} times")
        return self.journal(what, mark)

    def onboard(self, project: str, user: str, sender: str, agent: str = "") -> None:
        """Add a site, or one more person to it."""
        repo = self.data / "origins" / f"{project}.git"
        if not repo.exists():
            repo = self.folder / project
            repo.mkdir()
            (repo / "index.html").write_text(f"<!doctype html><title>{project}</title><h1>{project}</h1>\n")
        onboarding.onboard(self.cloud, project, str(repo), user, sender, lambda words: None, agent)

    def object(self, project: str, path: str, stage: str = "edit") -> str:
        """A file of a site as the sites' bucket holds it."""
        bucket = names.sites_bucket(self.account)
        found = self.cloud.clients.s3.get_object(Bucket=bucket, Key=f"{project}/{stage}/{path}")
        return found["Body"].read().decode()

    def answers(self, email_id: str) -> list[EmailMessage]:
        """The replies that were sent to a mail."""
        sent = [entry.reply.raw for entry in self.cloud.outbox.of(email_id) if entry.sent_at]
        return [email.message_from_bytes(raw, policy=email.policy.default) for raw in sent]

    @property
    def tools(self) -> Tools:
        return connect_tools(REGION, self.calm, session_of(self.account))

    @contextmanager
    def without_reconciler(self) -> Iterator[None]:
        """What it says, each minute, it says besides."""
        tools = self.tools
        tools.events.disable_rule(Name=names.RECONCILE)
        tools.functions.invoke(FunctionName=names.RECONCILE, Payload=b"{}")  # after one that had begun already
        try:
            yield
        finally:
            tools.events.enable_rule(Name=names.RECONCILE)

    @contextmanager
    def prompt_reconciler(self) -> Iterator[None]:
        """What it does each minute it does all the time."""
        tools, over = self.tools, threading.Event()

        def reconcile() -> None:
            while not over.wait(1.0):
                tools.functions.invoke(FunctionName=names.RECONCILE, Payload=b"{}")

        thread = threading.Thread(target=reconcile, name="reconciler")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def standing(self, email_id: str) -> str:
        """How far a mail has come, for whoever has to find out why it came no further."""
        machine = f"arn:aws:states:{REGION}:{self.account}:stateMachine:email-processor"
        name = machine.replace(":stateMachine:", ":execution:") + f":{email_id}"
        history = self.cloud.clients.stepfunctions.get_execution_history(executionArn=name, reverseOrder=True)
        entries = self.cloud.outbox.of(email_id)
        return "\n".join(
            [
                f"job: {self.cloud.jobs.get(f'job-{email_id[:20]}')}",
                f"replies: {[(entry.attempts, entry.last_error, entry.next_try_at) for entry in entries]}",
                f"claims: {self.rows('webordinary-container-ownership')}",
                *(str(event)[:300] for event in history["events"][:4]),
            ]
        )

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All items of a table."""
        pages = self.cloud.clients.dynamodb.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
        return [from_item(item) for page in pages for item in page["Items"]]

    def jobs(self, key: ProjectUser) -> Sequence[Any]:
        return self.cloud.jobs.open_jobs(key)


@dataclass
class CloudWriter:
    """A customer who writes about notes; what is written lies in the bucket as SES would have put it."""

    harness: CloudHarness
    address: str = "scott@example.com"
    mailbox: str = MAILBOX
    count: int = 0

    def write(self, text: str, subject: str, root: str = "") -> str:
        """Send a mail, in the thread of `root` where one is named; its name."""
        self.count += 1
        self.last_id = f"<{self.count}.{time.time_ns()}.{self.address.partition('@')[0]}@mail.example>"
        references = (root,) if root else ()
        letter = CustomerMail(self.address, self.mailbox, subject, text, (), self.last_id, root, references)
        return self.harness.cloud.send_mail(write_mail(letter, datetime.now(UTC)), self.address, self.mailbox).email_id

    def note(self, mark: str, root: str = "", *, file: str = "", steps: int = 2, **how: object) -> str:
        """Ask for a note, in a file of its own unless one is named."""
        words = " ".join(f"{name}={value}" for name, value in how.items())
        text = f"note={mark} file={file or f'notes/{mark}.html'} steps={steps} {words}"
        return self.write(text, f"Note {mark}", root)


def answer(harness: CloudHarness, email_id: str) -> str:
    """The one answer to a mail, once it was sent."""
    try:
        until(lambda: harness.answers(email_id), f"an answer to {email_id}")
    except AssertionError as problem:
        problem.add_note(harness.standing(email_id))
        raise
    [reply] = harness.answers(email_id)
    return text_of(reply)


def written(mark: str, steps: range, of: int) -> str:
    """The steps as the agent writes them."""
    return "".join(f"<p>note {mark} step {step} of {of}</p>\n" for step in steps)


@contextmanager
def opened(harness: CloudHarness) -> Iterator[CloudHarness]:
    """Nothing of it runs after the block."""
    try:
        yield harness
    finally:
        harness.raze()
        close_down(harness.tools)
