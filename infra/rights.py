"""What a role may do, in our words: each function is one statement of a policy, for things by name."""

from __future__ import annotations

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

from infra import arns
from infra.nag import accept_wildcards
from webordinary.adapters.aws import names
from webordinary.adapters.aws.mail.mails import RAW, STORED

READS = ("dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:ConditionCheckItem")
WRITES = ("dynamodb:PutItem", "dynamodb:UpdateItem")
KEY_QUEUES = tuple(f"{names.PREFIX}-{role}-*" for role in ("input", "output", "interrupts"))
INPUT, OUTPUT, INTERRUPTS = KEY_QUEUES
"""Every project and user has queues of its own, made when it is onboarded."""


def grant(role: iam.Role, *statements: iam.PolicyStatement) -> None:
    """Let a role do all this, and nothing else."""
    for statement in statements:
        role.add_to_policy(statement)
        accept_wildcards(role, statement.resources, "Names that come later, all of them under a prefix of ours.")


def read_tables(*tables: str) -> iam.PolicyStatement:
    """Look at records, and make a write elsewhere depend on them."""
    return _tables(READS, tables)


def write_tables(*tables: str) -> iam.PolicyStatement:
    """Look at records and change them; nothing is removed but by its expiry."""
    return _tables((*READS, *WRITES), tables)


def change_project_settings() -> iam.PolicyStatement:
    """The settings of projects, and no record of who may change a project."""
    statement = _tables(("dynamodb:UpdateItem",), (names.PROJECTS,))
    statement.add_condition("ForAllValues:StringLike", {"dynamodb:LeadingKeys": ["project#*"]})
    return statement


def move_in_tables(*tables: str) -> iam.PolicyStatement:
    """Records that take another place when they change, as jobs do when they end."""
    return _tables((*READS, *WRITES, "dynamodb:DeleteItem"), tables)


def search(table: str, *indexes: str) -> iam.PolicyStatement:
    """Ask an index."""
    resources = [f"{arns.table(table)}/index/{name}" for name in indexes]
    return iam.PolicyStatement(actions=["dynamodb:Query"], resources=resources)


def read_raw_mails() -> iam.PolicyStatement:
    """The mails as they came, through SES or by hand."""
    bucket = names.raw_bucket(Aws.ACCOUNT_ID)
    objects = [arns.bucket(bucket, f"{folder}/*") for folder in (RAW, STORED)]
    return iam.PolicyStatement(actions=["s3:GetObject"], resources=objects)


def forget_raw_mails() -> iam.PolicyStatement:
    """Mark mails that go early, and delete those beyond the quota."""
    objects = [arns.bucket(names.raw_bucket(Aws.ACCOUNT_ID), f"{folder}/*") for folder in (RAW, STORED)]
    return iam.PolicyStatement(actions=["s3:DeleteObject", "s3:PutObjectTagging"], resources=objects)


def read_store(*folders: str) -> iam.PolicyStatement:
    """Files in the store, by the first part of their names."""
    return iam.PolicyStatement(actions=["s3:GetObject"], resources=_stored(folders))


def write_store(*folders: str) -> iam.PolicyStatement:
    """Files in the store; they go when they expire."""
    return iam.PolicyStatement(actions=["s3:GetObject", "s3:PutObject"], resources=_stored(folders))


def know_missing(*buckets: str) -> iam.PolicyStatement:
    """Without the right to list, S3 says of a missing object that it is forbidden."""
    return iam.PolicyStatement(actions=["s3:ListBucket"], resources=[arns.bucket(name) for name in buckets])


def send_to(*queues: str) -> iam.PolicyStatement:
    """Leave messages."""
    return iam.PolicyStatement(actions=["sqs:SendMessage"], resources=_queues(queues))


def receive_from(*queues: str) -> iam.PolicyStatement:
    """Take messages, put them back, delete them."""
    actions = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"]
    return iam.PolicyStatement(actions=actions, resources=_queues(queues))


def start_workflow() -> iam.PolicyStatement:
    """Start an execution; a name that ran already is no harm."""
    return iam.PolicyStatement(actions=["states:StartExecution"], resources=[arns.state_machine()])


def watch_workflow() -> iam.PolicyStatement:
    """See how executions ended."""
    return iam.PolicyStatement(
        actions=["states:ListExecutions", "states:DescribeExecution"],
        resources=[arns.state_machine(), arns.executions()],
    )


def look_at_executions() -> iam.PolicyStatement:
    """See whether one is under way."""
    return iam.PolicyStatement(actions=["states:DescribeExecution"], resources=[arns.executions()])


def call_back(*more: str) -> iam.PolicyStatement:
    """Answer the tasks that wait."""
    actions = ["states:SendTaskSuccess", "states:SendTaskFailure", *more]
    return iam.PolicyStatement(actions=actions, resources=[arns.state_machine()])


def become_publisher() -> iam.PolicyStatement:
    """Of one project, which the session's tag names."""
    return iam.PolicyStatement(
        actions=["sts:AssumeRole", "sts:TagSession"], resources=[arns.role(names.PUBLISHER_ROLE)]
    )


def ask_model(model: str) -> iam.PolicyStatement:
    """One model of Bedrock, by itself or through the inference profile that sends requests to other regions."""
    prefix, _, name = model.rpartition("anthropic.")
    resources = [f"arn:{Aws.PARTITION}:bedrock:{'*' if prefix else Aws.REGION}::foundation-model/anthropic.{name}"]
    if prefix:
        resources.append(arns.inference_profile(model))
    actions = ["bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"]
    return iam.PolicyStatement(actions=actions, resources=resources)


def send_mail(mailbox: str) -> iam.PolicyStatement:
    """Mail of our own mailbox, and of no other.

    Every identity, because in the sandbox SES asks for the right on the recipient's verified identity as well.
    """
    return iam.PolicyStatement(
        actions=["ses:SendEmail", "ses:SendRawEmail"],
        resources=[arns.identity("*"), arns.configuration_set(names.CONFIGURATION_SET)],
        conditions={"StringEquals": {"ses:FromAddress": mailbox}},
    )


def _tables(actions: tuple[str, ...], tables: tuple[str, ...]) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=list(actions), resources=[arns.table(name) for name in tables])


def _stored(folders: tuple[str, ...]) -> list[str]:
    return [arns.bucket(names.store_bucket(Aws.ACCOUNT_ID), f"{folder}/*") for folder in folders]


def _queues(queues: tuple[str, ...]) -> list[str]:
    return [arns.queue(name) for name in queues]
