"""The whole cloud path, made from nothing or brought up to date: for emulators and small set-ups.

Larger ones are made by infra/, from the same names and shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import Clients, translated
from webordinary.adapters.aws.setup import callers, functions
from webordinary.adapters.aws.setup.buckets import KEPT_MAIL_DAYS, RAW_PREFIX, make_private_bucket
from webordinary.adapters.aws.setup.deployment import Report, Tools, ensure_functions, upload_code
from webordinary.adapters.aws.setup.functions import STEP_FUNCTIONS
from webordinary.adapters.aws.setup.provision import create_tables
from webordinary.adapters.aws.setup.queue_shapes import create_shared_queues
from webordinary.adapters.aws.setup.state_machine import ensure_state_machine
from webordinary.workflow.definition import for_aws


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be there."""

    account_id: str
    package: Path
    role_arn: str
    """The role of the lambdas and of the workflow; an emulator does not look at it."""
    environment: Mapping[str, str]
    """What every lambda finds in its environment."""
    runtime: str = functions.RUNTIME


@dataclass(frozen=True, slots=True)
class Standing:
    """What is there now."""

    state_machine_arn: str
    functions: Mapping[str, str]
    raw_bucket: str
    store_bucket: str
    bounces_topic_arn: str


def provision_all(clients: Clients, tools: Tools, plan: Plan, report: Report = lambda line: None) -> Standing:
    """Make everything, in the order of need; safe to repeat. `report` hears what was done, line by line."""
    raw_bucket, store_bucket = names.raw_bucket(plan.account_id), names.store_bucket(plan.account_id)
    create_tables(clients)
    create_shared_queues(clients)
    report("tables and queues are there")
    make_private_bucket(clients.s3, raw_bucket, KEPT_MAIL_DAYS)
    make_private_bucket(clients.s3, store_bucket)
    report(f"buckets {raw_bucket} and {store_bucket} are there")
    code = upload_code(clients, plan.package, store_bucket, plan.runtime)
    arns = ensure_functions(tools, code, plan.role_arn, plan.environment, report)
    step_arns = {one.step: arns[one.name] for one in STEP_FUNCTIONS if one.step}
    machine, made = ensure_state_machine(clients.stepfunctions, for_aws(step_arns), plan.role_arn)
    report(f"workflow {names.STATE_MACHINE} is {'made' if made else 'there'}")
    callers.ensure_async_rules(tools, _queue_arn(clients, names.DEAD_LETTERS))
    callers.ensure_rules(tools, arns, machine)
    topic = callers.ensure_bounces(tools, arns)
    # Last: from here on a mail is taken.
    callers.ensure_mail_starts_intake(clients, tools, arns[names.INTAKE], raw_bucket, RAW_PREFIX)
    report(f"mails under {raw_bucket}/{RAW_PREFIX} are taken")
    return Standing(machine, arns, raw_bucket, store_bucket, topic)


def _queue_arn(clients: Clients, name: str) -> str:
    with translated(f"looking for queue {name}"):
        url = clients.sqs.get_queue_url(QueueName=name)["QueueUrl"]
        return clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
