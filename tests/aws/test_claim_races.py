"""Fifty workers want the same key at the same moment, two hundred times in CI: real threads, real HTTP."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from botocore import UNSIGNED
from botocore.config import Config

from tests.aws.emulator import REGION, Emulator
from tests.aws.pool_world import SESSION, PoolWorld
from tests.conftest import IN_CI
from webordinary.adapters.aws.clients import config_of
from webordinary.adapters.aws.pool.claims import AwsClaims
from webordinary.model.claims import Claim, Started
from webordinary.model.jobs import JobResult, NewJob, Outcome, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser

WORKERS = 50
ROUNDS = int(os.environ.get("CLAIM_RACES", "200" if IN_CI else "40")) // 2
"""Of each kind of race."""
KEY = ProjectUser("amelia", "scott")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
DONE = Settlement(Outcome.SUCCEEDED, JobResult("done"))
SECOND = timedelta(seconds=1)
Race = Callable[[datetime, Claim | None], list[Started | Claim | None]]


@pytest.fixture
def world(ministack: Emulator) -> PoolWorld:
    """With a client that does not sign: twenty thousand signatures would take longer than the races."""
    world = PoolWorld(ministack.endpoint)
    lean = config_of(REGION, ministack.endpoint).merge(Config(signature_version=UNSIGNED, parameter_validation=False))
    dynamodb = SESSION.client("dynamodb", endpoint_url=ministack.endpoint, config=lean)
    world.clients = replace(world.clients, dynamodb=dynamodb)
    return world


@contextmanager
def racers(claims: AwsClaims) -> Iterator[Race]:
    """All workers wait for one another, then all claim at once."""
    start = threading.Barrier(WORKERS)

    def claim(number: int, now: datetime, over: Claim | None) -> Started | Claim | None:
        start.wait(60)
        return claims.claim_and_start(KEY, f"container-{number}", now, over)

    with ThreadPoolExecutor(WORKERS) as threads:
        yield lambda now, over: list(threads.map(lambda number: claim(number, now, over), range(WORKERS)))


def the_winner(taken: list[Started | Claim | None]) -> Started:
    """There is one; all others were shown its claim."""
    won = [one for one in taken if isinstance(one, Started)]
    assert len(won) == 1
    assert all(one == won[0].claim for one in taken if not isinstance(one, Started))
    return won[0]


@pytest.mark.timeout(300)
def test_of_fifty_workers_that_want_a_free_key_one_gets_it_under_a_higher_fence(world: PoolWorld) -> None:
    jobs, claims, fences = world.jobs(), world.claims(), [0]
    with racers(claims) as race:
        for number in range(ROUNDS):
            now = NOON + number * SECOND
            jobs.record(NewJob(f"job-{number}", KEY, f"thread-{number}", "mail", Command.EDIT), now, ready=True)
            winner = the_winner(race(now, None))
            fences.append(winner.claim.fence)
            claims.end_and_take_next(winner, DONE, now, more=False)
            assert claims.begin_release(winner.claim)
            claims.end_release(winner.claim)
    assert all(earlier < later for earlier, later in pairwise(fences))


@pytest.mark.timeout(300)
def test_of_fifty_workers_that_saw_the_owner_die_one_takes_over_under_a_higher_fence(world: PoolWorld) -> None:
    world.jobs().record(NewJob("job", KEY, "thread", "mail", Command.EDIT), NOON, ready=True)
    claims, fences = world.claims(), [0]
    seen: Claim | None = None
    with racers(claims) as race:
        for _ in range(ROUNDS):
            winner = the_winner(race(NOON, seen))
            seen = winner.claim
            fences.append(seen.fence)
    assert all(earlier < later for earlier, later in pairwise(fences))
    assert winner.job.attempts == ROUNDS
