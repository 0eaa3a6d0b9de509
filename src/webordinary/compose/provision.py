"""What an operator does on AWS beside looking: on an emulator, writing mails as SES would store them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path

import boto3
from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import Clients, code_of, config_of, connect, translated
from webordinary.adapters.aws.events import put_embedded
from webordinary.adapters.aws.provision.deployment import (
    OWN_RUNTIME,
    DeploymentPlan,
    DeploymentState,
    connect_tools,
    provision_all,
)
from webordinary.adapters.aws.provision.migration import Fetch, OldShape, status_of
from webordinary.adapters.aws.provision.package import (
    AWS,
    EMULATOR,
    ImageRegistry,
    build,
    newest_tag,
    registry_of,
    renew_service,
)
from webordinary.adapters.aws.provision.preflight import (
    BOOTSTRAP_VERSION,
    DeploymentIntent,
    Preflight,
    active_rules,
    allow_scaling,
    bootstrap_version,
    clear_the_way,
    existing_identity,
    make_ecs_role,
)
from webordinary.adapters.aws.provision.shapes import keys_with_queues
from webordinary.compose.aws import open_aws
from webordinary.compose.aws_checks import account_checks, client_of
from webordinary.config import Config, variable_of
from webordinary.model.checks import CheckRun, Verdict, run_checks
from webordinary.operations import onboarding, sample

ERROR_PAGE = b"<!doctype html><meta charset=utf-8><title>Not found</title><h1>There is no such page</h1>\n"
LOOKED_AT = ("operator", "hosted_zone", "capacity", "nat", "receipt_rules", "console")
"""Settings of a deployment that its preflight takes as they are said."""
PAUSE_SECONDS, EMULATED_PAUSE_SECONDS = 10.0, 0.1


def package_lambdas(root: Path) -> None:
    """Build the deployment package of the lambdas from a checkout at `root`."""
    build(root, AWS)


def activate_receipt_rules(config: Config, rules: str = names.RECEIPT_RULES) -> str:
    """Activate our receipt rules of SES, unless other rules are active; returns the result in words."""
    endpoint = config.aws_endpoint or None
    if endpoint:
        return "an emulator receives no mail: `webordinary send` puts mails where SES would"
    ses = boto3.client("ses", config=config_of(config.aws_region))
    active = active_rules(ses)
    with translated("making our receipt rules the active ones"):
        if active and active == rules:
            return f"SES receives by the rules {active}"
        if active:
            return (
                f"SES receives by the rules {active}; if ours shall take their place: "
                f"aws ses set-active-receipt-rule-set --rule-set-name {names.RECEIPT_RULES}"
            )
        ses.set_active_receipt_rule_set(RuleSetName=names.RECEIPT_RULES)
    return f"SES receives by the rules {names.RECEIPT_RULES}"


def examine_before_deploying(config: Config, given: Mapping[str, str], *, take_over_mail: bool) -> Iterator[CheckRun]:
    """Run every check of `aws preflight`; `given` are the settings of the deployment. Changes nothing."""
    intent = DeploymentIntent(
        region=config.aws_region,
        mailbox=_mailbox(given),
        take_over_mail=take_over_mail,
        max_workers=int(given.get("max_workers", "10")),
        **{name: given[name] for name in LOOKED_AT if name in given},
    )
    identity, *others = account_checks(config)
    [known] = run_checks([identity])
    yield known
    if known.finding.verdict is not Verdict.FAIL:
        found = Preflight(client_of(config), intent, emulated=bool(config.aws_endpoint))
        yield from run_checks([*others, *found.checks()])


def identity_to_use(config: Config, given: Mapping[str, str]) -> str:
    """Whether the deployment makes SES's identity or uses an existing one: the setting `identity`."""
    return existing_identity(client_of(config), _mailbox(given).rpartition("@")[2])


def _mailbox(given: Mapping[str, str]) -> str:
    return given.get("mailbox") or names.mailbox_of(given.get("domain", "example.com"))


def is_bootstrapped(config: Config) -> bool:
    """Whether the CDK's bucket and roles are there, as the stacks require them."""
    return bootstrap_version(client_of(config)("ssm")) >= BOOTSTRAP_VERSION


def make_roles(config: Config) -> None:
    """The role that ECS needs before its first cluster."""
    make_ecs_role(client_of(config)("iam"))


def resume_scaling(config: Config) -> None:
    """Let waiting keys start workers; a removal that was begun had forbidden it."""
    if config.aws_endpoint:
        return
    allow_scaling(client_of(config)("application-autoscaling"), allowed=True)


def put_error_page(config: Config) -> None:
    """What visitors of any site get for a page that is not there."""
    if config.aws_endpoint:  # the emulator has no edge
        return
    bucket = names.sites_bucket(config.aws_account)
    with translated(f"writing {names.ERROR_PAGE} to {bucket}"):
        client_of(config)("s3").put_object(
            Bucket=bucket,
            Key=names.ERROR_PAGE,
            Body=ERROR_PAGE,
            ContentType="text/html; charset=utf-8",
            CacheControl="public, max-age=300",
        )


def migrate(config: Config, report: Callable[[str], None], fetch: Fetch = status_of) -> int:
    """Bring queues, sites and credentials of earlier versions to where they are; then remove stacks of single sites.

    Where the copies are not shown under their new names yet, it raises Permanent and removes nothing.
    """
    pause = EMULATED_PAUSE_SECONDS if config.aws_endpoint else PAUSE_SECONDS
    with open_aws(config) as services:
        projects = [project.project_id for project in services.directory.projects()]
        for key in chain.from_iterable(keys_with_queues(services.clients, project) for project in projects):
            services.provision(key)
        old = OldShape(client_of(config), services.config.aws_account, config.domain)
        steps = (old.copy_sites(projects), old.copy_credentials(projects), old.check_new_shape(projects, fetch))
        for done in chain.from_iterable(steps):
            report(done)
    return old.remove_stacks(report, lambda: time.sleep(pause), projects)


def prepare_removal(config: Config, report: Callable[[str], None]) -> None:
    """Stop receiving, workers and machines, so that the stacks can be removed."""
    if not config.aws_endpoint:  # the emulator scales nothing
        allow_scaling(client_of(config)("application-autoscaling"), allowed=False)
    pause = EMULATED_PAUSE_SECONDS if config.aws_endpoint else PAUSE_SECONDS
    clear_the_way(client_of(config), report, lambda: time.sleep(pause))
    OldShape(client_of(config), config.aws_account, config.domain).remove_stacks(report, lambda: time.sleep(pause))


def registry(config: Config) -> ImageRegistry:
    """The registry of the worker's image."""
    endpoint = config.aws_endpoint or None
    return registry_of(boto3.client("ecr", config=config_of(config.aws_region, endpoint), endpoint_url=endpoint))


def newest_image_tag(config: Config) -> str:
    """The tag of the worker image that was pushed last; empty if there is none yet."""
    endpoint = config.aws_endpoint or None
    return newest_tag(boto3.client("ecr", config=config_of(config.aws_region, endpoint), endpoint_url=endpoint))


def renew(config: Config, image: str) -> None:
    """Deploy the image to the workers."""
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
    "acknowledge_seconds",
)


def credentials(region: str) -> dict[str, str]:
    """The environment of a process that works in the emulated account; the emulator does not check the secret."""
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


def emulated_metrics(config: Config) -> Callable[[str], None]:
    """Brings what a worker printed to the emulator's metrics."""
    known = credentials(config.aws_region)
    session = boto3.Session(known["AWS_ACCESS_KEY_ID"], known["AWS_SECRET_ACCESS_KEY"], region_name=config.aws_region)
    boto = config_of(config.aws_region, config.aws_endpoint)
    return partial(put_embedded, session.client("cloudwatch", config=boto, endpoint_url=config.aws_endpoint))


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
