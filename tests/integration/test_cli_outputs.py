"""`project set --output on` and `webordinary outputs`: results for programs of a customer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.house import DEAD, open_house
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
    with open_house(tmp_path) as house:
        done = house.receive("Change the title to Spring Sale")
        house.settle()  # its worker is killed before it tells anybody
        given_up = house.receive("Change the title to Summer Sale")
        house.work(DEAD)
    assert main(["outputs", "--data", str(tmp_path)]) != 0
    assert "--output on" in capsys.readouterr().err
    switch(tmp_path, "on")
    first, second = outputs(tmp_path, capsys)
    assert first.keys() >= {"messageId", "threadId", "status", "summary", "commit", "url", "error"}
    assert [(one["messageId"], one["status"]) for one in (first, second)] == [(done, "succeeded"), (given_up, "dead")]
    assert outputs(tmp_path, capsys, "amelia", "--since", second["settledAt"]) == [second]
    switch(tmp_path, "off")
    assert main(["outputs", "--data", str(tmp_path)]) != 0
