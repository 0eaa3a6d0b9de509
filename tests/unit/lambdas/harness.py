"""The cloud path in memory: every lambda as it is deployed, and the deployed workflow on our own interpreter.

Import it first: without Powertools the test file is skipped here, with words.
"""
# ruff: noqa: E402

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.extras import needs_extra

needs_extra("aws_lambda_powertools", "aws")

from tests.fakes.blobs import MemoryBlobs
from tests.fakes.parser import InProcessParser
from tests.harness.pool_records import PoolRecords
from tests.harness.stores import TemporaryRawMails
from webordinary.adapters.aws.functions import FUNCTIONS, Function
from webordinary.adapters.aws.mail.emulated import Reception, as_received
from webordinary.adapters.aws.names import raw_bucket
from webordinary.adapters.files.wake import EngineCallbacks
from webordinary.adapters.sqlite.claims import SqliteClaims
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.dead_letters import SqliteDeadLetters
from webordinary.adapters.sqlite.executions import SqliteExecutions
from webordinary.adapters.sqlite.jobs import SqliteClaimRequests, SqliteInterruptions, SqliteInterrupts, SqliteJobs
from webordinary.adapters.sqlite.mails import (
    SqliteAttachmentManifest,
    SqliteConfirmations,
    SqliteDirectory,
    SqliteHourlyRates,
    SqliteParsedMails,
    SqliteThreads,
)
from webordinary.adapters.sqlite.outbox import SqliteOutbox
from webordinary.asl.definition import Definition
from webordinary.asl.engine import Engine
from webordinary.asl.ports import Status
from webordinary.compose.aws import AwsContainer
from webordinary.config import Config
from webordinary.entrypoints.lambdas.handlers import build
from webordinary.mail.addresses import Mailbox
from webordinary.mail.auth import SesVerdicts
from webordinary.mail.write import CustomerMail, write_mail
from webordinary.model.claims import StartedJob
from webordinary.model.errors import Permanent, Transient
from webordinary.model.events import Events
from webordinary.model.jobs import Job, JobOutcome, JobResult, Settlement
from webordinary.model.mail import Email, Reply
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, Sender
from webordinary.pool.ports import QUEUED, Pool
from webordinary.pool.reconciler import deliver_callback
from webordinary.workflow.definition import for_aws
from webordinary.workflow.reading import MailDeps
from webordinary.workflow.start import BrokenExecution

AMELIA_SCOTT = ProjectUser("amelia", "scott")
SCOTT, MAILBOX = "scott@example.com", "edit@example.net"
NOON = datetime(2026, 4, 1, 12, 0, tzinfo=UTC)
ACCOUNT = "123456789012"
BUCKET = raw_bucket(ACCOUNT)
DONE = Settlement(JobOutcome.SUCCEEDED, JobResult("The title is now Spring Sale.", commit="c" * 40))
EVENTS = Path(__file__).parents[2] / "data" / "aws_events"
FIRST_MAIL = "raw/o3vrnil0e2ic28trm7dfhrc2v0clambda4nbp0g1"


def recorded(name: str) -> dict[str, Any]:
    """An event as the service sends it."""
    event: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return event


def raw_mail(key: str = FIRST_MAIL, text: str = "Change the title to Spring Sale", sender: str = SCOTT) -> bytes:
    """A mail as SES stores it under this key."""
    ses_id = key.rpartition("/")[2]
    letter = CustomerMail(sender, MAILBOX, "Spring sale", text, message_id=f"<{ses_id}@example.com>")
    return as_received(write_mail(letter, NOON), Reception(sender, MAILBOX, ses_id))


class NotedRawMails(TemporaryRawMails):
    """Raw mails as a bucket holds them, and the notes of those that were taken."""

    def __init__(self, db: MemoryDatabase) -> None:
        super().__init__(db)
        self.objects: dict[str, bytes] = {}
        self.noted: set[str] = set()

    def read(self, key: str) -> bytes:
        try:
            return self.objects[key]
        except KeyError:
            raise Permanent(f"no file {key}") from None

    def note(self, key: str, emails: Sequence[Email]) -> tuple[bool, ...]:
        self.noted.add(key)
        return tuple([self.store(email) for email in emails])


@dataclass
class RecordedReplies:
    """What leaves the house."""

    sent: list[Reply] = field(default_factory=list)
    closed: bool = False

    def send(self, reply: Reply) -> str | None:
        if self.closed:
            raise Transient("the post office is closed")
        self.sent.append(reply)
        return None


class InterpretedWorkflows:
    """The deployed workflow, on our own interpreter; now and then it cannot be reached."""

    def __init__(self) -> None:
        self.engine: Engine | None = None
        self.executions: SqliteExecutions | None = None
        self.out_of_reach = False

    def start(self, name: str, input: dict[str, Any]) -> bool:
        if self.out_of_reach:
            raise Transient("Step Functions throttles us")
        assert self.engine
        return self.engine.start(name, input)

    def ended_badly(self, since: datetime) -> Sequence[str]:
        return ()

    def is_under_way(self, name: str) -> bool:
        assert self.executions
        stored = self.executions.load(name)
        return stored is not None and stored.execution.status is Status.RUNNING

    def describe(self, name: str) -> BrokenExecution:
        raise AssertionError("none ended badly")


class SilentNotifier:
    def notify_owner(self, job: Job, news: str = QUEUED) -> None: ...
    def notify_unclaimed(self, key: ProjectUser | None = None) -> None: ...


class Sts:
    """Gives credentials, and remembers for whom."""

    def __init__(self) -> None:
        self.tagged: list[tuple[str, str]] = []

    def assume_role(self, *, RoleArn: str, Tags: Sequence[dict[str, str]], **_: object) -> dict[str, Any]:  # noqa: N803
        self.tagged.extend((RoleArn, tag["Value"]) for tag in Tags)
        return {"Credentials": {"AccessKeyId": "ASIA", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": NOON}}


class NobodyDies:
    def is_dead(self, worker: str) -> bool:
        return False

    def end_survivors(self, worker: str, jobs: object = None) -> None: ...


class Anywhere:
    """A table of jobs that needs no word about where one lies."""

    def expect(self, job_id: str, key: str, order: int) -> None: ...


@dataclass(frozen=True)
class HarnessInvocation:
    aws_request_id: str = "8f5aa1b0-0000-4000-8000-000000000000"


class KeptProgress:
    """See PassProgress, in memory."""

    def __init__(self) -> None:
        self.said: list[ProjectUser | None] = [None]
        self.others: dict[str, KeptProgress] = {}

    def named(self, name: str) -> KeptProgress:
        return self.others.setdefault(name, KeptProgress())

    def after(self) -> ProjectUser | None:
        return self.said[-1]

    def passed(self, after: ProjectUser | None, now: datetime) -> None:
        self.said.append(after)


class LambdaHarness:
    """Every port in memory, and the lambdas over them."""

    def __init__(self) -> None:
        self.time, self.sts = NOON, Sts()
        self.state = PoolRecords()
        db = self.state.db
        self.inbox, self.outbox, self.post = NotedRawMails(db), SqliteOutbox(db), RecordedReplies()
        self.dead_letters, self.interruptions = SqliteDeadLetters(db), SqliteInterruptions(db)
        self.workflows = InterpretedWorkflows()
        self.confirmations, self.rates = SqliteConfirmations(db), SqliteHourlyRates(db)
        self.directory, self.threads = SqliteDirectory(db), SqliteThreads(db)
        self.parsed, self.manifest, self.blobs = SqliteParsedMails(db), SqliteAttachmentManifest(db), MemoryBlobs()
        executions = self.workflows.executions = SqliteExecutions(db)
        jobs = SqliteJobs(db)
        self.pool = Pool(
            jobs=jobs,
            pending_callbacks=jobs,
            claims=SqliteClaims(db),
            hints=SqliteClaimRequests(db),
            tickets=SilentNotifier(),
            interrupts=SqliteInterrupts(db),
            callbacks=EngineCallbacks(executions, lambda: None, self.now),
            liveness=NobodyDies(),
        )
        self.directory.add_project(Project("amelia", "https://git.example.com/amelia.git"), NOON)
        self.directory.add_sender(Sender(SCOTT, AMELIA_SCOTT), NOON)
        self.handlers = {one.name: build(one, self.services) for one in FUNCTIONS}
        arns = {step: arn_of(one) for one in FUNCTIONS for step in one.steps}
        self.engine = self.workflows.engine = Engine(
            executions,
            Definition.load(for_aws(arns)),
            {arn_of(one): self.invoker(one.name) for one in FUNCTIONS if one.steps},
            clock=self,
        )
        self.executions = executions

    def services(self, events: Events) -> AwsContainer:
        mail_deps = MailDeps(
            self.inbox, self.parsed, self.manifest, self.blobs, self.threads, self.directory,
            InProcessParser(), SesVerdicts(), Mailbox.parse(MAILBOX), self.confirmations, self.rates,
        )  # fmt: skip
        config = Config(backend="aws", aws_account=ACCOUNT, aws_region="us-east-1", mailbox=MAILBOX, hourly_mails=0)
        container = AwsContainer(config, events=events)
        vars(container).update(  # before first use, in the place of what AWS would answer
            clock=self, mail_deps=mail_deps, raw_mails=self.inbox, threads=self.threads, pool=self.pool,
            interruptions=self.interruptions, dead_letters=self.dead_letters, outbox=self.outbox,
            transport=self.post, workflows=self.workflows, executions=self.workflows,
            job_table=Anywhere(), sts=self.sts, unnoted=self.unnoted, reconciler_progress=KeptProgress(),
        )  # fmt: skip
        return container

    def now(self) -> datetime:
        return self.time

    def wait(self, **how_long: float) -> None:
        self.time += timedelta(**how_long)

    def unnoted(self) -> list[str]:
        return [key for key in self.inbox.objects if key not in self.inbox.noted]

    def invoker(self, name: str) -> Callable[[Any], Any]:
        return lambda payload: self.invoke(name, payload)

    def invoke(self, name: str, event: object) -> Any:  # noqa: ANN401 - JSON
        """Call a lambda: JSON in, JSON out."""
        return json.loads(json.dumps(self.handlers[name](json.loads(json.dumps(event)), HarnessInvocation())))

    def work(self, settlement: Settlement = DONE) -> None:
        """A worker does the customer's next job, and the workflow goes on."""
        started = self.pool.claims.claim_and_start(AMELIA_SCOTT, "container-1", self.time)
        assert isinstance(started, StartedJob)
        self.pool.claims.end_and_take_next(started, settlement, self.time, more=False)
        assert self.pool.claims.begin_release(started.claim)
        self.pool.claims.end_release(started.claim)
        settled = self.pool.jobs.get(started.job.job_id)
        assert settled
        deliver_callback(settled, self.pool)
        self.engine.run_ready()

    def names(self) -> list[str]:
        return [execution.name for execution in self.executions.executions(None, 100)]


def arn_of(one: Function) -> str:
    return f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:{one.name}"
