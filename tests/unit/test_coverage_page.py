"""docs/coverage.md promises tests by name; each must be there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
LINES = PAGE.splitlines()
ROWS = [line for line, below in zip(LINES, [*LINES[1:], ""], strict=True) if line[:2] == "| " and below[:2] != "|-"]
FIRST_SYSTEM = 95
"""Components, behaviours and scripts of the first system."""
NAMED = sorted(set(re.findall(r"`(tests/[^`]+\.py::[^`]+)`", PAGE)))


def test_every_scenario_names_a_test_in_full() -> None:
    assert ROWS, "the table is gone; the pattern of this test is out of date"
    assert [row for row in ROWS if not re.search(r"`tests/\S+\.py::test_\w+`", row)] == []
    assert "::" not in re.sub(r"`tests/[^`]+\.py::test_\w+`", "", PAGE), "a test is named by half"


def test_every_row_of_the_first_system_is_there() -> None:
    numbers = [int(found[1]) for row in ROWS if (found := re.match(r"\| (\d+) \|", row))]
    assert numbers == list(range(1, FIRST_SYSTEM + 1))


@pytest.mark.parametrize("test", NAMED)
def test_a_named_test_exists(test: str) -> None:
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
