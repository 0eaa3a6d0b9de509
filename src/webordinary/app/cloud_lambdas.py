"""The lambdas' services over AWS, from what stands in a function's environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from webordinary.adapters.aws.clients import connect
from webordinary.adapters.aws.mail.intake import AwsIntake
from webordinary.adapters.aws.mail.raw_mails import AwsRawMails
from webordinary.app.cloud_ports import cloud_ports
from webordinary.app.lambda_services import LambdaServices
from webordinary.config import Config
from webordinary.model.events import Events

LOOKED_THROUGH = 1000
"""So many objects of the bucket are looked at each minute: one listing."""


def open_lambda_services(environment: Mapping[str, str], events: Events) -> LambdaServices:
    """Open what a lambda needs; called once per cold start."""
    config = Config.load(env=environment)
    ports = cloud_ports(config, connect(config.aws_region, config.aws_endpoint or None), _now)
    return LambdaServices(
        mailroom=ports.mailroom,
        pool=ports.pool,
        interruptions=ports.interruptions,
        dead_letters=ports.dead_letters,
        outbox=ports.outbox,
        transport=ports.transport,
        workflows=ports.workflows,
        events=events,
        now=_now,
        region=config.aws_region,
        expect_job=ports.job_table.expect,
        raw_bucket=ports.raw_bucket,
        accept=AwsIntake(ports.raw_mails, ports.mailroom.mailbox, events).take,
        unnoted=_round_the_bucket(ports.raw_mails),
    )


def _round_the_bucket(raw_mails: AwsRawMails) -> Callable[[], Sequence[str]]:
    """Look on, each time, from where the last look ended; a cold start begins at the beginning."""
    after = ""

    def look() -> Sequence[str]:
        nonlocal after
        found = raw_mails.unnoted(LOOKED_THROUGH, _now(), after)
        after = found.after
        return found.keys

    return look


def _now() -> datetime:
    return datetime.now(UTC)
