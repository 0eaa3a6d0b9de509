from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

from webordinary.entrypoints.cli.output import line_for
from webordinary.model.events import Event, EventKind
from webordinary.model.names import ProjectUser

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def test_an_event_is_one_line_with_the_workers_name_and_the_start_of_the_mails_id() -> None:
    key = ProjectUser("amelia", "scott")
    event = Event(EventKind.CLAIM_TAKEN, email_id="ab" * 32, key=key, worker="w-9", data={"fence": 7})
    line = line_for(1, NOON, event, {"w-9": "worker 2"})
    assert "amelia#scott claimed by worker 2 (fence 7)" in line
    assert line.endswith("  mail abababababab")
    assert "\n" not in line


def test_an_event_that_nobody_has_words_for_is_spelled_out() -> None:
    assert "Kiln heated" in line_for(1, NOON, Event(cast("EventKind", "KilnHeated")), {})


def test_a_subject_with_line_breaks_stays_on_its_line() -> None:
    assert "\n" not in line_for(1, NOON, Event(EventKind.MAIL_PARSED, data={"subject": "a\nb\x1b[31m"}), {})
