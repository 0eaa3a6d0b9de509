"""`undo`: which change of a conversation is meant, and what is left of it after rollbacks; on real git."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import pytest

from tests.harness.site import SiteHarness, open_site_harness
from webordinary.jobs.site_files import Stage
from webordinary.mail.replies.languages import own_catalogues
from webordinary.model.jobs import Job, JobOutcome, JobResult
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Sender
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


def test_an_undo_of_everything_takes_the_only_change_back_and_of_several_asks_which(site: SiteHarness) -> None:
    one, two = two_changes(site)
    asked = site.mail("Bitte alles rückgängig machen", answers=site.answer_to(one))
    for change in (one, two):
        assert f"undo {(result_of(change).commit or '')[:8]}" in (result_of(asked).question or "")
    site.mail("Doch lieber nicht, bitte rückgängig machen!", answers=site.answer_to(two))
    assert changes(site) == {"One"}
    site.mail("annulez tout", answers=site.answer_to(two))
    assert changes(site) == set()


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


TITLE_ONE = "Changed the title of the homepage to “One”."


def status_of(site: SiteHarness, people: str = "status") -> str:
    email_id = site.harness.receive(people)
    return text_of(site.harness.replies(email_id)[-1].reply.raw)


def text_of(raw: bytes) -> str:
    body = message_from_bytes(raw, policy=default).get_body(("plain",))
    assert body is not None
    return " ".join(str(body.get_content()).split())


def told_of_rollback(site: SiteHarness, *jobs: Job) -> list[str]:
    """What the owner was written."""
    replies = (entry.reply for job in jobs for entry in site.harness.replies(job.email_id))
    return [text_of(one.raw) for one in replies if one.kind.startswith("rolled-back-")]


def test_after_a_rollback_status_names_what_publish_all_would_publish_and_the_owner_is_told(site: SiteHarness) -> None:
    one, two = two_changes(site)
    undone = site.mail("undo", answers=site.answer_to(two))
    third = site.mail("change the title of the about page to Three", answers=site.answer_to(undone))
    shown_with_two = result_of(two).commit or ""
    done = roll_back(site.services, "amelia", Stage.EDIT, shown_with_two[:12])
    assert [line.words for line in done.gone] == ["Changed the title of the about page to “Three”."]
    assert [line.words for line in done.back] == ["Changed the title of the about page to “Two”."]
    assert [line.words for line in done.waiting] == [TITLE_ONE, "Changed the title of the about page to “Two”."]
    [told] = told_of_rollback(site, one, two, undone, third)
    assert "put your edit site back to an earlier state" in told
    assert "Not shown there any more: - Changed the title of the about page to “Three”. (asked by you)" in told
    assert "Shown there again: - Changed the title of the about page to “Two”. (asked by you)" in told
    waiting = status_of(site).partition("not published by you yet:")[2]
    assert TITLE_ONE in waiting
    assert "“Two”" in waiting
    assert "“Three”" not in waiting


def test_publish_all_publishes_nothing_that_was_undone_and_is_back_by_a_rollback_before_a_second_word(
    site: SiteHarness,
) -> None:
    _, two = two_changes(site)
    site.mail("undo", answers=site.answer_to(two))
    roll_back(site.services, "amelia", Stage.EDIT, (result_of(two).commit or "")[:12])
    asked = site.mail("publish all", answers=site.answer_to(two))
    assert "Changed the title of the about page to “Two”. (asked by you)" in (result_of(asked).question or "")
    assert site.services.releases.current("amelia", Stage.PUBLIC) is None
    unsaid = [one.language for one in own_catalogues() if "These changes" in one.say(result_of(asked).summary)]
    assert unsaid == []
    public = site.mail("publish all", answers=site.answer_to(asked))
    assert [line.words for line in result_of(public).published] == [
        TITLE_ONE, "Changed the title of the about page to “Two”.",
    ]  # fmt: skip
    assert "not published" not in status_of(site)


def test_after_a_rollback_of_the_public_site_its_people_know_what_is_not_public(site: SiteHarness) -> None:
    one, two = two_changes(site)
    first = site.mail("publish", answers=site.answer_to(two))
    three = site.mail("change the title of the about page to Three", answers=site.answer_to(first))
    second = site.mail("publish", answers=site.answer_to(three))
    done = roll_back(site.services, "amelia", Stage.PUBLIC, "")
    assert [line.words for line in done.gone] == ["Changed the title of the about page to “Three”."]
    assert done.waiting == done.gone
    [told] = told_of_rollback(site, one, two, first, three, second)
    assert "put your public site back" in told
    assert "“Three”" in status_of(site).partition("not published by you yet:")[2]
    again = site.mail("publish all")
    assert [line.words for line in result_of(again).published] == [line.words for line in done.gone]


def test_a_rollback_of_the_public_site_names_also_what_the_edit_site_had_lost_before(site: SiteHarness) -> None:
    _, two = two_changes(site)
    first = site.mail("publish", answers=site.answer_to(two))
    three = site.mail("change the title of the about page to Three", answers=site.answer_to(first))
    site.mail("publish", answers=site.answer_to(three))
    roll_back(site.services, "amelia", Stage.EDIT, "")
    done = roll_back(site.services, "amelia", Stage.PUBLIC, "")
    assert [line.words for line in done.gone] == ["Changed the title of the about page to “Three”."]


def test_a_rollback_is_told_to_everybody_of_the_site_in_a_mail_of_its_own(site: SiteHarness) -> None:
    now = site.services.clock.now()
    site.services.directory.add_sender(Sender("bob@example.com", ProjectUser("amelia", "bob")), now)
    two_changes(site)
    roll_back(site.services, "amelia", Stage.EDIT, "")
    told = [one.reply for one in site.services.outbox.due(now + timedelta(hours=1), 100)]
    told = [one for one in told if one.kind.startswith("rolled-back-")]
    assert {one.recipient for one in told} >= {"bob@example.com", "scott@example.com"}
    for one in told:
        sent = message_from_bytes(one.raw, policy=default)
        assert sent["Subject"] == "An earlier state of your site is shown again"
        assert not sent["In-Reply-To"]
        assert "+amelia@" in sent["Reply-To"] or one.recipient == "scott@example.com"
