"""`undo`: which change of a conversation is meant, and what is left of it after rollbacks; on real git."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.site import SiteHarness, open_site_harness
from webordinary.jobs.site_files import Stage
from webordinary.model.jobs import Job, JobOutcome, JobResult
from webordinary.operations.releases import roll_back

pytestmark = pytest.mark.needs("git")
ROOT = "<root@example.com>"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[SiteHarness]:
    with open_site_harness(tmp_path / "data") as harness:
        yield harness


def two_changes(site: SiteHarness) -> tuple[Job, Job]:
    """Of one conversation: the homepage, then the about page."""
    one = site.mail("change the homepage title to One", ROOT)
    two = site.mail("change the title of the about page to Two", answers=site.answer_to(one))
    assert changes(site) == {"One", "Two"}
    return one, two


def changes(site: SiteHarness) -> set[str]:
    """What is to be seen of them."""
    pages = {"One": "index.html", "Two": "about.html"}
    return {word for word, page in pages.items() if f">{word}<" in site.page(name=page)}


def result_of(job: Job) -> JobResult:
    assert job.result
    return job.result


def test_without_a_hint_the_last_change_goes(site: SiteHarness) -> None:
    _, two = two_changes(site)
    site.mail("undo", answers="<lost@example.com>")
    assert changes(site) == {"One", "Two"}, "that was another conversation"
    undone = site.mail("Undo.", answers=site.answer_to(two))
    assert changes(site) == {"One"}
    site.mail("undo", answers=site.answer_to(undone))
    assert changes(site) == set()


@pytest.mark.parametrize("way", ["our answer", "their mail"])
def test_an_answer_about_a_change_takes_back_that_change(site: SiteHarness, way: str) -> None:
    one, _ = two_changes(site)
    undone = site.mail("undo", answers=site.answer_to(one) if way == "our answer" else ROOT)
    assert result_of(undone).commit
    assert changes(site) == {"Two"}
    again = site.mail("undo", answers=site.answer_to(one))
    assert changes(site) == {"Two"}
    assert "not on the site any more" in result_of(again).summary
    assert "change the title of the about page to Two" in (result_of(again).question or "")


@pytest.mark.parametrize("named", ["index.html", "/", "“homepage title”", "{commit}"])
def test_a_change_can_be_named(site: SiteHarness, named: str) -> None:
    one, two = two_changes(site)
    named = named.replace("{commit}", (result_of(one).commit or "")[:8])
    undone = site.mail(f"undo {named}", answers=site.answer_to(two))
    assert undone.outcome is JobOutcome.SUCCEEDED
    assert changes(site) == {"Two"}


@pytest.mark.parametrize("named", ["/nowhere", "“title”", "deadbeef"])
def test_what_is_not_clear_is_asked_back_with_what_can_be_undone(site: SiteHarness, named: str) -> None:
    one, two = two_changes(site)
    asked = site.mail(f"undo {named}", answers=site.answer_to(two))
    assert changes(site) == {"One", "Two"}
    for job in (one, two):
        assert f"undo {(result_of(job).commit or '')[:8]}" in (result_of(asked).question or "").splitlines()
    site.mail(f"undo {(result_of(one).commit or '')[:8]}", answers=site.answer_to(asked))
    assert changes(site) == {"Two"}


def test_what_a_rollback_brought_back_is_undone_again(site: SiteHarness) -> None:
    _, two = two_changes(site)
    shown = site.shown()
    undone = site.mail("undo", answers=site.answer_to(two))
    roll_back(site.services, "amelia", Stage.EDIT, shown)
    assert changes(site) == {"One", "Two"}
    for left in ({"One"}, set[str]()):
        undone = site.mail("undo", answers=site.answer_to(undone))
        assert changes(site) == left
    assert "nothing to undo" in result_of(site.mail("undo", answers=site.answer_to(undone))).summary


def test_what_a_rollback_took_away_is_not_undone(site: SiteHarness) -> None:
    one = site.mail("change the homepage title to One", ROOT)
    site.mail("change the title of the about page to Two", answers=site.answer_to(one))
    roll_back(site.services, "amelia", Stage.EDIT, "")
    assert changes(site) == {"One"}
    site.mail("undo", answers=site.answer_to(one))
    assert changes(site) == set()


@pytest.mark.parametrize("wish", ["change the homepage title to One", "undo"])
@pytest.mark.parametrize("given_up", [False, True], ids=["tried again", "given up"])
def test_what_a_rollback_took_away_before_its_job_ended_is_not_told_as_done(
    site: SiteHarness, wish: str, given_up: bool
) -> None:
    earlier = site.mail("change the title of the about page to Two", ROOT)
    started = site.begin(wish, answers=site.answer_to(earlier))
    site.work().perform(started, site.token(started))
    roll_back(site.services, "amelia", Stage.EDIT, "")
    again = site.work()
    settled = (again.find_done if given_up else again.perform)(started, site.token(started))
    assert settled
    assert "not on it" in settled.result.summary
    assert changes(site) == {"Two"}
