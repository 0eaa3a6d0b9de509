"""Seeded worlds: crashes, pauses, lost wake-ups, wrong clocks and full disks break no promise of the pool."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simulation.harness import SimulationHarness, run_seed
from tests.simulation.runner import failure_of
from tests.simulation.scenario import draw

SEEDS = 200
BATCH = 20


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_no_seed_breaks_an_invariant(first: int) -> None:
    for seed in range(first, first + BATCH):
        if failure := failure_of(seed):
            pytest.fail(failure, pytrace=False)


def test_worlds_show_changed_sites() -> None:
    """Else the invariants would hold because no job gets far enough to break one."""
    worlds = [SimulationHarness(draw(seed, "calm")) for seed in range(5)]
    assert [world.run() for world in worlds] == [None] * len(worlds)
    for world in worlds:
        assert any(site.shown for site in world.durable.releases.sites.values()), world.scenario.seed


def test_a_seed_replays_identically_in_another_process() -> None:
    seed = next(seed for seed in range(SEEDS) if run_seed(seed)[1].scenario.climate_name == "storm")
    args = [sys.executable, "-m", "tests.simulation", "--seed", str(seed), "--everything"]
    first, second = (
        subprocess.run(
            args, env={**os.environ, "PYTHONHASHSEED": salt}, check=True, capture_output=True, timeout=120
        ).stdout
        for salt in ("1", "2")
    )
    assert first == second
    assert first.endswith(b"passed\n")
