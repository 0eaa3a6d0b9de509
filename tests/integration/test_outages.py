"""A job is not blamed for having run when everything went down, but it cannot take the machine down for ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.house import AMELIA_SCOTT, WORKER, House, open_house
from webordinary.model.claims import Claim, StartedJob
from webordinary.model.jobs import Job
from webordinary.pool.transitions import MAX_OUTAGES


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with open_house(tmp_path) as opened:
        yield opened


def start_and_die(house: House, over: Claim | None) -> Claim:
    """A worker without a lock file starts the customer's job: to everybody it is dead."""
    started = house.services.pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, house.services.clock.now(), over)
    assert isinstance(started, StartedJob)
    return started.claim


def the_job(house: House) -> Job:
    [job] = house.services.jobs.open_jobs(AMELIA_SCOTT)
    return job


def test_a_start_that_an_outage_cut_off_is_given_back(house: House) -> None:
    house.receive()
    claim = start_and_die(house, None)
    assert the_job(house).attempts == 1
    house.services.prepare()
    assert the_job(house).attempts == 0
    start_and_die(house, claim)
    assert the_job(house).attempts == 1


def test_a_start_of_a_living_worker_counts(house: House) -> None:
    house.receive()
    house.services.workers.enter(WORKER)
    start_and_die(house, None)
    house.services.prepare()
    assert the_job(house).attempts == 1
    house.services.workers.leave(WORKER)


def test_a_start_that_a_living_worker_lets_go_of_is_given_back(house: House) -> None:
    house.receive()
    claim = start_and_die(house, None)
    assert house.services.pool.claims.begin_release(claim)
    assert the_job(house).attempts == 0
    again = start_and_die(house, claim)
    assert (the_job(house).attempts, the_job(house).fence) == (1, again.fence)


def test_a_release_after_a_takeover_gives_nothing_back(house: House) -> None:
    house.receive()
    claim = start_and_die(house, None)
    start_and_die(house, claim)
    assert not house.services.pool.claims.begin_release(claim)
    assert the_job(house).attempts == 2


def test_after_many_outages_its_starts_count_again(house: House) -> None:
    house.receive()
    claim = None
    for _ in range(MAX_OUTAGES + 2):
        claim = start_and_die(house, claim)
        house.services.prepare()
    assert the_job(house).attempts == 2
