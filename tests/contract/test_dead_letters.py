"""One suite for every backend of the dead letters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.dead_letters import SqliteDeadLetters
from webordinary.pool.ports import DeadLetters

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "aws"])
def letters(request: pytest.FixtureRequest, database: Database) -> DeadLetters:
    if request.param == "aws":
        emulator = request.getfixturevalue("ministack")
        from tests.aws.pool_tables import PoolTables

        from webordinary.adapters.aws import names

        return PoolTables(emulator.endpoint, (names.MAILS,)).dead_letters()
    return SqliteDeadLetters(database)


def test_the_newest_letter_comes_first_and_each_is_found_by_its_number(letters: DeadLetters) -> None:
    letters.add("a", "job-a", "broke", NOON)
    letters.add("b", None, "broke", NOON + timedelta(seconds=1))
    newest, oldest = letters.all(10)
    assert (newest.email_id, oldest.email_id) == ("b", "a")
    assert letters.get(oldest.letter_id) == oldest
    assert [letter.email_id for letter in letters.all(1)] == ["b"]


def test_the_same_death_is_kept_once(letters: DeadLetters) -> None:
    letters.add("a", "job-a", "broke", NOON)
    letters.add("a", "job-a", "broke", NOON + timedelta(seconds=1))
    letters.add("a", "job-a", "broke otherwise", NOON)
    assert len(letters.all(10)) == 2


def test_a_mail_that_dies_again_after_a_redrive_has_a_new_letter(letters: DeadLetters) -> None:
    letters.add("a", "job-a", "broke", NOON)
    letters.add("a", "job-a-r1", "broke", NOON, redrives=1)
    assert sorted(letter.redrives for letter in letters.all(10)) == [0, 1]


def test_a_redrive_takes_every_letter_of_the_runs_so_far_and_no_later_one(letters: DeadLetters) -> None:
    letters.add("a", "job-a", "broke", NOON)
    letters.add("a", None, "the reply broke too", NOON)
    letters.add("a", "job-a-r1", "broke", NOON, redrives=1)
    letters.add("b", None, "broke", NOON)
    letters.clear("a", 0)
    assert sorted((letter.email_id, letter.redrives) for letter in letters.all(10)) == [("a", 1), ("b", 0)]


def test_a_dropped_letter_is_gone_and_its_number_is_not_used_again(letters: DeadLetters) -> None:
    letters.add("a", None, "broke", NOON)
    [first] = letters.all(10)
    assert letters.remove(first.letter_id)
    assert not letters.remove(first.letter_id)
    letters.add("b", None, "broke", NOON)
    assert letters.all(10)[0].letter_id != first.letter_id
