"""Fifty workers want the same key at the same moment, two hundred times in CI: real threads, real HTTP."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from botocore import UNSIGNED
from botocore.config import Config

from tests.aws.emulator import REGION, RunningEmulator
from tests.aws.faulty_proxy import BROKEN, CONFLICT, DROP_REQUEST, DROP_RESPONSE, FaultyProxy, faulty_proxy
from tests.aws.pool_tables import SESSION, PoolTables
from tests.conftest import IN_CI
from webordinary.adapters.aws.clients import config_of
from webordinary.adapters.aws.pool.claims import AwsClaims
from webordinary.model.claims import Claim, StartedJob
from webordinary.model.errors import Transient
from webordinary.model.jobs import JobOutcome, JobResult, NewJob, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser

WORKERS = 50
ROUNDS = int(os.environ.get("CLAIM_RACES", "200" if IN_CI else "20"))
FAULTY_ROUNDS = max(20, ROUNDS // 4)
"""Each has two faults at the least; the full number is run without them."""
KEY = ProjectUser("amelia", "scott")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
DONE = Settlement(JobOutcome.SUCCEEDED, JobResult("done"))
SECOND = timedelta(seconds=1)
SEED = 11
PASSES = 5
FAULTS = {DROP_REQUEST: 0.005, DROP_RESPONSE: 0.005, BROKEN: 0.005}
Race = Callable[[datetime, Claim | None], list[StartedJob | Claim | None]]


@pytest.fixture(params=["calm", "faulty"])
def proxy(request: pytest.FixtureRequest, ministack: RunningEmulator) -> Iterator[FaultyProxy | None]:
    """Faulty: on the way to the table requests and answers are lost, and some are refused."""
    with faulty_proxy(ministack.endpoint) if request.param == "faulty" else nullcontext() as proxy:
        if proxy:
            proxy.at_random(SEED, FAULTS)
        yield proxy


@pytest.fixture
def world(ministack: RunningEmulator, proxy: FaultyProxy | None) -> PoolTables:
    """With a client that does not sign: twenty thousand signatures would take longer than the races."""
    world, endpoint = PoolTables(ministack.endpoint), proxy.endpoint if proxy else ministack.endpoint
    lean = config_of(REGION, endpoint).merge(
        Config(signature_version=UNSIGNED, parameter_validation=False, user_agent="racer")
    )
    dynamodb = SESSION.client("dynamodb", endpoint_url=endpoint, config=lean)
    world.clients = replace(world.clients, dynamodb=dynamodb)
    return world


@contextmanager
def racers(claims: AwsClaims) -> Iterator[Race]:
    """All workers wait for one another, then all claim at once."""
    start = threading.Barrier(WORKERS)

    def claim(number: int, now: datetime, over: Claim | None) -> StartedJob | Claim | None:
        start.wait(60)
        for _ in range(PASSES):
            with suppress(
                Transient
            ):  # all tries of the client met a connection that was closed: as a worker, come again
                return claims.claim_and_start(KEY, f"container-{number}", now, over)
        raise AssertionError(f"the table was not reached in {PASSES} passes")

    with ThreadPoolExecutor(WORKERS) as threads:
        yield lambda now, over: list(threads.map(lambda number: claim(number, now, over), range(WORKERS)))


def the_winner(taken: list[StartedJob | Claim | None]) -> StartedJob:
    """There is one; all others were shown its claim."""
    won = [one for one in taken if isinstance(one, StartedJob)]
    assert len(won) == 1
    assert all(one == won[0].claim for one in taken if not isinstance(one, StartedJob))
    return won[0]


@pytest.mark.timeout(600)
def test_of_fifty_workers_that_want_a_key_one_gets_it_under_a_higher_fence(
    world: PoolTables, proxy: FaultyProxy | None
) -> None:
    """In turn a key that is free, and one whose owner was seen to die in the middle of its job."""
    jobs, claims, fences = world.jobs(), world.claims(), [0]
    rounds = FAULTY_ROUNDS if proxy else ROUNDS
    with racers(claims) as race:
        for number in range(rounds // 2):
            now, owner = NOON + number * SECOND, None
            jobs.record(NewJob(f"job-{number}", KEY, f"thread-{number}", "mail", Command.EDIT), now, ready=True)
            for attempt in (1, 2):
                if proxy:  # the first to come wins and is not told; the second is told to come again
                    proxy.inject(DROP_RESPONSE, "TransactWriteItems")
                    proxy.inject(CONFLICT, "TransactWriteItems")
                winner = the_winner(race(now, owner))
                assert (winner.job.job_id, winner.job.attempts) == (f"job-{number}", attempt)
                owner = winner.claim
                fences.append(owner.fence)
            claims.end_and_take_next(winner, DONE, now, more=False)
            assert owner
            assert claims.begin_release(owner)
            claims.end_release(owner)
    assert all(earlier < later for earlier, later in pairwise(fences))
    assert len(fences) == 1 + 2 * (rounds // 2)
    assert proxy is None or len(proxy.done) > 2 * rounds
