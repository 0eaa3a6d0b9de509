"""A job is not blamed for having run when everything went down, but it cannot take the machine down for ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.embedded import AMELIA_SCOTT, WORKER, EmbeddedHarness, open_harness
from webordinary.model.claims import Claim, StartedJob
from webordinary.model.jobs import Job
from webordinary.pool.transitions import MAX_OUTAGES


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path) as opened:
        yield opened


def start_and_die(harness: EmbeddedHarness, over: Claim | None) -> Claim:
    """A worker without a lock file starts the customer's job: to everybody it is dead."""
    started = harness.services.pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, harness.services.clock.now(), over)
    assert isinstance(started, StartedJob)
    return started.claim


def the_job(harness: EmbeddedHarness) -> Job:
    [job] = harness.services.jobs.open_jobs(AMELIA_SCOTT)
    return job


def test_a_start_that_an_outage_cut_off_is_given_back(harness: EmbeddedHarness) -> None:
    harness.receive()
    claim = start_and_die(harness, None)
    assert the_job(harness).attempts == 1
    harness.services.prepare()
    assert the_job(harness).attempts == 0
    start_and_die(harness, claim)
    assert the_job(harness).attempts == 1


def test_a_start_of_a_living_worker_counts(harness: EmbeddedHarness) -> None:
    harness.receive()
    harness.services.workers.enter(WORKER)
    start_and_die(harness, None)
    harness.services.prepare()
    assert the_job(harness).attempts == 1
    harness.services.workers.leave(WORKER)


def test_a_start_that_a_living_worker_lets_go_of_is_given_back(harness: EmbeddedHarness) -> None:
    harness.receive()
    claim = start_and_die(harness, None)
    assert harness.services.pool.claims.begin_release(claim)
    assert the_job(harness).attempts == 0
    again = start_and_die(harness, claim)
    assert (the_job(harness).attempts, the_job(harness).fence) == (1, again.fence)


def test_a_release_after_a_takeover_gives_nothing_back(harness: EmbeddedHarness) -> None:
    harness.receive()
    claim = start_and_die(harness, None)
    start_and_die(harness, claim)
    assert not harness.services.pool.claims.begin_release(claim)
    assert the_job(harness).attempts == 2


def test_after_many_outages_its_starts_count_again(harness: EmbeddedHarness) -> None:
    harness.receive()
    claim = None
    for _ in range(MAX_OUTAGES + 2):
        claim = start_and_die(harness, claim)
        harness.services.prepare()
    assert the_job(harness).attempts == 2
