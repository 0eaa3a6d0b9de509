"""How many synced write transactions one mail costs, all processes together."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.waiting import Customer, wait_for_reply
from tests.conftest import Up

MOST_COMMITS = 24
TRIES = 8
"""On a busy machine a mail takes long enough for a renewal or a flush beside it; the least count is its own."""


def commits(up: Up) -> int:
    """SQLite counts in the header of the WAL index how often the file was changed, by whichever process."""
    with (up.data / "webordinary.db-shm").open("rb") as index:
        return int.from_bytes(index.read(12)[8:], sys.byteorder)


def cost(up: Up, earlier_mails: int) -> int:
    """The transactions of one mail, after so many others; what runs beside it, such as a renewal, may add to them."""
    for _ in range(earlier_mails):
        wait_for_reply(up, Customer().write(up, "Change the homepage title to Summer Glazes"))
    before = commits(up)
    wait_for_reply(up, Customer().write(up, "Change the homepage title to Autumn Glazes"))
    counted = commits(up) - before
    assert up.stop() == 0
    return counted


@pytest.mark.parametrize("earlier_mails", [0, 1], ids=["cold", "warm"])
def test_a_mail_costs_at_most_so_many_synced_transactions(
    start_up: Callable[..., Up], tmp_path: Path, earlier_mails: int
) -> None:
    counts: list[int] = []
    while len(counts) < TRIES and not any(count <= MOST_COMMITS for count in counts):
        counts.append(cost(start_up(data=tmp_path / str(len(counts))), earlier_mails))
    assert min(counts) <= MOST_COMMITS, counts
