"""The simulation bites: with any one safeguard switched off, by an adapter wrapped here, a world soon breaks."""

from __future__ import annotations

import pytest

from tests.simulation.harness import SimulationHarness
from tests.simulation.mutants import MUTANTS
from tests.simulation.scenario import draw

SEEDS = 300


@pytest.mark.parametrize("safeguard", MUTANTS)
def test_it_is_noticed_when_this_is_missing(safeguard: str) -> None:
    mutant = MUTANTS[safeguard]
    for seed in range(SEEDS):
        scenario = draw(seed, mutant.climate, mutant.spot)
        if SimulationHarness(scenario, mutant.switch, mutant.slot, mutant.worker).run():
            assert SimulationHarness(scenario).run() is None, (
                f"seed {seed} breaks with every safeguard in place as well"
            )
            return
    pytest.fail(f"{SEEDS} worlds did without {safeguard}")
