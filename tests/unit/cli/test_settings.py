"""`webordinary config` and `webordinary completion`."""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from webordinary.entrypoints import running
from webordinary.entrypoints.cli import main
from webordinary.entrypoints.cli.main import parser
from webordinary.entrypoints.cli.options import FLAGS


def test_settings_are_shown_as_they_are_in_force_and_secrets_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "webordinary.toml").write_text('port = 9000\nrelay_host = "r.example"\nrelay_password = "hunter2!"\n')
    monkeypatch.setenv("WEBORDINARY_SLOTS", "7")
    assert main(["config", "show", "--data", str(tmp_path), "--json", "--workers", "3"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["port"], shown["slots"], shown["workers"]) == (9000, 7, 3)
    assert shown["relay_password"] == "(set)"


def test_the_ports_that_are_shown_are_those_of_the_running_system(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show = ["config", "show", "--data", str(tmp_path), "--json"]
    with running.lock_data_folder(tmp_path):
        running.write_endpoints(tmp_path, running.Endpoints(7, "127.0.0.1", 8580, 8081, 2945))
        assert main(show) == 0
        shown, said = capsys.readouterr()
        assert main([*show, "--port", "9000"]) == 0
        asked = json.loads(capsys.readouterr().out)
    assert (json.loads(shown)["port"], json.loads(shown)["smtp_port"], asked["port"]) == (8580, 2945, 9000)
    assert "(process 7) was started with its own port 8580 (not 8080), smtp_port 2945 (not 2525)" in said
    assert main(show) == 0
    shown, said = capsys.readouterr()
    assert (json.loads(shown)["port"], said) == (8080, "")


def test_settings_are_checked_without_starting_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check", "--data", str(tmp_path)]) == 0
    assert main(["config", "check", "--data", str(tmp_path), "--port", "nine"]) == 2
    assert "port (--port)" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.needs("bash")
def test_the_completion_is_a_script_that_bash_reads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert "redrive" in script
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False, timeout=60).returncode == 0


def test_no_argument_of_a_command_that_reads_the_settings_replaces_one_unasked() -> None:
    """Settings are read from all arguments by name, so an argument of such a name is one, with its default."""
    own = {"simulate"}  # it reads no settings
    clashes = [
        (" ".join(path), action.dest)
        for path, action in _arguments(parser(), ())
        if action.dest in FLAGS and action.default not in (None, argparse.SUPPRESS) and path[0] not in own
    ]
    assert clashes == []


def _arguments(
    command: argparse.ArgumentParser, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], argparse.Action]]:
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, part in action.choices.items():
                yield from _arguments(part, (*path, name))
        else:
            yield path, action
