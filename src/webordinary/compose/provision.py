"""What an operator does on AWS beside looking: on an emulator, writing mails as SES would store them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import boto3
from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import Clients, code_of, config_of, connect, translated
from webordinary.adapters.aws.provision.deployment import (
    OWN_RUNTIME,
    DeploymentPlan,
    DeploymentState,
    connect_tools,
    provision_all,
)
from webordinary.adapters.aws.provision.package import (
    AWS,
    EMULATOR,
    ImageRegistry,
    build,
    newest_tag,
    registry_of,
    renew_service,
)
from webordinary.compose.aws import open_aws
from webordinary.config import Config, variable_of
from webordinary.operations import onboarding, sample


def package_lambdas(root: Path) -> None:
    """Build the deployment package of the lambdas from a checkout at `root`."""
    build(root, AWS)


def activate_receipt_rules(config: Config) -> str:
    """Let SES receive by our rules, unless others are active; what was done, or is left to do, in words."""
    endpoint = config.aws_endpoint or None
    if endpoint:
        return "an emulator receives no mail: `webordinary send` puts mails where SES would"
    ses = boto3.client("ses", config=config_of(config.aws_region))
    with translated("making our receipt rules the active ones"):
        active = ses.describe_active_receipt_rule_set().get("Metadata", {}).get("Name", "")
        if active and active != names.RECEIPT_RULES:
            return (
                f"SES receives by the rules {active}; if ours shall take their place: "
                f"aws ses set-active-receipt-rule-set --rule-set-name {names.RECEIPT_RULES}"
            )
        ses.set_active_receipt_rule_set(RuleSetName=names.RECEIPT_RULES)
    return f"SES receives by the rules {names.RECEIPT_RULES}"


def registry(config: Config) -> ImageRegistry:
    """Where to push to."""
    endpoint = config.aws_endpoint or None
    return registry_of(boto3.client("ecr", config=config_of(config.aws_region, endpoint), endpoint_url=endpoint))


def newest_image_tag(config: Config) -> str:
    """The tag of the worker image that was pushed last; empty if there is none yet."""
    endpoint = config.aws_endpoint or None
    return newest_tag(boto3.client("ecr", config=config_of(config.aws_region, endpoint), endpoint_url=endpoint))


def renew(config: Config, image: str) -> None:
    """Let the workers run this image."""
    endpoint = config.aws_endpoint or None
    renew_service(boto3.client("ecs", config=config_of(config.aws_region, endpoint), endpoint_url=endpoint), image)


ACCOUNT = "123456789012"
"""The emulator takes an access key of twelve digits for the account."""
LAMBDA_SETTINGS = (
    "mailbox",
    "domain",
    "lease_seconds",
    "renew_seconds",
    "operator",
    "retention_days",
    "unadmitted_mail_mb",
)


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
    with open_aws(config, session) as services:
        verify_sender(services.clients, config.mailbox)
        there = services.directory.project(sample.PROJECT_ID)
        report(f"the sample site {sample.PROJECT_ID} is there" if there else "making the sample site")
        onboarding.ensure_sample(services)


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
) -> DeploymentState:
    """Make it, or bring it up to date; `root` is the checkout that the lambdas are packed from."""
    report("packing the lambdas")
    plan = DeploymentPlan(
        account_id=config.aws_account,
        package=build(root, EMULATOR),
        role_arn=f"arn:aws:iam::{config.aws_account}:role/webordinary",
        runtime=OWN_RUNTIME,
        environment=environment_of_lambdas(config),
        retention_days=config.retention_days,
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
