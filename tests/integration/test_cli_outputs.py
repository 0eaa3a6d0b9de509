"""`project set --output on` and `webordinary outputs`: results for programs of a customer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.embedded import DEAD, open_harness
from webordinary.entrypoints.cli import main


def outputs(data: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> list[dict[str, str]]:
    capsys.readouterr()
    assert main(["outputs", *flags, "--data", str(data)]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def switch(data: Path, to: str) -> None:
    assert main(["project", "set", "amelia", "--output", to, "--data", str(data)]) == 0


def test_programs_read_the_result_of_each_mail_once_a_command_switched_that_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_harness(tmp_path) as harness:
        done = harness.receive("Change the title to Spring Sale")
        harness.settle()  # its worker is killed before it tells anybody
        given_up = harness.receive("Change the title to Summer Sale")
        harness.work(DEAD)
    assert main(["outputs", "--data", str(tmp_path)]) != 0
    assert "--output on" in capsys.readouterr().err
    switch(tmp_path, "on")
    first, second = outputs(tmp_path, capsys)
    assert first.keys() >= {"messageId", "threadId", "status", "summary", "commit", "url", "error"}
    assert [(one["messageId"], one["status"]) for one in (first, second)] == [(done, "succeeded"), (given_up, "dead")]
    assert outputs(tmp_path, capsys, "amelia", "--since", second["settledAt"]) == [second]
    switch(tmp_path, "off")
    assert main(["outputs", "--data", str(tmp_path)]) != 0


def test_a_program_that_follows_reads_a_result_as_soon_as_a_mail_ends_and_never_twice(tmp_path: Path) -> None:
    with open_harness(tmp_path) as harness:
        switch(tmp_path, "on")
        ended = [harness.receive("Change the title to Spring Sale")]
        harness.work()
        command = [sys.executable, "-m", "webordinary", "outputs", "amelia", "--follow", "--data", str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
            assert following.stdout
            read = [json.loads(following.stdout.readline())["messageId"]]
            for title in ("Summer", "Autumn"):
                ended.append(harness.receive(f"Change the title to {title} Sale"))
                harness.work()
                read.append(json.loads(following.stdout.readline())["messageId"])
            following.terminate()
    assert read == ended
