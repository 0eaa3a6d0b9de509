"""What each lambda may do, and no more. Only workers write ownership: here it is only ever read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

from infra import rights
from infra.settings import Settings
from webordinary.adapters.aws import functions, names
from webordinary.adapters.aws.names import (
    CLAIM_REQUESTS,
    INTERRUPTIONS,
    JOBS,
    MAILS,
    OWNERSHIP,
    PROJECTS,
    THREADS,
    UNCLAIMED,
)

Statements = Sequence[iam.PolicyStatement]
STORE, RAW = names.store_bucket(Aws.ACCOUNT_ID), names.raw_bucket(Aws.ACCOUNT_ID)


def _read_mail() -> Statements:
    """A mail, what was read in it, and its sender."""
    return (
        rights.read_tables(MAILS, PROJECTS),
        rights.read_raw_mails(),
        rights.read_store("parsed"),
        rights.know_missing(STORE, RAW),
    )


def _answer(settings: Settings) -> Statements:
    """One reply, with its pictures."""
    return (
        *_read_mail(),
        rights.write_tables(MAILS, THREADS),
        rights.read_store("blobs"),
        rights.write_store("replies"),
        rights.send_mail(settings.mailbox),
    )


def _end_job() -> Statements:
    """A job's record, its workflow, and whoever else wants to hear of its end."""
    return (
        rights.move_in_tables(JOBS),
        rights.read_tables(PROJECTS),
        rights.call_back(),
        rights.send_to(rights.OUTPUT),
    )


_STEPS: Mapping[str, Callable[[Settings], Statements]] = {
    "ParseEmail": lambda _: (
        rights.write_tables(MAILS),
        rights.read_raw_mails(),
        rights.write_store("parsed"),
        rights.know_missing(RAW),
    ),
    "AuthenticateSender": lambda _: (*_read_mail(), rights.write_tables(MAILS), rights.forget_raw_mails()),
    "IdentifyProjectUser": lambda _: (
        *_read_mail(),
        rights.write_tables(MAILS, THREADS, JOBS),
        rights.forget_raw_mails(),
    ),
    "StoreAttachment": lambda _: (
        rights.write_tables(MAILS),
        rights.read_raw_mails(),
        rights.write_store("blobs"),
        rights.know_missing(RAW),
    ),
    "RunCommand": lambda _: (
        *_end_job(),
        *_read_mail(),
        rights.read_tables(THREADS),
        rights.send_to(rights.INPUT),
        rights.change_project_settings(),
    ),
    names.POOL_STEPS[0]: lambda _: (
        rights.write_tables(JOBS),
        rights.read_tables(OWNERSHIP),
        rights.move_in_tables(CLAIM_REQUESTS),
        rights.send_to(UNCLAIMED, rights.INPUT, rights.INTERRUPTS),
    ),
    "AwaitResult": lambda settings: (*_end_job(), *_answer(settings)),
    "RecordInterruption": lambda settings: (
        rights.read_tables(JOBS),
        rights.write_tables(INTERRUPTIONS),
        *_answer(settings),
    ),
    "HandleTimeout": lambda _: (rights.write_tables(JOBS), rights.send_to(rights.INPUT)),
    "GiveUp": lambda _: (
        rights.move_in_tables(JOBS),
        rights.write_tables(MAILS, INTERRUPTIONS),
        rights.send_to(rights.INPUT),
    ),
    "Reply": lambda settings: (rights.read_tables(JOBS), rights.write_tables(INTERRUPTIONS), *_answer(settings)),
}

_OTHERS: Mapping[str, Callable[[Settings], Statements]] = {
    names.INTAKE: lambda _: (
        rights.write_tables(MAILS),
        rights.read_raw_mails(),
        rights.know_missing(RAW),
        rights.start_workflow(),
    ),
    names.RECONCILE: lambda settings: (
        rights.read_tables(OWNERSHIP),
        rights.move_in_tables(CLAIM_REQUESTS),
        rights.send_to(UNCLAIMED),
        rights.search(JOBS, names.OPEN_INDEX, names.PENDING_CALLBACKS_INDEX),
        rights.search(MAILS, names.DUE_INDEX),
        rights.start_workflow(),
        rights.watch_workflow(),
        rights.send_to(rights.INPUT),
        *_end_job(),
        *_answer(settings),
    ),
    names.ABANDONED: lambda settings: (
        rights.move_in_tables(JOBS),
        rights.send_to(rights.INPUT),
        *_answer(settings),
    ),
    names.BROKER: lambda _: (
        *_read_mail(),
        rights.read_tables(OWNERSHIP, JOBS),
        rights.look_at_executions(),
        rights.become_publisher(),
    ),
    names.BOUNCES: lambda _: (rights.write_tables(MAILS, THREADS), rights.read_store("replies")),
}


def duties_of(function: functions.Function, settings: Settings) -> Statements:
    """The statements of its role."""
    duties = _STEPS[function.steps[0]] if function.steps else _OTHERS[function.name]
    return duties(settings)
