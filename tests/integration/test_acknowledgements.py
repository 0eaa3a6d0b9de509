"""A mail that waits long is acknowledged, once; its answer follows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.harness.embedded import EmbeddedHarness, open_harness
from webordinary.compose.background import acknowledgements


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path) as harness:
        yield harness


def look(harness: EmbeddedHarness, after: timedelta) -> int:
    (loop,) = acknowledgements(harness.services)
    return loop._service.run_once(harness.services.clock.now() + after)


def kinds(harness: EmbeddedHarness, email_id: str) -> list[str]:
    return [entry.reply.kind for entry in harness.replies(email_id)]


def test_a_mail_that_waits_for_90_seconds_is_acknowledged_once_with_its_place(harness: EmbeddedHarness) -> None:
    mails = [harness.receive() for _ in range(3)]
    assert look(harness, timedelta(seconds=60)) == 0
    look(harness, timedelta(seconds=100))
    look(harness, timedelta(seconds=200))
    assert [kinds(harness, mail) for mail in mails] == [["waiting"]] * 3
    third = harness.replies(mails[2])[0].reply.raw
    assert b"Your mail is third in line" in third
    assert b"Auto-Submitted: auto-replied" in third
    assert b"Reply-To: " in third


def test_the_answer_follows_the_acknowledgement_and_there_is_one_of_each(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    look(harness, timedelta(seconds=100))
    harness.work()
    look(harness, timedelta(seconds=300))
    assert kinds(harness, email_id) == ["waiting", "answer"]


def test_a_mail_that_was_answered_or_started_is_not_acknowledged(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    harness.work()
    look(harness, timedelta(seconds=100))
    assert kinds(harness, email_id) == ["answer"]


def test_acknowledgements_can_be_switched_off(tmp_path: Path) -> None:
    with open_harness(tmp_path, acknowledge_seconds=0) as harness:
        assert list(acknowledgements(harness.services)) == []
    with open_harness(tmp_path) as harness:
        (loop,) = acknowledgements(harness.services)
        assert loop.name == "acknowledgements"
