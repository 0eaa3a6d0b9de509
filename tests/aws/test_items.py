"""What is written down comes back as it was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from webordinary.adapters.aws.dynamo import at, epoch, from_item, moment, to_item

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_an_item_comes_back_as_the_record_it_was() -> None:
    record = {
        "text": "Grüße",
        "empty": "",
        "count": 3,
        "cost": 0.1 + 0.2,
        "tiny": 1e-07,
        "yes": True,
        "no": False,
        "list": ["a", 1, {"b": None}],
        "names": {"a", "b"},
        "raw": b"\x00\xff",
    }
    assert from_item(to_item(record)) == record


def test_what_is_none_is_not_written() -> None:
    assert to_item({"a": None, "b": 1}) == {"b": {"N": "1"}}


def test_a_whole_number_is_an_int_and_true_is_no_number() -> None:
    back = from_item(to_item({"a": 2.0, "b": True}))
    assert (type(back["a"]), back["b"]) == (int, True)


def test_what_no_item_can_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        to_item({"a": object()})


def test_points_in_time_sort_as_text_and_keep_their_microseconds() -> None:
    elsewhere = NOON.astimezone(timezone(timedelta(hours=2)))
    times = [NOON, NOON + timedelta(microseconds=1), NOON + timedelta(seconds=1), NOON + timedelta(days=300)]
    assert [moment(time) for time in times] == sorted(moment(time) for time in times)
    assert [at(moment(time)) for time in times] == times
    assert (moment(elsewhere), epoch(NOON, 1.5)) == (moment(NOON), int(NOON.timestamp()) + 1)
