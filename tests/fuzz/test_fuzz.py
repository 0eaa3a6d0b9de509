"""Code that reads bytes from outside, with seeded inputs: a minute of `make fuzz`, the same one each time."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz.runner import TARGETS, Finding, run
from webordinary.adapters.sandbox import proxy
from webordinary.entrypoints import smtp_data
from webordinary.mail.parsing import headers

INPUTS = {"mail": 1500, "smtp": 1500, "proxy": 6000, "ses": 750}
"""About 15 seconds each."""
BATCHES = 3
BITES_WITHIN = 600


def findings_of(name: str, seeds: range) -> list[Finding]:
    target = TARGETS[name]()
    try:
        return run(target, seeds)
    finally:
        getattr(target, "close", lambda: None)()


@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("name", TARGETS)
def test_no_input_breaks_a_promise(name: str, batch: int) -> None:
    size = INPUTS[name] // BATCHES
    found = findings_of(name, range(batch * size, (batch + 1) * size))
    if found:
        pytest.fail("\n".join(map(str, found)), pytrace=False)


def end_mails_at_a_bare_line_feed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(smtp_data, "END", b"\n.\r\n")


def believe_headers_with_two_readings(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(headers, "_defect", lambda head, block: "")


def end_headers_at_two_returns(patch: pytest.MonkeyPatch) -> None:
    believe_headers_with_two_readings(patch)
    unfolded, bounds = headers._unfolded, headers._bounds
    patch.setattr(headers, "_bounds", lambda raw: bounds(raw.replace(b"\r\r", b"\r\n\r\n", 1)))
    patch.setattr(headers, "_unfolded", lambda block: unfolded(re.sub(rb"\r(?!\n)", b"\r\n", block)))


def pass_every_header_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(proxy, "_is_ambiguous", lambda headers: False)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("mail", believe_headers_with_two_readings),
        ("smtp", end_mails_at_a_bare_line_feed),
        ("proxy", pass_every_header_on),
        ("ses", end_headers_at_two_returns),
    ],
    ids=list(INPUTS),
)
def test_a_fuzz_target_finds_a_known_fault(
    name: str, fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    assert findings_of(name, range(BITES_WITHIN))


def test_a_finding_names_its_seed_its_input_and_the_command_that_replays_it() -> None:
    told = str(Finding("ses", 0, "AssertionError: a mail of Eve speaks for scott@example.com"))
    assert "b'X-A: b\\r\\n'" in told
    command = told.partition("replay: python ")[2].split()
    ran = subprocess.run(
        [sys.executable, *command],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert ran.stdout.endswith("target ses, seed 0: no finding\n")


def test_a_run_counts_its_inputs_and_ends_with_the_findings() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--minutes", "0.01", "--first", "0", "--jobs", "1"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    assert ran.stdout.endswith(" inputs, 0 findings\n")
