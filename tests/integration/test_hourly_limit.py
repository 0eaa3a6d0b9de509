"""A person who sends very many mails within an hour is told once, and the surplus costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.integration.house import House, open_house
from webordinary.compose import background
from webordinary.model.names import ProjectUser, job_id_of
from webordinary.model.projects import Sender

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@dataclass
class Clock:
    time: datetime = NOON

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def house(tmp_path: Path, clock: Clock) -> Iterator[House]:
    with open_house(tmp_path / "data", hourly_mails=2) as house:
        house.services.clock = clock  # type: ignore[assignment]
        yield House(house.services, background.engine(house.services, lambda: None))


def told(house: House) -> list[str]:
    with house.services.db.read() as conn:
        return [row["recipient"] for row in conn.execute("SELECT recipient FROM outbox WHERE kind = 'limited'")]


def refused(house: House) -> set[str]:
    with house.services.db.read() as conn:
        return {row["email_id"] for row in conn.execute("SELECT email_id FROM raw_mails WHERE stopped = 'refused'")}


def jobs(house: House) -> int:
    with house.services.db.read() as conn:
        count: int = conn.execute("SELECT count(*) FROM jobs").fetchone()[0]
        return count


def test_mails_beyond_the_hourly_limit_are_not_done_and_their_sender_is_told_once(house: House) -> None:
    for _ in range(2):
        house.receive()
    assert told(house) == []
    surplus = [house.receive() for _ in range(3)]
    assert jobs(house) == 2
    assert told(house) == ["scott@example.com"]
    assert refused(house) == set(surplus)
    assert not any(house.replies(email_id) for email_id in surplus)


def test_the_next_hour_begins_anew(house: House, clock: Clock) -> None:
    for _ in range(4):
        house.receive()
    clock.time += timedelta(hours=1)
    for _ in range(3):
        house.receive()
    assert jobs(house) == 4
    assert len(told(house)) == 2


def test_status_and_stop_are_answered_beyond_the_limit(house: House) -> None:
    for _ in range(3):
        house.receive()
    for command in ("status", "stop"):
        email_id = house.receive(command)
        assert len(house.replies(email_id)) == 1


def test_the_notice_says_what_to_do(house: House) -> None:
    for _ in range(3):
        house.receive()
    with house.services.db.read() as conn:
        [email_id] = {row["email_id"] for row in conn.execute("SELECT email_id FROM outbox WHERE kind = 'limited'")}
    [raw] = [one.reply.raw.decode() for one in house.services.outbox.of(email_id) if one.reply.kind == "limited"]
    assert "next full hour" in " ".join(raw.replace("=\r\n", "").split())


@pytest.mark.parametrize("setting", ["hourly_project_mails", "hourly_domain_mails"])
def test_a_site_and_a_domain_have_their_limits_for_all_persons_together(tmp_path: Path, setting: str) -> None:
    with open_house(tmp_path, **{setting: 2}) as house:
        now = house.services.clock.now()
        house.services.directory.add_sender(Sender("ann@example.com", ProjectUser("amelia", "ann")), now)
        mails = [house.receive(), house.receive(sender="ann@example.com"), house.receive(sender="ann@example.com")]
        jobs = [house.services.jobs.get(job_id_of(email_id)) for email_id in mails]
        assert [job is not None for job in jobs] == [True, True, False]
        assert house.services.jobs.get(job_id_of(mails[0])) is not None
