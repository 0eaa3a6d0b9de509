"""AWS is silent, hangs up or does not know us: a bounded number of tries, then words that say what to do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from tests.aws.accounts import session_of
from tests.aws.emulator import ACCOUNT, REGION, RunningEmulator
from tests.aws.faulty_proxy import DROP_REQUEST, RESET, Fault, FaultyProxy, faulty_proxy, late, refusal, s3_refusal
from tests.aws.pool_tables import PoolTables
from tests.harness.chaos import until
from webordinary.adapters.aws.blobs import fetch, put_once
from webordinary.adapters.aws.clients import MAX_TRIES, Clients, config_of, connect
from webordinary.adapters.aws.dynamo import Dynamo
from webordinary.adapters.aws.pool.queues import Queues, QueueUrls
from webordinary.adapters.aws.pool.step_functions import StepFunctionsCallbacks
from webordinary.adapters.aws.provision.deployment import upload_code
from webordinary.model.claims import StartedJob
from webordinary.model.errors import Transient
from webordinary.model.jobs import NewJob
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser

PATIENT, IMPATIENT = Config(), Config(read_timeout=0.3)
"""What never comes is not waited for longer than a test may take; what does come, however busy the machine is."""
KEY = ProjectUser("amelia", "scott")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
WRITE = "dynamodb:TransactWriteItems"
BUCKET, OBJECT = "connections", "blobs/kept"


def client_for(service: str, endpoint: str, patience: Config = PATIENT, session: boto3.Session | None = None) -> Any:  # noqa: ANN401 - one of four
    """As a worker makes it but for its patience; a new one, since botocore's tries are a quota of each."""
    config = config_of(REGION, endpoint).merge(patience)
    return (session or session_of("test")).client(service, config=config, endpoint_url=endpoint)  # type: ignore[call-overload]


def ask_dynamodb(endpoint: str, patience: Config = PATIENT, session: boto3.Session | None = None) -> None:
    dynamo = Dynamo(client_for("dynamodb", endpoint, patience, session))
    dynamo.get(f"looking who owns {KEY}", ("ownership", {"projectKey": str(KEY)}))


def ask_sqs(endpoint: str, patience: Config = PATIENT, session: boto3.Session | None = None) -> None:
    sqs = client_for("sqs", endpoint, patience, session)
    Queues(sqs, QueueUrls(sqs, f"{endpoint}/{ACCOUNT}/any")).send(
        "tickets", {"jobId": "job-1"}, "TICKET", ProjectUser("amelia", "scott")
    )


def ask_s3(endpoint: str, patience: Config = PATIENT, session: boto3.Session | None = None) -> None:
    fetch(client_for("s3", endpoint, patience, session), BUCKET, OBJECT)


def ask_stepfunctions(endpoint: str, patience: Config = PATIENT, session: boto3.Session | None = None) -> None:
    StepFunctionsCallbacks(client_for("stepfunctions", endpoint, patience, session)).heartbeat("token")


Ask = Callable[..., None]
ASKED = pytest.mark.parametrize("ask", [ask_dynamodb, ask_sqs, ask_s3, ask_stepfunctions], ids=lambda ask: ask.__name__)


@pytest.fixture
def proxy(ministack: RunningEmulator) -> Iterator[FaultyProxy]:
    with faulty_proxy(ministack.endpoint) as proxy:
        yield proxy


@pytest.fixture
def morning() -> Iterator[threading.Event]:
    """Until then what is late does not come."""
    morning = threading.Event()
    yield morning
    morning.set()


@ASKED
def test_a_connection_that_is_taken_and_then_silent_is_given_up_after_bounded_tries(ask: Ask) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the kernel takes what nobody accepts
        with pytest.raises(Transient, match=r"Read timeout on endpoint URL.*; start it with `make up-aws`"):
            ask(f"http://127.0.0.1:{silent.getsockname()[1]}", IMPATIENT)
        assert connections(silent) == MAX_TRIES


def connections(server: socket.socket) -> int:
    """How many have come in."""
    server.setblocking(False)
    count = 0
    while True:
        try:
            server.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


@ASKED
def test_an_answer_that_never_comes_is_given_up_after_bounded_tries(
    ask: Ask, proxy: FaultyProxy, morning: threading.Event
) -> None:
    proxy.inject(late(morning), times=MAX_TRIES)
    with pytest.raises(Transient, match="Read timeout on endpoint URL"):
        ask(proxy.endpoint, IMPATIENT)
    until(lambda: len(proxy.done) >= MAX_TRIES, "the proxy to have read what nobody waits for any more")
    assert [fault for _, fault in proxy.done] == ["late"] * MAX_TRIES
    assert sum(proxy.calls.values()) == MAX_TRIES


@ASKED
@pytest.mark.parametrize("fault", [RESET, DROP_REQUEST], ids=lambda fault: str(fault.name))
def test_a_connection_that_breaks_each_time_is_given_up_after_bounded_tries(
    ask: Ask, proxy: FaultyProxy, fault: Fault
) -> None:
    proxy.inject(fault, times=MAX_TRIES)
    with pytest.raises(Transient, match="Connection was closed before we received a valid response"):
        ask(proxy.endpoint)
    assert sum(proxy.calls.values()) == MAX_TRIES


@pytest.mark.parametrize("fault", ["late", "reset"])
def test_a_connection_that_breaks_once_is_made_again(
    ministack: RunningEmulator, proxy: FaultyProxy, morning: threading.Event, fault: str
) -> None:
    client_for("s3", ministack.endpoint).create_bucket(Bucket=BUCKET)
    # In the end an answer comes, and within this time, though the machine is busy.
    s3 = client_for("s3", proxy.endpoint, Config(read_timeout=3) if fault == "late" else PATIENT)
    put_once(s3, BUCKET, OBJECT, b"kept")
    proxy.inject(late(morning) if fault == "late" else RESET)  # on the connection that was good before
    assert fetch(s3, BUCKET, OBJECT) == b"kept"
    assert [name for _, name in proxy.done] == [fault]


@pytest.mark.parametrize(
    ("ask", "expired"),
    [
        (ask_dynamodb, refusal(400, "com.amazon.coral.service#ExpiredTokenException")),
        (ask_sqs, refusal(403, "ExpiredToken")),
        (ask_sqs, refusal(400, "com.amazon.coral.service#ExpiredTokenException")),
        (ask_s3, s3_refusal(400, "ExpiredToken")),
        (ask_stepfunctions, refusal(400, "ExpiredTokenException")),
    ],
    ids=lambda one: one.__name__ if callable(one) else "",
)
def test_expired_credentials_are_told_at_once_and_who_asked_may_try_again(
    ask: Ask, expired: Fault, proxy: FaultyProxy
) -> None:
    proxy.inject(expired)
    with pytest.raises(Transient, match=r"our credentials have expired .*renew them, then run `webordinary doctor`"):
        ask(proxy.endpoint)
    assert sum(proxy.calls.values()) == 1


@ASKED
def test_missing_credentials_are_told_without_a_call(ask: Ask, proxy: FaultyProxy) -> None:
    with pytest.raises(Transient, match="Unable to locate credentials; set AWS_PROFILE"):
        ask(proxy.endpoint, session=boto3.Session(region_name=REGION))
    assert not proxy.calls


def test_a_package_that_cannot_be_uploaded_is_told_as_everything_else_is(proxy: FaultyProxy, tmp_path: Path) -> None:
    package = tmp_path / "lambdas.zip"
    package.write_bytes(b"zip")
    proxy.inject(s3_refusal(400, "ExpiredToken"))
    with pytest.raises(Transient, match=r"uploading lambdas.zip: .*ExpiredToken"):
        upload_code(connect(REGION, proxy.endpoint, session_of("test")), package, BUCKET)


def test_a_claim_that_arrives_when_its_worker_has_given_it_up_stands_in_the_way_as_a_foreign_one_does(
    ministack: RunningEmulator, proxy: FaultyProxy, morning: threading.Event
) -> None:
    calm = PoolTables(ministack.endpoint)
    calm.jobs().record(NewJob("a", KEY, "thread", "mail", Command.EDIT), NOON, ready=True)
    world = calm.through(proxy.endpoint)
    impatient = copy(world)
    impatient.clients = replace(
        world.clients,
        dynamodb=client_for("dynamodb", proxy.endpoint, Config(read_timeout=2)),  # for its look
    )
    proxy.inject(late(morning), WRITE, MAX_TRIES)
    with pytest.raises(Transient):
        impatient.claims().claim_and_start(KEY, "container-1", NOON)
    until(lambda: len(proxy.done) >= MAX_TRIES, "the proxy to have read what nobody waits for any more")
    assert calm.claims().look(KEY) is None
    morning.set()
    until(lambda: calm.claims().look(KEY), "the late claim")
    seen = world.claims().claim_and_start(KEY, "container-1", NOON)
    assert seen == calm.claims().look(KEY)
    again = world.claims().claim_and_start(KEY, "container-1", NOON, over=calm.claims().look(KEY))
    assert isinstance(again, StartedJob)
    assert again.job.attempts == 2


def test_every_client_tries_a_bounded_number_of_times_with_jitter_and_mail_is_sent_once() -> None:
    clients = connect(REGION, "http://127.0.0.1:9", session_of("test"))
    tries = {field.name: getattr(clients, field.name).meta.config.retries for field in fields(Clients)}
    assert {one["mode"] for one in tries.values()} == {"standard"}  # which waits at random, and longer each time
    assert {name: one["total_max_attempts"] for name, one in tries.items()} == {
        "dynamodb": MAX_TRIES, "s3": MAX_TRIES, "sqs": MAX_TRIES, "stepfunctions": MAX_TRIES, "ses": 1,
    }  # fmt: skip
