"""A mail that waits long is acknowledged, once; its answer follows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.integration.house import House, open_house
from webordinary.compose.background import acknowledgements


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with open_house(tmp_path) as house:
        yield house


def look(house: House, after: timedelta) -> int:
    (loop,) = acknowledgements(house.services)
    return loop._service.run_once(house.services.clock.now() + after)


def kinds(house: House, email_id: str) -> list[str]:
    return [entry.reply.kind for entry in house.replies(email_id)]


def test_a_mail_that_waits_for_90_seconds_is_acknowledged_once_with_its_place(house: House) -> None:
    mails = [house.receive() for _ in range(3)]
    assert look(house, timedelta(seconds=60)) == 0
    look(house, timedelta(seconds=100))
    look(house, timedelta(seconds=200))
    assert [kinds(house, mail) for mail in mails] == [["waiting"]] * 3
    third = house.replies(mails[2])[0].reply.raw
    assert b"Your mail is third in line" in third
    assert b"Auto-Submitted: auto-replied" in third
    assert b"Reply-To: " in third


def test_the_answer_follows_the_acknowledgement_and_there_is_one_of_each(house: House) -> None:
    email_id = house.receive()
    look(house, timedelta(seconds=100))
    house.work()
    look(house, timedelta(seconds=300))
    assert kinds(house, email_id) == ["waiting", "answer"]


def test_a_mail_that_was_answered_or_started_is_not_acknowledged(house: House) -> None:
    email_id = house.receive()
    house.work()
    look(house, timedelta(seconds=100))
    assert kinds(house, email_id) == ["answer"]


def test_acknowledgements_can_be_switched_off(tmp_path: Path) -> None:
    with open_house(tmp_path, acknowledge_seconds=0) as house:
        assert list(acknowledgements(house.services)) == []
    with open_house(tmp_path) as house:
        (loop,) = acknowledgements(house.services)
        assert loop.name == "acknowledgements"
