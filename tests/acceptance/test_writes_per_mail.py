"""How many synced write transactions one mail costs, all processes together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.world import Customer, wait_for_reply
from tests.conftest import Up

MOST_COMMITS = 24


@pytest.fixture
def up(start_up: Callable[..., Up]) -> Iterator[Up]:
    running = start_up()
    yield running
    assert running.stop() == 0


def commits(up: Up) -> int:
    """SQLite counts in the header of the WAL index how often the file was changed, by whichever process."""
    with (up.data / "webordinary.db-shm").open("rb") as index:
        return int.from_bytes(index.read(12)[8:], sys.byteorder)


@pytest.mark.parametrize("earlier_mails", [0, 1], ids=["cold", "warm"])
def test_a_mail_costs_at_most_so_many_synced_transactions(up: Up, earlier_mails: int) -> None:
    for _ in range(earlier_mails):
        wait_for_reply(up, Customer().write(up, "Change the homepage title to Summer Glazes"))
    before = commits(up)
    wait_for_reply(up, Customer().write(up, "Change the homepage title to Autumn Glazes"))
    assert commits(up) - before <= MOST_COMMITS
