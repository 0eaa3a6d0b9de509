"""The cloud path on an emulator, in an account that no other test uses: lambdas from the packaged zip.

Import it first: without boto3 the test file is skipped here, with words.
"""
# ruff: noqa: E402

from __future__ import annotations

import fcntl
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

from tests.aws.accounts import session_of
from tests.aws.emulator import REGION
from tests.harness import chaos
from webordinary.adapters.aws.clients import Clients, connect
from webordinary.adapters.aws.functions import FUNCTIONS, RECONCILE
from webordinary.adapters.aws.provision.deployment import (
    OWN_RUNTIME,
    DeploymentPlan,
    DeploymentState,
    Tools,
    connect_tools,
    provision_all,
)
from webordinary.adapters.aws.provision.package import EMULATOR, Target, build
from webordinary.compose.provision import environment_of_lambdas
from webordinary.config import Config
from webordinary.model.errors import Transient

ROOT = Path(__file__).parents[2]
MAILBOX = "edit@example.net"
TIMEOUT_SECONDS = 240.0
"""A mail passes a dozen lambdas, each of which may have to start Python first, on a machine that is busy."""


@cache
def packaged(target: Target = EMULATOR) -> Path:
    """The lambdas' zip; a test is skipped where pip cannot reach its index."""
    try:
        with alone(ROOT / "build" / "lambda" / "tests.lock"):
            return build(ROOT, target)
    except Transient as problem:
        pytest.skip(str(problem))


def until(happened: Callable[[], object], what: str) -> None:
    """Look until lambdas have made it happen."""
    chaos.until(happened, what, TIMEOUT_SECONDS)


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Of the processes that run tests one packs, and the others find it packed."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class Account:
    """An account of its own on an emulator."""

    account_id: str
    clients: Clients
    tools: Tools
    standing: DeploymentState


def brought_up(endpoint: str, report: Callable[[str], None] = lambda line: None) -> Account:
    """Everything of the cloud path but workers, in a fresh account."""
    account_id = f"{random.SystemRandom().randrange(10**11, 10**12)}"
    where = (REGION, endpoint, session_of(account_id))
    clients, tools = connect(*where), connect_tools(*where)
    standing = provision_all(clients, tools, plan_for(account_id, endpoint), report)
    return Account(account_id, clients, tools, standing)


def close_down(tools: Tools) -> None:
    """Its lambdas end, which would wait for events as long as the emulator runs, and nothing calls them any more."""
    for one in FUNCTIONS:
        tools.functions.delete_function(FunctionName=one.name)
    tools.events.disable_rule(Name=RECONCILE.name)


def plan_for(account_id: str, endpoint: str) -> DeploymentPlan:
    config = Config(backend="aws", aws_account=account_id, aws_endpoint=endpoint, mailbox=MAILBOX)
    return DeploymentPlan(
        account_id=account_id,
        package=packaged(),
        role_arn=f"arn:aws:iam::{account_id}:role/webordinary",
        runtime=OWN_RUNTIME,
        environment=environment_of_lambdas(config),
    )
