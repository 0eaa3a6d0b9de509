"""The commands when AWS cannot be spoken to: one sentence with what to do, and an exit code; no account is needed."""
# ruff: noqa: E402

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

from tests.harness.chaos import until
from webordinary.entrypoints.cli import main

COMMANDS = [
    ("status",), ("claims",), ("queues",), ("dlq", "list"), ("send", "mail.eml"), ("project", "list"), ("costs",),
    ("up", "--workers", "0", "--port", "0", "--preview-port", "0"),
]  # fmt: skip
NOBODY = "no emulator of AWS answers at http://127.0.0.1:{port}; start it with `make up-aws`, or name the right one"
STRANGERS = "there are no credentials for AWS; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"


@pytest.fixture(autouse=True)
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No credentials, no settings, nobody to ask for them."""
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("WEBORDINARY_BACKEND", "aws")
    monkeypatch.setenv("WEBORDINARY_DATA", str(tmp_path / "data"))
    Path("mail.eml").write_text("From: ann@example.com\nTo: edit@localhost\n\nHello\n")


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """One where nobody answers, with credentials that an emulator would take."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "123456789012")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "emulated")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        monkeypatch.setenv("WEBORDINARY_AWS_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        yield silent.getsockname()[1]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_an_emulator_that_does_not_answer_is_told(
    command: tuple[str, ...], port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 3
    said = capsys.readouterr().err
    assert NOBODY.format(port=port) in said
    assert len(said.splitlines()) == 1


def test_it_is_told_too_where_nobody_has_to_ask_which_account_it_is(
    port: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBORDINARY_AWS_ACCOUNT", "123456789012")
    assert main(["status"]) == 3
    assert NOBODY.format(port=port) in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_missing_credentials_are_told(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 1
    said = capsys.readouterr().err
    assert STRANGERS in said
    assert ". DATA/emulator/environment" in said
    assert len(said.splitlines()) == 1


def test_the_doctor_tells_one_from_the_other(
    capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    ports = ("--port", "0", "--preview-port", "0")
    assert main(["doctor", *ports]) == 1
    assert "fail  there are no credentials for AWS — set AWS_PROFILE" in capsys.readouterr().out
    port = request.getfixturevalue("port")
    assert main(["doctor", *ports]) == 1
    assert f"fail  no emulator of AWS answers at http://127.0.0.1:{port} — start it" in capsys.readouterr().out


def test_a_profile_that_is_not_there_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert main(["status"]) == 1
    assert "The config profile (nobody) could not be found; correct AWS_PROFILE" in capsys.readouterr().err


def test_an_endpoint_that_is_no_address_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--endpoint", "localhost:4566"]) == 2
    assert "it must be an address such as http://127.0.0.1:4566" in capsys.readouterr().err


def test_the_log_is_in_cloudwatch_and_the_command_that_shows_it_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "--mail", "abc123", "--follow"]) == 0
    said = capsys.readouterr().out
    assert "aws logs tail /webordinary/workers --since 15m --follow --filter-pattern %abc123% --region" in said
    assert "/aws/lambda/webordinary-intake" in said


@pytest.mark.parametrize("command", ["status", "up", "aws local"])
def test_the_help_names_the_backends(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    assert "one of embedded, aws" in " ".join(capsys.readouterr().out.split())


def test_a_worker_says_that_it_waits_and_so_does_its_health(
    port: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBORDINARY_AWS_ACCOUNT", "123456789012")
    command = [sys.executable, "-m", "webordinary", "worker", "--name", "w1", "--aws-poll-seconds", "1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr
        said = next(line for line in worker.stderr if line.startswith("w1 waits: "))
        assert NOBODY.format(port=port) in said
        assert said.endswith("; it goes on trying, Ctrl-C stops it\n")

        def health() -> str:
            assert main(["worker", "health", "--name", "w1"]) == 0, "to end it would mend nothing"
            return capsys.readouterr().out

        until(lambda: "lives, and waits: " in health(), "its health to say so")
        worker.terminate()
        worker.stderr.read()
    assert worker.returncode == 0
