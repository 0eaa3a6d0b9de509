"""A mail sent from the command line, and what status and logs say of it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import pytest

from tests.conftest import Up
from webordinary.compose.embedded import open_embedded
from webordinary.config import Config
from webordinary.entrypoints.cli import main
from webordinary.model.events import Event, EventKind


@pytest.fixture
def mail(tmp_path: Path) -> Path:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Scott <scott@example.com>", "edit@localhost", "Spring"
    message["Message-ID"] = "<one@example.com>"
    message.set_content("Set the title to Spring Sale")
    (tmp_path / "mail.eml").write_bytes(message.as_bytes())
    return tmp_path / "mail.eml"


def test_a_mail_is_sent_done_and_told(
    start_up: Callable[..., Up], mail: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    up = start_up()
    follow = subprocess.Popen(
        [sys.executable, "-m", "webordinary", "logs", "--follow", "--json", "--data", str(up.data)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert main(["send", str(mail), "--data", str(up.data)]) == 0
    assert "accepted from scott@example.com to edit@localhost" in capsys.readouterr().out

    assert follow.stdout
    kinds = []
    for line in follow.stdout:
        event = json.loads(line)
        kinds.append(event["kind"])
        if {"SitePublished", "ReplySent"} <= set(kinds):  # told by two processes, each at its own pace
            break
    follow.kill()
    follow.communicate()
    assert [kind for kind in kinds if kind in ("MailReceived", "JobQueued", "ReplySent")] == [
        "MailReceived",
        "JobQueued",
        "ReplySent",
    ]

    assert main(["logs", "--mail", event["mail"][:12], "--data", str(up.data)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.endswith(f"mail {event['mail'][:12]}") for line in lines)
    assert len(lines) > 5
    assert main(["send", str(mail), "--data", str(up.data)]) == 0
    again = capsys.readouterr().out
    assert f"was here already, as {event['mail']}" in again
    assert "accepted" not in again
    assert main(["send", str(mail), "--data", str(up.data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["new"] is False
    assert main(["status", "--data", str(up.data)]) == 0
    out = capsys.readouterr().out
    assert "on the edit site" in out
    assert "dead letters: 0" in out
    assert up.stop() == 0


def test_when_nothing_runs_it_says_what_to_do(mail: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # nobody listens there, and nobody else can
        port = unused.getsockname()[1]
        assert main(["send", str(mail), "--data", str(tmp_path), "--smtp-port", str(port)]) == 3
    assert "start it with `webordinary up`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b"Subject: x\n\nhi", "no From header with an address; write one")],
)
def test_a_mail_that_cannot_be_sent_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, message: str
) -> None:
    (tmp_path / "bad.eml").write_bytes(content)
    assert main(["send", str(tmp_path / "bad.eml"), "--data", str(tmp_path)]) in (1, 2)
    assert message in capsys.readouterr().err


def test_a_missing_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["send", str(tmp_path / "none.eml"), "--data", str(tmp_path)]) == 1
    assert "cannot be read (No such file or directory)" in capsys.readouterr().err


def test_a_mail_to_a_stranger_is_refused_with_the_intakes_own_words(
    start_up: Callable[..., Up], mail: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    up = start_up("--no-sample", "--workers", "0")
    assert main(["send", str(mail), "--data", str(up.data), "--to", "nobody@elsewhere.example"]) == 1
    assert "the mail was refused (5" in capsys.readouterr().err


def test_the_log_tells_every_kind_of_event_and_one_that_cannot_be_told_stops_none_after_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_embedded(Config(data=tmp_path / "data")) as services:
        services.events.emit(Event(EventKind.AGENT_FINISHED, data={"duration_ms": 1e300}))
        services.events.emit(Event(EventKind.CLAIM_TAKEN_OVER, data={"previous": ["worker 1"]}))
        for kind in EventKind:
            services.events.emit(Event(kind))
        services.events.close()
        assert main(["logs", "--limit", "1000", "--data", str(services.config.data)]) == 0
    broken, *told = capsys.readouterr().out.splitlines()
    assert "AgentFinished, which cannot be told in words" in broken
    assert len(told) == 1 + len(EventKind)
    assert all(line.split(None, 1)[1] for line in told)
