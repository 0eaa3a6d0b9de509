"""The checks of `webordinary doctor` that ask AWS."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import boto3

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import config_of
from webordinary.adapters.aws.provision.account_checks import AccountChecks, DnsChecks, MailChecks, site_name_checks
from webordinary.adapters.aws.provision.deployment import connect_tools
from webordinary.adapters.aws.provision.preflight import ClientOf, DeploymentIntent
from webordinary.adapters.aws.provision.resource_checks import (
    WorkerChecks,
    bucket_checks,
    flow_checks,
    queue_checks,
    table_checks,
)
from webordinary.compose.aws import AwsContainer, open_aws, state_machine_arn
from webordinary.compose.checks import projects_checks
from webordinary.config import Config
from webordinary.jobs.site_files import Stage
from webordinary.model.checks import Check, CheckResult, CheckRun, Verdict, broken, doubtful, good, run_checks
from webordinary.model.errors import WebOrdinaryError
from webordinary.model.snapshot import MailState, state_of
from webordinary.operations.ports import OwnDomains

MOST_KEYS = 100
MOST_MAILS = 50
MOST_LOOKED_UP = 20


def client_of(config: Config) -> ClientOf:
    """The client of a service, for what only an operator's commands ask."""
    endpoint = config.aws_endpoint or None
    return lambda service, region=config.aws_region: boto3.client(
        service, config=config_of(region, endpoint), endpoint_url=endpoint
    )


def account_checks(config: Config) -> Iterator[Check]:
    """The checks of the account's identity, which all others need."""
    endpoint = config.aws_endpoint or None
    boto = config_of(config.aws_region, endpoint)
    return AccountChecks(boto3.Session(), boto, endpoint, config.aws_account).checks()


def cloud_checks(services: AwsContainer) -> Iterator[Check]:
    """The checks of the resources that `aws deploy` makes."""
    config = services.config
    endpoint = config.aws_endpoint or None
    tools = connect_tools(config.aws_region, endpoint)
    receiving = boto3.client("ses", config=config_of(config.aws_region, endpoint), endpoint_url=endpoint)
    mail = MailChecks(services.clients, receiving, config.mailbox, emulated=bool(endpoint))
    yield from table_checks(services.clients)
    yield from queue_checks(services.clients, ())
    sites = names.sites_bucket(config.aws_account)
    yield from bucket_checks(services.clients, (services.raw_bucket, services.store_bucket), sites)
    yield from flow_checks(services.clients, tools, state_machine_arn(config), services.raw_bucket)
    yield from mail.checks()
    yield Check("held mails", partial(_held, services))
    if not endpoint:  # an emulator has no domain of its own, and its ECS and quotas are no machines
        intent = DeploymentIntent(region=config.aws_region, mailbox=config.mailbox, account=config.aws_account)
        yield from WorkerChecks(client_of(config), intent).checks()
        domain = config.mailbox.rpartition("@")[2]
        yield from DnsChecks(domain, config.aws_region, mail.dkim_tokens).checks()


def _held(services: AwsContainer) -> CheckResult:
    """Do mails wait for a person?"""
    recent = services.overview.recent_mails(None, MOST_MAILS)
    held = [mail for mail in recent if state_of(mail) is MailState.HELD]
    if held:
        words = f"{len(held)} of the last {len(recent)} mails are held, such as one of {held[0].sender}"
        return doubtful(words, "`webordinary mails list --state held --backend aws`")
    return good("no mail is held")


def customers_checks(services: AwsContainer) -> Iterator[Check]:
    """What onboarding makes, for the first customers."""
    config, clients = services.config, services.clients
    keys = list(dict.fromkeys(sender.key for sender in services.directory.senders()))[:MOST_KEYS]
    projects = list(dict.fromkeys(key.project_id for key in keys))
    yield from list(queue_checks(clients, keys))[1:]
    if not config.aws_endpoint:  # an emulator has no domain of its own
        hosts = [names.site_host(project, stage, config.domain) for project in projects for stage in Stage]
        yield from site_name_checks(hosts, config.domain)
    if edge := services.own_domains:
        own = [(one.project_id, domain) for one in services.directory.projects() for domain in one.domains]
        for project, domain in own[:MOST_LOOKED_UP]:
            yield Check(f"domain {domain}", partial(_own_domain, edge, project, domain))


def _own_domain(edge: OwnDomains, project_id: str, domain: str) -> CheckResult:
    """Do visitors see the site there?"""
    if edge.look(project_id, domain).points_here:
        return good(f"{domain} shows {project_id}")
    return doubtful(f"{domain} does not show {project_id}", f"`webordinary project domain add {project_id} {domain}`")


def examine_account(config: Config) -> Iterator[CheckRun]:
    """Check the account, the deployment and what onboarding made for the first customers."""
    identity, *others = account_checks(config)
    [known] = run_checks([identity])
    yield known
    if known.finding.verdict is Verdict.FAIL:
        return  # without an account nothing else can be checked
    yield from run_checks(others)
    with open_aws(config) as services:
        yield from run_checks(list(cloud_checks(services)))
        try:
            checks = [*customers_checks(services), *projects_checks(services)]
        except WebOrdinaryError as problem:
            yield CheckRun("sites", broken(f"the sites cannot be listed: {problem}", "mend what is above first"))
            return
        yield from run_checks(checks)
