from __future__ import annotations

import pytest

from tests.unit.dashboard.tables import NOON
from webordinary.entrypoints.dashboard.text import details_of, event_text, tone_of
from webordinary.model.events import EventKind
from webordinary.model.snapshot import TimelineEntry


def entry(kind: str, **data: object) -> TimelineEntry:
    return TimelineEntry(1, NOON, kind, "e" * 64, "amelia#scott", "worker 2", data)


def test_an_event_is_told_in_a_sentence() -> None:
    assert event_text(entry("ClaimTaken")) == "amelia#scott claimed by worker 2"
    assert tone_of(entry("SitePublished")) == "good"
    assert tone_of(entry("DeadLettered")) == "bad"


def test_which_of_the_two_sites_is_meant_is_said() -> None:
    public = entry("SitePublished", stage="public", release="abc")
    assert (event_text(public), details_of(public)) == ("Shown on the public site", "release abc")
    assert event_text(entry("SitePublished", stage="edit")) == "Shown on the edit site"
    assert event_text(entry("SiteRolledBack", stage="public")) == "The public site was rolled back by the operator"


def test_an_event_that_nobody_worded_yet_is_spelled_out() -> None:
    assert event_text(entry("KilnOpened")) == "Kiln opened"


@pytest.mark.parametrize("kind", list(EventKind))
def test_every_kind_of_event_is_told_with_and_without_its_values(kind: EventKind) -> None:
    bare = event_text(TimelineEntry(1, NOON, kind, None, None, None, {}))
    full = event_text(entry(kind, project="amelia", by="vera", stage="public", previous="worker 1", to="worker 3"))
    for words in (bare, full):
        assert words.strip()
        assert not {"{", "}"} & set(words)


def test_who_changed_which_site_is_told() -> None:
    changed = entry("SiteChanged", project="amelia", by="vera")
    assert event_text(changed) == "Settings or people of amelia were changed by vera"


def test_only_the_values_that_say_something_are_told() -> None:
    told = entry(
        "ChangeCommitted",
        commit="a" * 40,
        files=["index.html", "vase.png"],
        resumed=False,
        already_made=True,
        cost_usd=0.0,
        duration_ms=36.3,
    )
    assert details_of(told) == "commit aaaaaaaaaa, files index.html, vase.png, already made, took 36 ms"
    assert details_of(entry("MailReceived", size=51_275)) == "51 kB"


def test_a_long_value_is_cut() -> None:
    assert len(details_of(entry("MailRefused", reason="x" * 5000))) == 160
