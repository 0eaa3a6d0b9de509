"""Recorded on AWS, replayed here: status, output, error, cause and states entered must be the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.conformance.asl_corpus import SHARED, Case, cases, comparison, differences, replay

from webordinary.asl.errors import InvalidDefinition

pytestmark = pytest.mark.may_skip(not SHARED.exists(), reason="this repository does not contain the corpora")

OUTCOME = ("status", "output", "error", "cause", "states_entered")

# What we do not do yet, or what the recording cannot tell; found in the definition, never by a case's name.
UNSUPPORTED: dict[str, Callable[[Case], bool]] = {
    "JSONata": lambda case: '"QueryLanguage": "JSONata"' in json.dumps(case["definition"]),
    "a distributed Map that reads or writes S3": lambda case: bool(
        _fields(case["definition"]) & {"ItemReader", "ItemBatcher", "ResultWriter"}
    ),
    "express workflows": lambda case: case["type"] == "EXPRESS",
    "recorded without what its services answered": lambda case: (
        bool(case["services"]) and case.get("task_script") is None
    ),
    "a Task in a distributed Map (recorded in child executions)": lambda case: _task_in_distributed_map(
        case["definition"]
    ),
}


def _fields(value: Any) -> set[str]:  # noqa: ANN401
    if isinstance(value, dict):
        return set(value).union(*map(_fields, value.values()))
    return set().union(*map(_fields, value)) if isinstance(value, list) else set()


def _task_in_distributed_map(value: Any, inside: bool = False) -> bool:  # noqa: ANN401
    if isinstance(value, list):
        return any(_task_in_distributed_map(inner, inside) for inner in value)
    if not isinstance(value, dict):
        return False
    if inside and value.get("Type") == "Task":
        return True
    inside = inside or value.get("ProcessorConfig", {}).get("Mode") == "DISTRIBUTED"
    return any(_task_in_distributed_map(inner, inside) for inner in value.values())


def unsupported(case: Case) -> str | None:
    return next((feature for feature, found in UNSUPPORTED.items() if found(case)), None)


def supported_cases(file: str) -> list[Case]:
    return [case for case in cases(file) if unsupported(case) is None and not case.get("distrust")]


@pytest.mark.parametrize(
    ("file", "supported", "same_outcome", "same_events"),
    [
        # Left: AWS shows one ParallelStateExited for two nested Parallels.
        ("corpus.jsonl", 453, 453, 452),
        # Left: a `.sync` task whose child execution answers the parent's task token.
        ("corpus_services.jsonl", 84, 83, 83),
    ],
)
def test_what_aws_recorded_is_what_we_do(file: str, supported: int, same_outcome: int, same_events: int) -> None:
    eq = comparison() if (known := supported_cases(file)) else None
    assert eq is not None
    found = {case["id"]: differences(case, replay(case), eq) for case in known}
    wrong = {name: fields for name, fields in found.items() if set(fields) & set(OUTCOME)}
    assert len(found) >= supported
    assert len(found) - len(wrong) >= same_outcome, wrong
    assert sum(not fields for fields in found.values()) >= same_events, found


@pytest.mark.parametrize("file", ["corpus.jsonl", "corpus_services.jsonl"])
def test_what_we_cannot_run_is_refused_at_load_by_state_and_field(file: str) -> None:
    refused = Counter[str]()
    for case in cases(file):
        if unsupported(case) in ("JSONata", "a distributed Map that reads or writes S3"):
            with pytest.raises(InvalidDefinition) as refusal:
                replay(case)
            refused[refusal.value.field] += 1
    assert refused
    assert set(refused) <= {"QueryLanguage", "ItemReader", "ItemBatcher", "ResultWriter"}
