"""The looks at AWS, put together from the settings."""

from __future__ import annotations

from collections.abc import Iterator

import boto3

from webordinary.adapters.aws.clients import config_of
from webordinary.adapters.aws.setup.checks.account import AccountChecks
from webordinary.adapters.aws.setup.checks.dns_records import DnsChecks
from webordinary.adapters.aws.setup.checks.flow import flow_checks
from webordinary.adapters.aws.setup.checks.mail import MailChecks
from webordinary.adapters.aws.setup.checks.shapes import bucket_checks, queue_checks, site_buckets, table_checks
from webordinary.adapters.aws.setup.checks.site_names import site_name_checks
from webordinary.adapters.aws.setup.deployment import connect_tools
from webordinary.app.cloud import Cloud
from webordinary.app.cloud_ports import state_machine_arn
from webordinary.app.services import Services
from webordinary.config import Config
from webordinary.model.findings import Check
from webordinary.site.releases import Stage

MOST_KEYS = 100


def account_checks(config: Config) -> Iterator[Check]:
    """Who we are: without that nothing else can be looked at."""
    endpoint = config.aws_endpoint or None
    boto = config_of(config.aws_region, endpoint)
    return AccountChecks(boto3.Session(), boto, endpoint, config.aws_account).checks()


def cloud_checks(services: Services) -> Iterator[Check]:
    """What deploying makes."""
    assert isinstance(services, Cloud)
    config, ports = services.config, services.ports
    endpoint = config.aws_endpoint or None
    tools = connect_tools(config.aws_region, endpoint)
    receiving = boto3.client("ses", config=config_of(config.aws_region, endpoint), endpoint_url=endpoint)
    mail = MailChecks(ports.clients, receiving, config.mailbox, emulated=bool(endpoint))
    yield from table_checks(ports.clients)
    yield from queue_checks(ports.clients, ())
    yield from bucket_checks(ports.clients, (ports.raw_bucket, ports.store_bucket), ())
    yield from flow_checks(ports.clients, tools, state_machine_arn(config), ports.raw_bucket)
    yield from mail.checks()
    if not endpoint:  # an emulator's domain is nobody's
        domain = config.mailbox.rpartition("@")[2]
        yield from DnsChecks(domain, config.aws_region, mail.dkim_tokens).checks()


def customers_checks(services: Services) -> Iterator[Check]:
    """What onboarding makes, for the first customers."""
    assert isinstance(services, Cloud)
    config, clients = services.config, services.ports.clients
    keys = list(dict.fromkeys(sender.key for sender in services.directory.senders()))[:MOST_KEYS]
    projects = list(dict.fromkeys(key.project_id for key in keys))
    yield from list(queue_checks(clients, keys))[1:]
    hosts = site_buckets(projects, config.domain, [stage.value for stage in Stage])  # each is called as its host
    yield from bucket_checks(clients, (), hosts)
    if not config.aws_endpoint:  # an emulator's domain is nobody's
        yield from site_name_checks(hosts, config.domain)
