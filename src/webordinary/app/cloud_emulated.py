"""The whole cloud path on an emulator: tables, queues, buckets, lambdas from their zip, the workflow, a sample site."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import boto3
from botocore.exceptions import ClientError

from webordinary import sample
from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import Clients, code_of, connect, translated
from webordinary.adapters.aws.setup.bring_up import Plan, Standing, provision_all
from webordinary.adapters.aws.setup.deployment import OWN_RUNTIME, connect_tools
from webordinary.adapters.aws.setup.package import EMULATOR, build
from webordinary.app import sites
from webordinary.app.cloud import open_cloud
from webordinary.config import Config, variable_of

ACCOUNT = "123456789012"
"""The emulator takes an access key of twelve digits for the account."""
LAMBDA_SETTINGS = ("mailbox", "domain", "lease_seconds", "renew_seconds", "operator")


def credentials(region: str) -> dict[str, str]:
    """What a process finds in its environment to work in the emulated account; nobody checks the secret."""
    return {"AWS_ACCESS_KEY_ID": ACCOUNT, "AWS_SECRET_ACCESS_KEY": "emulated", "AWS_DEFAULT_REGION": region}


def environment(config: Config, env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child that works on the emulator: ours, without anybody's real credentials."""
    plain = {name: value for name, value in env.items() if not name.startswith("AWS_")}
    return plain | config.environment() | credentials(config.aws_region)


def start_emulated(config: Config, root: Path, report: Callable[[str], None]) -> None:
    """Everything but workers and page, with the sample site; again brings it up to date."""
    known = credentials(config.aws_region)
    session = boto3.Session(known["AWS_ACCESS_KEY_ID"], known["AWS_SECRET_ACCESS_KEY"], region_name=config.aws_region)
    bring_up(config, root, report, session)
    with open_cloud(config, session) as services:
        verify_sender(services.ports.clients, config.mailbox)
        there = services.directory.project(sample.PROJECT_ID)
        report(f"the sample site {sample.PROJECT_ID} is there" if there else "making the sample site")
        sites.ensure_sample(services)


def verify_sender(clients: Clients, address: str) -> None:
    """The emulator's SES sends for the addresses that it knows; on AWS their owners must confirm."""
    with translated(f"making {address} known to SES"):
        try:
            clients.ses.create_email_identity(EmailIdentity=address)
        except ClientError as problem:
            if code_of(problem) != "AlreadyExistsException":
                raise


def bring_up(
    config: Config, root: Path, report: Callable[[str], None], session: boto3.Session | None = None
) -> Standing:
    """Make it, or bring it up to date; `root` is the checkout that the lambdas are packed from."""
    report("packing the lambdas")
    plan = Plan(
        account_id=config.aws_account,
        package=build(root, EMULATOR),
        role_arn=f"arn:aws:iam::{config.aws_account}:role/webordinary",
        runtime=OWN_RUNTIME,
        environment=environment_of_lambdas(config),
    )
    where = (config.aws_region, config.aws_endpoint, session)
    return provision_all(connect(*where), connect_tools(*where), plan, report)


def environment_of_lambdas(config: Config) -> dict[str, str]:
    """The settings that a lambda reads, and where to find the emulator."""
    own = {variable_of(name): str(getattr(config, name)) for name in LAMBDA_SETTINGS}
    return {
        **own,
        variable_of("backend"): "aws",
        "AWS_ACCOUNT_ID": config.aws_account,
        "AWS_ENDPOINT_URL": config.aws_endpoint,
        "UNCLAIMED_QUEUE_URL": f"{config.aws_endpoint}/{config.aws_account}/{names.UNCLAIMED}",
    }
