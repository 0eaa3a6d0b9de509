"""The rooms' ports over an account of AWS, for workers, the page and the operator's commands."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import boto3

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import config_of, connect, translated
from webordinary.adapters.aws.mail.undelivered import AwsUndelivered
from webordinary.adapters.aws.overview import AwsOverview
from webordinary.adapters.aws.overview_timeline import WorkflowSteps
from webordinary.adapters.aws.pool.diary import ToldOf, nothing_told
from webordinary.adapters.aws.pool.ledger import AwsLedger
from webordinary.adapters.aws.pool.pool_look import PoolLook
from webordinary.adapters.aws.pool.project_leases import AwsProjectLeases
from webordinary.adapters.aws.setup.queue_shapes import create_key_queues, keys_with_queues, remove_key_queues
from webordinary.adapters.aws.setup.removal import remove_bucket, remove_objects
from webordinary.adapters.aws.setup.site_buckets import make_site_bucket
from webordinary.adapters.aws.site.build_logs import S3BuildLogs
from webordinary.adapters.aws.site.copies import LocalCopies
from webordinary.adapters.aws.site.fetched import FetchedFiles
from webordinary.adapters.aws.site.git_secrets import GitSecrets
from webordinary.adapters.aws.site.releases import S3Releases
from webordinary.adapters.aws.site.scoped import rights_of, secrets_of
from webordinary.adapters.aws.site.sessions import PREFIX as SESSIONS
from webordinary.adapters.aws.site.sessions import S3SessionFiles
from webordinary.adapters.local.git import GitHistory
from webordinary.adapters.local.system import SystemClock
from webordinary.app.cloud_credentials import FetchedCredentials
from webordinary.app.cloud_ports import CloudPorts, cloud_ports, state_machine_arn
from webordinary.app.services import Services
from webordinary.config import Config
from webordinary.model.events import Event, Events
from webordinary.model.names import ProjectUser
from webordinary.site.ports import SessionFiles
from webordinary.site.releases import Stage

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud(Services):
    """Everything one process needs of an account. The data folder holds only what can be made again."""

    build_logs: S3BuildLogs
    ports: CloudPorts
    session_files: SessionFiles


class LoggedEvents:
    """What an operator's command did: no log driver reads its output."""

    def emit(self, event: Event) -> None:
        """See Events."""
        _log.info("%s", event)


@contextmanager
def open_cloud(config: Config, session: boto3.Session | None = None) -> Iterator[Cloud]:
    """For a command or the page: connect, with a scratch folder for as long as the block lasts."""
    config = with_account(config, session)
    with tempfile.TemporaryDirectory(prefix="webordinary-") as scratch:
        yield cloud_of(config, "operator", Path(scratch), LoggedEvents(), session)


def cloud_of(
    config: Config,
    worker_id: str,
    scratch: Path,
    events: Events,
    session: boto3.Session | None = None,
    told_of: ToldOf = nothing_told,
) -> Cloud:
    """The services of one process; `scratch` is its own. Without `session` boto3 looks for credentials."""
    clock = SystemClock()
    endpoint = config.aws_endpoint or None
    ports = cloud_ports(config, connect(config.aws_region, endpoint, session), clock.now, told_of)
    s3_of = rights_of(ports.clients.s3, config.aws_project_role, worker_id, config.aws_region, endpoint)
    own_secrets = (session or boto3.Session()).client(
        "secretsmanager", config=config_of(config.aws_region, endpoint), endpoint_url=endpoint
    )
    secrets_for = secrets_of(own_secrets, config.aws_project_role, worker_id, config.aws_region, endpoint)
    credentials = FetchedCredentials(scratch / ".secrets", GitSecrets(secrets_for), clock.monotonic)
    files = FetchedFiles(ports.blobs, scratch / ".attachments")

    def bucket_of(project_id: str, stage: Stage) -> str:
        return names.site_bucket(project_id, stage.value, config.domain)

    def make_room(key: ProjectUser) -> None:
        create_key_queues(ports.clients, key)
        for stage in Stage:
            make_site_bucket(ports.clients.s3, bucket_of(key.project_id, stage))

    def clear_room(project_id: str, keys: Sequence[ProjectUser]) -> None:
        for key in {*keys, *keys_with_queues(ports.clients, project_id)}:
            ports.claim_table.forget(key)
            remove_key_queues(ports.clients, key)
        for stage in Stage:
            remove_bucket(ports.clients.s3, bucket_of(project_id, stage))
        remove_objects(ports.clients.s3, ports.store_bucket, f"{SESSIONS}/{project_id}/")

    return Cloud(
        config=config,
        clock=clock,
        events=events,
        overview=AwsOverview(
            ports.mail_items,
            ports.raw_mails,
            ports.mailroom.parsed_mails,
            ports.mailroom.manifest,
            ports.outbox,
            ports.job_table,
            ports.dead_letters,
            ports.directory,
            PoolLook(ports.clients.dynamodb, ports.claim_table, ports.job_table, ports.queues),
            WorkflowSteps(ports.clients.stepfunctions, state_machine_arn(config)),
        ),
        mailroom=ports.mailroom,
        raw_mails=ports.raw_mails,
        blobs=ports.blobs,
        directory=ports.directory,
        threads=ports.threads,
        outbox=ports.outbox,
        undelivered=AwsUndelivered(ports.mail_items),
        pool=ports.pool,
        jobs=ports.jobs,
        dead_letters=ports.dead_letters,
        interruptions=ports.interruptions,
        releases=S3Releases(s3_of, bucket_of, LocalCopies(scratch / ".releases"), clock.now, config.releases_kept),
        leases=AwsProjectLeases(ports.job_table, config.aws_ownership_table or names.OWNERSHIP),
        ledger=AwsLedger(ports.dynamo),
        build_logs=S3BuildLogs(ports.clients.s3, ports.store_bucket, clock.now),
        history=GitHistory(config.data / "mirrors", credentials),
        credentials=credentials,
        attachment_path=lambda attachment: files.path(attachment.digest),
        make_room=make_room,
        clear_room=clear_room,
        ports=ports,
        session_files=S3SessionFiles(s3_of, ports.store_bucket),
    )


def with_account(config: Config, session: boto3.Session | None = None) -> Config:
    """The settings, with the account that our credentials belong to where they do not name it."""
    if config.aws_account:
        return config
    endpoint = config.aws_endpoint or None
    with translated("asking AWS who we are"):
        session = session or boto3.Session()
        sts = session.client("sts", config=config_of(config.aws_region, endpoint), endpoint_url=endpoint)
        return replace(config, aws_account=sts.get_caller_identity()["Account"])
