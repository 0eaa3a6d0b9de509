"""`webordinary simulate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from webordinary.entrypoints.cli.main import main
from webordinary.entrypoints.cli.output import Exit

SMALL = ["simulate", "--projects", "50", "--mails-per-day", "200"]


def test_it_prints_workers_waits_and_the_bill(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--workers", "auto"]) == Exit.OK
    told = capsys.readouterr().out
    for words in (" of 4 slots ", "time to claim", "utilisation", "busy workers", "total", "per 1,000 mails"):
        assert words in told


def test_json_says_the_same_for_the_same_seed(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for _ in range(2):
        assert main([*SMALL, "--seed", "5", "--json"]) == Exit.OK
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1]
    assert said[0]["seed"] == 5


def test_measured_calls_change_the_bill(capsys: pytest.CaptureFixture[str]) -> None:
    bills = []
    for calls in ("45", "90"):
        main([*SMALL, "--workers", "3", "--calls-per-mail", calls, "--json"])
        bills.append(json.loads(capsys.readouterr().out)["monthly_usd"])
    assert bills[1]["DynamoDB"] > bills[0]["DynamoDB"]
    assert bills[1]["compute"] == bills[0]["compute"]


def test_the_plot_is_written_where_it_was_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--workers", "2", "--plot", str(tmp_path / "day.svg")]) == Exit.OK
    assert (tmp_path / "day.svg").read_text(encoding="utf-8").startswith("<svg")
    assert capsys.readouterr().out.endswith(f"the curves of the day are in {tmp_path / 'day.svg'}\n")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--projects", "0"], "projects 0: use 1 to 200,000"),
        (["--mails-per-day", "1000000000"], "mails a day"),
        (["--workers", "several"], "use a number, or auto"),
        (["--workers", "0"], "workers 0"),
        (["--job-seconds", "nan"], "seconds of a job"),
        (["--day", "sunday"], "use business or flat"),
        (["--compute", "abacus"], "use ec2 or fargate"),
        (["--calls-per-idle-hour", "-3"], "calls -3"),
        (["--plot", "nowhere/at/all.svg"], "there is no folder"),
    ],
)
def test_bad_input_is_refused_in_words(flags: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, *flags]) == Exit.USAGE
    told = capsys.readouterr()
    assert words in told.err
    assert not told.out
