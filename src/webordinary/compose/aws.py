"""The container over an account of AWS: for lambdas, workers and the operator's commands."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3

from webordinary.adapters.aws import names
from webordinary.adapters.aws.blobs import Bodies, S3Blobs
from webordinary.adapters.aws.clients import Clients, config_of, connect, translated
from webordinary.adapters.aws.dynamo import Dynamo
from webordinary.adapters.aws.mail.directory import AwsDirectory, AwsThreads
from webordinary.adapters.aws.mail.emulated import put_emulated_mail
from webordinary.adapters.aws.mail.mails import (
    AwsAttachmentManifest,
    AwsConfirmations,
    AwsHourlyRates,
    AwsIntake,
    AwsParsedMails,
    AwsRawMails,
    MailItems,
    ses_id_of,
)
from webordinary.adapters.aws.mail.outbox import AwsOutbox, AwsUndelivered
from webordinary.adapters.aws.mail.ses import SesTransport
from webordinary.adapters.aws.overview import AwsOverview, WorkflowSteps
from webordinary.adapters.aws.pool.claim_requests import ClaimRequestDedup, ReconcilerProgress, SqsClaimRequests
from webordinary.adapters.aws.pool.claim_table import ClaimTable, Presence, RemoteLiveness
from webordinary.adapters.aws.pool.claims import AwsClaims, AwsProjectLeases
from webordinary.adapters.aws.pool.dead_letters import AwsDeadLetters
from webordinary.adapters.aws.pool.job_table import EventsOf, JobTable, no_events
from webordinary.adapters.aws.pool.jobs import AwsInterruptions, AwsJobs, AwsPendingCallbacks
from webordinary.adapters.aws.pool.ledger import AwsLedger
from webordinary.adapters.aws.pool.pool_snapshot import PoolSnapshotReader
from webordinary.adapters.aws.pool.queues import AwsInterrupts, AwsOutputs, Queues, QueueUrls, SqsNotifier
from webordinary.adapters.aws.pool.step_functions import StepFunctions, StepFunctionsCallbacks, StepFunctionsEndings
from webordinary.adapters.aws.provision.shapes import (
    create_key_queues,
    keys_with_queues,
    remove_key_queues,
    remove_objects,
    remove_versions,
)
from webordinary.adapters.files.system import SystemClock, addresses_of
from webordinary.compose.container import AcceptedMail, BackendProfile, Runnable, profile_of
from webordinary.config import Config
from webordinary.jobs.site_files import Stage
from webordinary.mail.addresses import Mailbox
from webordinary.mail.auth import SesVerdicts, envelopes_of
from webordinary.mail.intake import HERE_ALREADY, Accepted, emails_of
from webordinary.model.claims import ClaimStatus
from webordinary.model.errors import Permanent
from webordinary.model.events import Event, Events
from webordinary.model.jobs import Job, JobState
from webordinary.model.mail import Delivery, TransportVerdicts
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import Levels, LoggedEvent
from webordinary.pool.metrics import MetricsState
from webordinary.pool.ports import Pool
from webordinary.workflow.reading import MailDeps

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_sts import STSClient

    from webordinary.adapters.aws.blobs import FetchedFiles
    from webordinary.adapters.aws.events import CloudWatchHistory
    from webordinary.adapters.aws.site.credentials import Broker
    from webordinary.adapters.aws.site.job_files import S3BuildLogs, S3SessionFiles
    from webordinary.adapters.aws.site.own_domains import TenantDomains
    from webordinary.adapters.aws.site.releases import S3Releases, ShownCopies
    from webordinary.adapters.files.liveness import LockFiles
    from webordinary.adapters.git import GitHistory
    from webordinary.compose.aws_worker import FetchedCredentials
    from webordinary.compose.emulated_events import EmulatedEvents
    from webordinary.operations.mails import ScannedMails
    from webordinary.operations.ports import EventLog
    from webordinary.services.loop import Service

PAGE_SECONDS = 5.0
"""No notification reaches the page: it looks for new events."""
LISTED_AT_ONCE = 1000
"""Objects of one listing of the bucket."""
REPLY_DELIVERY_TIMEOUT = timedelta(minutes=2)
"""A written reply is its writer's alone for so long; then the reconciler sends it."""


_log = logging.getLogger(__name__)


class LoggedEvents:
    """Logs the events of an operator's command."""

    def emit(self, event: Event) -> None:
        _log.info("%s", event)


class CloudWatchLog:
    """The event log of AWS: CloudWatch has it, so reading it here is refused with the command to use."""

    def after(
        self, seq: int, limit: int, email_id: str | None = None, job_id: str | None = None
    ) -> Sequence[LoggedEvent]:
        raise Permanent("on AWS the events are in CloudWatch's logs: see `webordinary logs --backend aws`")

    def start_of_last(self, limit: int) -> int:
        return int(bool(self.after(0, limit)))


class AwsContainer:
    """Container over an account. The data folder holds only caches; `clients` and tables are for `compose` only."""

    def __init__(
        self,
        settings: Config,
        *,
        process: str = "operator",
        scratch: Path | None = None,
        events: Events | None = None,
        session: boto3.Session | None = None,
        clients: Clients | None = None,
        events_of: EventsOf = no_events,
        spent: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._settings, self._process, self._session = settings, process, session
        self._given_clients, self._events_of, self._spent = clients, events_of, spent
        self._scratch = scratch or settings.data
        self._listed_after = ""
        self.events: Events = events or LoggedEvents()
        self.clock = SystemClock()

    @property
    def access(self) -> None:
        """Users are kept in a data folder; on AWS the page runs on the operator's own machine."""

    @cached_property
    def config(self) -> Config:
        """The settings with the account that the credentials belong to."""
        return with_account(self._settings, self._session)

    @cached_property
    def profile(self) -> BackendProfile:
        return profile_of(self._settings)

    @property
    def endpoint(self) -> str | None:
        """The emulator's endpoint; None on AWS itself."""
        return self._settings.aws_endpoint or None

    @cached_property
    def clients(self) -> Clients:
        return self._given_clients or connect(self._settings.aws_region, self.endpoint, self._session)

    @cached_property
    def sts(self) -> STSClient:
        return sts_of(self.config, self._session)

    @cached_property
    def dynamo(self) -> Dynamo:
        return Dynamo(self.clients.dynamodb)

    @cached_property
    def queues(self) -> Queues:
        return Queues(self.clients.sqs, QueueUrls(self.clients.sqs, beside=self.config.aws_unclaimed_url))

    @property
    def ownership_table(self) -> str:
        return self._settings.aws_ownership_table or names.OWNERSHIP

    @property
    def _keep_days(self) -> int:
        return max(self.config.retention_days, names.MIN_RETENTION_DAYS)

    @cached_property
    def job_table(self) -> JobTable:
        return JobTable(self.dynamo, self._settings.aws_jobs_table or names.JOBS, self._events_of, self._keep_days)

    @cached_property
    def claim_table(self) -> ClaimTable:
        return ClaimTable(self.dynamo, self.ownership_table, self._settings.lease_seconds)

    @cached_property
    def mail_items(self) -> MailItems:
        return MailItems(self.dynamo, self.clock.now, keep_days=self._keep_days)

    @property
    def raw_bucket(self) -> str:
        return names.raw_bucket(self.config.aws_account)

    @property
    def store_bucket(self) -> str:
        return names.store_bucket(self.config.aws_account)

    @cached_property
    def event_log(self) -> EventLog:
        return self._emulated_events.log if self._emulated_events else CloudWatchLog()

    @cached_property
    def _emulated_events(self) -> EmulatedEvents | None:
        if not self.config.aws_endpoint:
            return None
        from webordinary.compose.emulated_events import (  # noqa: PLC0415 - an emulator only
            emulated_events,
            has_emulated_events,
        )

        return emulated_events(self.config) if has_emulated_events(self.config) else None

    @cached_property
    def overview(self) -> AwsOverview:
        return AwsOverview(
            self.mail_items,
            self.raw_mails,
            self.mail_deps.parsed_mails,
            self.mail_deps.manifest,
            self.outbox,
            self.job_table,
            self.dead_letters,
            self.directory,
            PoolSnapshotReader(
                self.clients.dynamodb, self.claim_table, self.job_table, self.queues, self._died_on_this_machine
            ),
            WorkflowSteps(self.clients.stepfunctions, state_machine_arn(self.config)),
        )

    @cached_property
    def mail_index(self) -> ScannedMails:
        from webordinary.operations.mails import ScannedMails  # noqa: PLC0415 - a lambda starts without it

        return ScannedMails(self.overview, self.directory)

    def _died_on_this_machine(self, worker: str) -> bool:
        """Whether the process of a worker on this machine has ended; for other machines only leases tell."""
        return self.workers.last_beat(worker) is not None and self.workers.is_dead(worker)

    @cached_property
    def workers(self) -> LockFiles:
        """The workers of this machine or task; workers elsewhere are in the overview."""
        from webordinary.adapters.files.liveness import LockFiles  # noqa: PLC0415 - a lambda starts without it

        return LockFiles(self._settings.data / "run" / "workers")

    @cached_property
    def mail_deps(self) -> MailDeps:
        from webordinary.adapters.files.parser import ParserLimits, ProcessParser  # noqa: PLC0415 - a lambda starts without it

        return MailDeps(
            raw_mails=self.raw_mails,
            parsed_mails=AwsParsedMails(self.mail_items, Bodies(self.clients.s3, self.store_bucket, "parsed")),
            manifest=AwsAttachmentManifest(self.mail_items),
            blobs=self.blobs,
            threads=self.threads,
            directory=self.directory,
            parser=ProcessParser(
                ParserLimits(small_processes=0, large_processes=1)
            ),  # a lambda reads one mail at a time
            policy=SesVerdicts(),
            mailbox=Mailbox.parse(self.config.mailbox),
            confirmations=AwsConfirmations(self.mail_items),
            rates=AwsHourlyRates(self.mail_items),
        )

    @cached_property
    def raw_mails(self) -> AwsRawMails:
        limit = self.config.unadmitted_mail_mb * 1_000_000
        return AwsRawMails(self.clients.s3, self.raw_bucket, self.mail_items, limit)

    @cached_property
    def blobs(self) -> S3Blobs:
        return S3Blobs(self.clients.s3, self.store_bucket)

    @cached_property
    def directory(self) -> AwsDirectory:
        return AwsDirectory(self.clients.dynamodb, self.dynamo)

    @cached_property
    def threads(self) -> AwsThreads:
        return AwsThreads(self.dynamo, self.clock.now, keep_days=self._keep_days)

    @cached_property
    def outbox(self) -> AwsOutbox:
        bodies = Bodies(self.clients.s3, self.store_bucket, "replies")
        return AwsOutbox(self.mail_items, bodies, self.threads, REPLY_DELIVERY_TIMEOUT)

    @cached_property
    def undelivered(self) -> AwsUndelivered:
        return AwsUndelivered(self.mail_items)

    @cached_property
    def transport(self) -> SesTransport:
        config = self.config
        return SesTransport(self.clients.ses, config.mailbox, config.aws_region, _configuration_set(config))

    @cached_property
    def workflows(self) -> StepFunctions:
        return StepFunctions(self.clients.stepfunctions, state_machine_arn(self.config))

    @cached_property
    def executions(self) -> StepFunctionsEndings:
        return StepFunctionsEndings(self.clients.stepfunctions, state_machine_arn(self.config))

    @property
    def intake_description(self) -> str:
        return f"through the bucket {self.raw_bucket}"

    def send_mail(self, raw: bytes, mail_from: str, recipient: str) -> AcceptedMail:
        """Put a mail where SES stores those that it receives; only on an emulator."""
        if not self.endpoint:
            raise Permanent(f"on AWS itself a mail comes through SES: write one to {self.config.mailbox}")
        began = self.clock.now()
        key = put_emulated_mail(self.clients.s3, self.raw_bucket, raw, mail_from, recipient)
        stored = self.raw_mails.read(key)
        emails = emails_of(stored, envelopes_of(stored, ses_id_of(key), self.mail_deps.mailbox, began))
        if not emails:
            raise Permanent(f"{recipient} is none of our addresses: write to {self.config.mailbox}")
        email_id = emails[0].email_id
        known = self.overview.mail(email_id)
        if known and known.summary.received_at < began:
            return AcceptedMail(email_id, False, f"accepted as {email_id}, {HERE_ALREADY}")
        return AcceptedMail(email_id, True, f"taken as mail {email_id}")

    def accept_mail(
        self, raw: bytes, delivery: Delivery, verdicts: TransportVerdicts | None = None
    ) -> Sequence[Accepted]:
        raise Permanent(f"on AWS mail comes through SES, not by {delivery.transport}")

    def accept(self, key: str, received_at: datetime) -> Sequence[Accepted]:
        """Record the raw mail of this key in the bucket. Idempotent."""
        return AwsIntake(self.raw_mails, self.mail_deps.mailbox, self.events).take(key, received_at)

    def unnoted(self) -> Sequence[str]:
        """Keys of raw mails that were never recorded; each call lists on from where the last one ended."""
        found = self.raw_mails.unnoted(LISTED_AT_ONCE, self.clock.now(), self._listed_after)
        self._listed_after = found.after
        return found.keys

    @cached_property
    def hints(self) -> SqsClaimRequests:
        return SqsClaimRequests(self.queues, ClaimRequestDedup(self.dynamo, ownership=self.ownership_table))

    @cached_property
    def reconciler_progress(self) -> ReconcilerProgress:
        return ReconcilerProgress(self.dynamo)

    @cached_property
    def pool(self) -> Pool:
        return Pool(
            jobs=self.jobs,
            pending_callbacks=AwsPendingCallbacks(self.job_table),
            claims=AwsClaims(self.claim_table, self.job_table, self.hints),
            hints=self.hints,
            tickets=SqsNotifier(self.queues),
            interrupts=AwsInterrupts(self.queues),
            callbacks=StepFunctionsCallbacks(self.clients.stepfunctions),
            liveness=RemoteLiveness(),
            outputs=AwsOutputs(self.queues, self.directory.wants_output),
        )

    @cached_property
    def jobs(self) -> AwsJobs:
        return AwsJobs(self.job_table)

    @cached_property
    def dead_letters(self) -> AwsDeadLetters:
        return AwsDeadLetters(self.dynamo)

    @cached_property
    def interruptions(self) -> AwsInterruptions:
        return AwsInterruptions(self.dynamo)

    @cached_property
    def _s3_of(self) -> Callable[[str], S3Client]:
        """The S3 client with the rights of one project."""
        from webordinary.adapters.aws.site.credentials import rights_of  # noqa: PLC0415 - a lambda starts without it

        take = self.broker.take if self.broker else None
        return rights_of("s3", self.clients.s3, take, self.config.aws_region, self.endpoint)

    @cached_property
    def broker(self) -> Broker | None:
        """Gives a worker the rights to projects, where its own do not suffice."""
        if not self.config.aws_broker:
            return None
        from webordinary.adapters.aws.site.credentials import Broker  # noqa: PLC0415 - a lambda starts without it

        config = config_of(self.config.aws_region, self.endpoint)
        client = (self._session or boto3.Session()).client("lambda", config=config, endpoint_url=self.endpoint)
        return Broker(client, self._process, self.config.aws_broker)

    def _store_of(self, project_id: str, stage: Stage) -> str:
        return names.site_store(self.config.aws_account, project_id, stage.value)

    def _previews_in(self, project_id: str) -> str:
        return f"{names.sites_bucket(self.config.aws_account)}/{names.previews_folder(project_id)}"

    @cached_property
    def releases(self) -> S3Releases:
        from webordinary.adapters.aws.site.releases import LocalCopies, S3Releases  # noqa: PLC0415 - a lambda starts without it

        copies = LocalCopies(self._scratch / ".releases")
        return S3Releases(
            self._s3_of, self._store_of, self._previews_in, copies, self.clock.now, self.config.releases_kept
        )

    addresses_of = staticmethod(addresses_of)

    @cached_property
    def own_domains(self) -> TenantDomains | None:
        if self.endpoint:
            return None
        from webordinary.adapters.aws.site.own_domains import TenantDomains  # noqa: PLC0415 - a lambda starts without it

        session, region = self._session or boto3.Session(), self.config.aws_region
        client: Any = session.client
        return TenantDomains(lambda service: client(service, config=config_of(region, None)))

    @cached_property
    def leases(self) -> AwsProjectLeases:
        return AwsProjectLeases(self.job_table, self.ownership_table)

    @cached_property
    def ledger(self) -> AwsLedger:
        return AwsLedger(self.dynamo, spent=self._spent)

    @cached_property
    def build_logs(self) -> S3BuildLogs:
        from webordinary.adapters.aws.site.job_files import S3BuildLogs  # noqa: PLC0415 - a lambda starts without it

        return S3BuildLogs(self.clients.s3, self.store_bucket, self.clock.now)

    @cached_property
    def session_files(self) -> S3SessionFiles:
        from webordinary.adapters.aws.site.job_files import S3SessionFiles  # noqa: PLC0415 - a lambda starts without it

        return S3SessionFiles(self._s3_of, self.store_bucket)

    @cached_property
    def history(self) -> GitHistory:
        from webordinary.adapters.git import GitHistory  # noqa: PLC0415 - a lambda starts without it

        return GitHistory(self._settings.data / "mirrors", self.credentials)

    @cached_property
    def credentials(self) -> FetchedCredentials:
        from webordinary.adapters.aws.site.credentials import GitSecrets, rights_of  # noqa: PLC0415 - a lambda starts without it
        from webordinary.compose.aws_worker import FetchedCredentials  # noqa: PLC0415

        config, endpoint = self.config, self.endpoint
        own = (self._session or boto3.Session()).client(
            "ssm", config=config_of(config.aws_region, endpoint), endpoint_url=endpoint
        )
        take = self.broker.take if self.broker else None
        secrets_for = rights_of("ssm", own, take, config.aws_region, endpoint)
        return FetchedCredentials(self._scratch / ".secrets", GitSecrets(secrets_for), self.clock.monotonic)

    @cached_property
    def _attachments(self) -> FetchedFiles:
        from webordinary.adapters.aws.blobs import FetchedFiles  # noqa: PLC0415 - a lambda starts without it

        return FetchedFiles(self.blobs, self._scratch / ".attachments")

    def attachment_path(self, digest: str) -> Path:
        return self._attachments.path(digest)

    @cached_property
    def _shown(self) -> ShownCopies:
        from webordinary.adapters.aws.site.releases import ShownCopies  # noqa: PLC0415 - a lambda starts without it

        return ShownCopies(self.clients.s3, self._store_of, self._scratch / ".shown")

    def read_release(self, release: Path, name: str) -> bytes:
        return self.releases.read(release, name)

    def current_site(self, project_id: str, stage: Stage) -> Path | None:
        return self._shown.current(project_id, stage)

    def settled_since(self, since: datetime, limit: int) -> Sequence[Job]:
        return ()

    @cached_property
    def pool_history(self) -> CloudWatchHistory:
        from webordinary.adapters.aws.events import CloudWatchHistory  # noqa: PLC0415 - a lambda starts without it

        config = config_of(self.config.aws_region, self.endpoint)
        session = self._session or boto3.Session()
        return CloudWatchHistory(session.client("cloudwatch", config=config, endpoint_url=self.endpoint))

    def drain_worker(self, worker: str) -> None:
        """Ask a worker to drain: at once if it holds a key, else at its next presence write."""
        if not Presence(self.dynamo, self.ownership_table).ask_to_end(worker):
            raise Permanent(f"{worker[:12]} has ended, or has just begun: see `webordinary status`")
        for row in self.claim_table.held_by(worker):
            SqsNotifier(self.queues).ask_to_end(ProjectUser.parse(row["projectKey"]), worker)

    def provision(self, key: ProjectUser) -> None:
        create_key_queues(self.clients, key)

    def deprovision(self, project_id: str, keys: Sequence[ProjectUser]) -> None:
        from webordinary.adapters.aws.site.job_files import SESSIONS_PREFIX  # noqa: PLC0415 - a lambda starts without it

        if (edge := self.own_domains) and (project := self.directory.project(project_id)):
            for domain in project.domains:
                edge.hide(project_id, domain)
        for key in {*keys, *keys_with_queues(self.clients, project_id)}:
            self.claim_table.forget(key)
            remove_key_queues(self.clients, key)
        for folder in (names.project_folder(project_id), names.previews_folder(project_id)):
            remove_versions(self.clients.s3, names.sites_bucket(self.config.aws_account), folder)
        remove_objects(self.clients.s3, self.store_bucket, f"{SESSIONS_PREFIX}/{project_id}/")

    def metrics(self) -> tuple[Levels, MetricsState | None]:
        """Levels by some reads of the tables; CloudWatch counts what happened, except on an emulator."""
        pool = self.overview.pool(self.clock.now())
        states = {
            JobState.PREPARING: sum(queue.preparing for queue in pool.queues),
            JobState.QUEUED: sum(queue.queued for queue in pool.queues),
            JobState.RUNNING: len(pool.running),
        }
        levels = Levels(
            unclaimed=pool.unclaimed,
            claims_held=sum(claim.status is ClaimStatus.HELD for claim in pool.claims),
            workers_alive=len(pool.workers),
            jobs=states,
            oldest_queued_at=min((one.waiting_since for one in pool.queues if one.waiting_since), default=None),
            dead_letters=pool.dead_letter_count,
        )
        return levels, self._emulated_events.counts() if self._emulated_events else None

    def prepare(self) -> None:
        """Nothing is stored on this machine."""

    def background(self, closing: ExitStack, page: Service) -> Sequence[Runnable]:
        """Only the page's look for new events: AWS runs everything else."""
        from webordinary.services.loop import Loop  # noqa: PLC0415 - only `up` needs it

        return (Loop(page, PAGE_SECONDS, self.clock.now),)

    @contextmanager
    def registered(self, operator: str) -> Iterator[None]:
        """Other machines cannot see a process die: they wait for its lease to expire."""
        yield


@contextmanager
def open_aws(config: Config, session: boto3.Session | None = None) -> Iterator[AwsContainer]:
    """The container of a command or the page, with a scratch folder for as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="webordinary-") as scratch:
        yield AwsContainer(config, scratch=Path(scratch), session=session)


def state_machine_arn(config: Config) -> str:
    """ARN of the one workflow."""
    return f"arn:aws:states:{config.aws_region}:{config.aws_account}:stateMachine:{names.STATE_MACHINE}"


def _configuration_set(config: Config) -> str:
    """The configuration set that reports bounces; an emulator has none."""
    return "" if config.aws_endpoint else names.CONFIGURATION_SET


def with_account(config: Config, session: boto3.Session | None = None) -> Config:
    """The settings, with the account that our credentials belong to where they do not name it."""
    if config.mailbox == Config().mailbox and config.domain != Config().domain:
        config = replace(config, mailbox=names.mailbox_of(config.domain))  # as infra/settings.py has it
    if config.aws_account:
        return config
    with translated("asking AWS who we are"):
        return replace(config, aws_account=sts_of(config, session).get_caller_identity()["Account"])


def sts_of(config: Config, session: boto3.Session | None) -> STSClient:
    """The client of STS: identity and roles."""
    endpoint = config.aws_endpoint or None
    return (session or boto3.Session()).client(
        "sts", config=config_of(config.aws_region, endpoint), endpoint_url=endpoint
    )
