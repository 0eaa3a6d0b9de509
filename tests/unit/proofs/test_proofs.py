"""The models of docs/proofs in their smaller configuration: properties hold, and every mutant breaks its own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _load_prove() -> ModuleType:
    file = Path(__file__).parents[3] / "docs" / "proofs" / "prove.py"
    spec = importlib.util.spec_from_file_location("prove", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["prove"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


prove = _load_prove()

CHECKS = {check.title: check for check in (*prove.SMALL_HOLDS, *prove.MUTANTS, *prove.WEAKNESSES)}
HOLDS, MUTANTS, WEAKNESSES = (
    [check.title for check in checks] for checks in (prove.SMALL_HOLDS, prove.MUTANTS, prove.WEAKNESSES)
)

pytestmark = [pytest.mark.needs("spin", "gcc"), pytest.mark.slow]


@pytest.mark.parametrize("title", HOLDS)
def test_what_the_model_states_holds(title: str, tmp_path: Path) -> None:
    assert prove.run(CHECKS[title], tmp_path).broken == ""


@pytest.mark.parametrize("title", MUTANTS)
def test_a_mutant_breaks_the_property_it_attacks(title: str, tmp_path: Path) -> None:
    verdict = prove.run(CHECKS[title], tmp_path)
    assert verdict.good, verdict.line()


@pytest.mark.parametrize("title", WEAKNESSES)
def test_a_known_weakness_is_still_there_or_its_entry_must_go(title: str, tmp_path: Path) -> None:
    verdict = prove.run(CHECKS[title], tmp_path)
    assert verdict.good, verdict.line()
