"""`webordinary replies`: answers that did not arrive, on a data folder where nothing runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.harness.embedded import EmbeddedHarness, open_harness
from webordinary.adapters.files.transports import MaildirTransport
from webordinary.entrypoints.cli import main
from webordinary.mail.outbox import RETRIES, deliver_due
from webordinary.model.errors import Permanent, Transient
from webordinary.model.mail import Reply


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path / "data") as harness:
        yield harness


class Refusing:
    def __init__(self, problem: Exception) -> None:
        self._problem = problem

    def send(self, reply: Reply) -> str | None:
        raise self._problem


def deliver(harness: EmbeddedHarness, transport: Refusing | MaildirTransport) -> int:
    services = harness.services
    return deliver_due(services.outbox, transport, services.clock.now(), services.events)


def answered(harness: EmbeddedHarness, problem: Exception) -> str:
    """A mail whose answer is not delivered."""
    email_id = harness.receive()
    harness.work()
    assert deliver(harness, Refusing(problem)) == 0
    return email_id


def replies(harness: EmbeddedHarness, *args: str) -> int:
    return main(["replies", *args, "--data", str(harness.services.config.data)])


def test_a_reply_that_was_given_up_is_listed_and_sent_again(
    harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    email_id = answered(harness, Permanent("550 no such user"))
    assert replies(harness, "list") == 0
    listed = capsys.readouterr().out
    for expected in (email_id[:12], "scott@example.com", "given up", "550 no such user"):
        assert expected in listed
    assert deliver(harness, MaildirTransport(tmp_path / "outbox")) == 0, "it is not due by itself"
    assert replies(harness, "send-again", email_id[:8], email_id) == 0
    told = f"the reply to scott@example.com for mail {email_id[:12]} is sent again as soon as `webordinary up` runs\n"
    assert capsys.readouterr().out == told, "named twice, it is one reply"
    assert deliver(harness, MaildirTransport(tmp_path / "outbox")) == 1
    assert replies(harness, "list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []
    assert replies(harness, "send-again", "--all") == 0
    assert capsys.readouterr().out == "no reply waits to be sent again\n"
    assert deliver(harness, MaildirTransport(tmp_path / "outbox")) == 0, "it has left once"


def test_a_reply_that_waits_for_its_next_try_need_not_wait(
    harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    before = harness.services.clock.now()
    email_id = answered(harness, Transient("the mail server is asleep"))
    assert replies(harness, "list", "--json") == 0
    [waiting] = json.loads(capsys.readouterr().out)
    assert (waiting["email_id"], waiting["attempts"]) == (email_id, 1)
    assert datetime.fromisoformat(waiting["next_try_at"]) >= before + timedelta(seconds=RETRIES.base)
    assert replies(harness, "send-again", "--all") == 0
    [entry] = harness.services.outbox.due(harness.services.clock.now() + timedelta(seconds=0.1), 10)
    assert (entry.reply.email_id, entry.attempts) == (email_id, 0)


def test_what_is_not_there_is_told(harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]) -> None:
    assert replies(harness, "send-again") == 2
    assert replies(harness, "send-again", "--all", "abc123") == 2
    assert replies(harness, "send-again", "abc123") == 1
    assert "no undelivered reply is for a mail that begins with 'abc123'" in capsys.readouterr().err
