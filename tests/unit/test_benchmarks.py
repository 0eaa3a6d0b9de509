"""Each benchmark runs once, with next to no work, so that none rots. Its figures mean nothing here."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
BENCHMARKS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "harness")


NEEDS = {
    "jail_start": pytest.mark.needs("bwrap"),
    "mail_intake": pytest.mark.needs("dovecot", "openssl"),
}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [pytest.param(name, marks=NEEDS.get(name, ())) for name in BENCHMARKS])
def test_a_benchmark_still_runs_and_reports_what_it_measured(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py"), "--tiny"], capture_output=True, text=True, timeout=570, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    report = json.loads(ran.stdout)
    assert report["benchmark"] == name
    assert report["results"]
    assert report["tiny"]
    assert {"question", "workload", "repeats", "seed", "commit", "machine"} <= report.keys()


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name.startswith("pool_")])
def test_a_benchmark_of_the_pool_says_what_it_is_for(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert "Workload:" in text
    assert "Unit" in text


def test_the_benchmark_of_costs_on_aws_names_the_counts_that_miss_their_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    costs, bar = import_module("aws_cost"), import_module("harness").bar
    found = {"calls_per_mail": bar(46, at_most=45), "calls_per_job_minute": bar(8, at_most=8), "operations": {}}
    assert costs.missed({**found, "not measured": "in a tiny run"}) == ["calls_per_mail"]
