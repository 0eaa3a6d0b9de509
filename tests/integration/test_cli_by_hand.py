"""What an operator starts by hand beside a running `up`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.waiting import Customer, text_of, wait_for_reply
from tests.conftest import Up
from webordinary.entrypoints.cli import main


def test_a_worker_started_by_hand_links_to_the_page_that_runs(start_up: Callable[..., Up]) -> None:
    up = start_up("--workers", "0")
    worker = subprocess.Popen(
        [sys.executable, "-m", "webordinary", "worker", "--data", str(up.data)], stdout=subprocess.DEVNULL
    )
    try:
        reply = wait_for_reply(up, Customer().write(up, "Change the homepage title to Summer Glazes"))
    finally:
        worker.terminate()
        worker.wait(60)
    assert f":{up.page.rstrip('/').rpartition(':')[2]}/" in text_of(reply)
    assert ":8080" not in text_of(reply)


def add(data: Path, repo: Path) -> list[str]:
    repo.mkdir(exist_ok=True)
    (repo / "index.html").write_text("<!doctype html><title>Jam</title><h1>Jam</h1>\n")
    who = ["--user", "ann", "--sender", "ann@example.com", "--sample-mail", "--data", str(data)]
    return ["project", "add", "jam", "--repo", str(repo), *who]


def test_a_sample_mail_is_sent_to_a_running_system_and_answered(
    start_up: Callable[..., Up], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    up = start_up()
    assert main(add(up.data, tmp_path / "jam")) == 0
    assert "a first mail is on its way" in capsys.readouterr().out


def test_a_sample_mail_that_no_system_would_take_is_refused_before_the_site_is_added(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    assert main(add(data, tmp_path / "jam")) == 3
    assert "start `webordinary up` first" in capsys.readouterr().err
    assert not (data / "webordinary.db").exists()
