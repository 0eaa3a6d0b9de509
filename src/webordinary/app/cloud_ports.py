"""The rooms' ports over AWS, light to import: lambdas, workers and the operator's commands all begin here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from webordinary.adapters.aws import names
from webordinary.adapters.aws.blobs import Bodies, S3Blobs
from webordinary.adapters.aws.clients import Clients
from webordinary.adapters.aws.dynamo import Dynamo
from webordinary.adapters.aws.mail.directory import AwsDirectory
from webordinary.adapters.aws.mail.mail_items import MailItems
from webordinary.adapters.aws.mail.manifest import AwsAttachmentManifest
from webordinary.adapters.aws.mail.outbox import AwsOutbox
from webordinary.adapters.aws.mail.parsed_mails import AwsParsedMails
from webordinary.adapters.aws.mail.raw_mails import AwsRawMails
from webordinary.adapters.aws.mail.ses import SesTransport
from webordinary.adapters.aws.mail.threads import AwsThreads
from webordinary.adapters.aws.pool.callbacks import StepFunctionsCallbacks
from webordinary.adapters.aws.pool.claim_requests import ClaimRequests
from webordinary.adapters.aws.pool.claim_table import ClaimTable
from webordinary.adapters.aws.pool.claims import AwsClaims
from webordinary.adapters.aws.pool.dead_letters import AwsDeadLetters
from webordinary.adapters.aws.pool.diary import ToldOf, nothing_told
from webordinary.adapters.aws.pool.hints import AwsHints
from webordinary.adapters.aws.pool.interruptions import AwsInterruptions
from webordinary.adapters.aws.pool.interrupts import AwsInterrupts
from webordinary.adapters.aws.pool.job_table import JobTable
from webordinary.adapters.aws.pool.jobs import AwsJobs
from webordinary.adapters.aws.pool.liveness import RemoteLiveness
from webordinary.adapters.aws.pool.outputs import AwsOutputs
from webordinary.adapters.aws.pool.owed import AwsOwedCallbacks
from webordinary.adapters.aws.pool.queue_urls import QueueUrls
from webordinary.adapters.aws.pool.queues import Queues
from webordinary.adapters.aws.pool.tickets import AwsTickets
from webordinary.adapters.aws.setup.state_machine import StepFunctions
from webordinary.config import Config
from webordinary.mail.addresses import Mailbox
from webordinary.mail.ses_verdicts import SesVerdicts
from webordinary.pool.ports import Pool
from webordinary.workflow.reading import Mailroom

REPLY_PATIENCE = timedelta(minutes=2)
"""A written reply is its writer's alone for so long; then the reconciler sends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudPorts:
    """One backend, whole."""

    clients: Clients
    dynamo: Dynamo
    queues: Queues
    job_table: JobTable
    claim_table: ClaimTable
    mail_items: MailItems
    raw_bucket: str
    store_bucket: str
    raw_mails: AwsRawMails
    blobs: S3Blobs
    threads: AwsThreads
    directory: AwsDirectory
    mailroom: Mailroom
    outbox: AwsOutbox
    transport: SesTransport
    jobs: AwsJobs
    hints: AwsHints
    pool: Pool
    interruptions: AwsInterruptions
    dead_letters: AwsDeadLetters
    workflows: StepFunctions


def cloud_ports(
    config: Config, clients: Clients, now: Callable[[], datetime], told_of: ToldOf = nothing_told
) -> CloudPorts:
    """The ports over an account of AWS. `config.aws_account` must be known."""
    dynamo = Dynamo(clients.dynamodb)
    queues = Queues(clients.sqs, QueueUrls(clients.sqs, beside=config.aws_unclaimed_url))
    ownership = config.aws_ownership_table or names.OWNERSHIP
    job_table = JobTable(dynamo, config.aws_jobs_table or names.JOBS, told_of)
    claim_table = ClaimTable(dynamo, ownership, config.lease_seconds)
    mail_items = MailItems(dynamo, now)
    raw_bucket, store_bucket = names.raw_bucket(config.aws_account), names.store_bucket(config.aws_account)
    raw_mails, blobs = AwsRawMails(clients.s3, raw_bucket, mail_items), S3Blobs(clients.s3, store_bucket)
    threads, directory = AwsThreads(dynamo), AwsDirectory(clients.dynamodb, dynamo)
    hints = AwsHints(queues, ClaimRequests(dynamo, ownership=ownership))
    jobs = AwsJobs(job_table)
    return CloudPorts(
        clients=clients,
        dynamo=dynamo,
        queues=queues,
        job_table=job_table,
        claim_table=claim_table,
        mail_items=mail_items,
        raw_bucket=raw_bucket,
        store_bucket=store_bucket,
        raw_mails=raw_mails,
        blobs=blobs,
        threads=threads,
        directory=directory,
        mailroom=Mailroom(
            raw_mails=raw_mails,
            parsed_mails=AwsParsedMails(mail_items, Bodies(clients.s3, store_bucket, "parsed")),
            manifest=AwsAttachmentManifest(mail_items),
            blobs=blobs,
            threads=threads,
            directory=directory,
            policy=SesVerdicts(),
            mailbox=Mailbox.parse(config.mailbox),
        ),
        outbox=AwsOutbox(mail_items, Bodies(clients.s3, store_bucket, "replies"), REPLY_PATIENCE),
        transport=SesTransport(clients.ses, config.mailbox, config.aws_region, _configuration_set(config)),
        jobs=jobs,
        hints=hints,
        pool=Pool(
            jobs=jobs,
            owed=AwsOwedCallbacks(job_table),
            claims=AwsClaims(claim_table, job_table, hints),
            hints=hints,
            tickets=AwsTickets(queues),
            interrupts=AwsInterrupts(queues),
            callbacks=StepFunctionsCallbacks(clients.stepfunctions),
            liveness=RemoteLiveness(),
            outputs=AwsOutputs(queues, directory.wants_output),
        ),
        interruptions=AwsInterruptions(dynamo),
        dead_letters=AwsDeadLetters(dynamo),
        workflows=StepFunctions(clients.stepfunctions, state_machine_arn(config)),
    )


def state_machine_arn(config: Config) -> str:
    """Where the one workflow is deployed."""
    return f"arn:aws:states:{config.aws_region}:{config.aws_account}:stateMachine:{names.STATE_MACHINE}"


def _configuration_set(config: Config) -> str:
    """It tells of bounces; an emulator has none."""
    return "" if config.aws_endpoint else names.CONFIGURATION_SET
