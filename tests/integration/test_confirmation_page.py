"""The question to the sender of a held mail can be answered on a page of ours."""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.harness.embedded import EmbeddedHarness, open_harness
from tests.integration.test_confirmation import answer, is_done, question_of, stopped
from webordinary.adapters.files.transports import MaildirTransport
from webordinary.entrypoints.dashboard.ports import Dashboard, EventFeed
from webordinary.entrypoints.dashboard.web import create_app
from webordinary.entrypoints.server import dashboard_of
from webordinary.mail.confirm import VALID
from webordinary.mail.outbox import deliver_due
from webordinary.model.console import ConsoleUser, Role

URL = "https://console.example.com"
FORM = {"Origin": URL}


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path, trusted_peers=(), public_url=URL) as made:
        yield made


@contextmanager
def visitor(harness: EmbeddedHarness) -> Iterator[TestClient]:
    """Somebody without a login."""
    dashboard: Dashboard = dashboard_of(harness.services, EventFeed())
    with TestClient(create_app(dashboard), base_url=URL, client=("192.0.2.1", 40000)) as page:
        yield page


def links_in(harness: EmbeddedHarness, email_id: str) -> list[str]:
    [entry] = harness.replies(email_id)
    return re.findall(rf"{URL}(/wrote/confirm-[0-9a-f]+)", quopri.decodestring(entry.reply.raw).decode())


def link_of(harness: EmbeddedHarness, email_id: str) -> str:
    [link] = set(links_in(harness, email_id))
    return link


def test_the_page_shows_the_mail_and_only_its_button_releases_it(harness: EmbeddedHarness) -> None:
    email_id, other = harness.receive("Change the title to <b>Spring</b>"), harness.receive("Change the title to Other")
    link = link_of(harness, email_id)
    with visitor(harness) as page:
        for _ in range(2):
            shown = page.get(link)
            assert "Change the title to &lt;b&gt;Spring" in shown.text
            assert shown.headers["cache-control"] == "no-store"
        assert not is_done(harness, email_id)
        assert page.get("/mails").status_code == 401, "the link opens nothing else"
        assert "is being done" in page.post(link, data={"said": "yes"}, headers=FORM).text
        assert is_done(harness, email_id)
        assert page.post(link, data={"said": "yes"}, headers=FORM).status_code == 404, "a link counts once"
        assert page.get(link).status_code == 404
    assert not is_done(harness, other)
    assert stopped(harness, other) == "held"


def test_the_console_shows_its_users_no_token_that_would_release_a_mail(harness: EmbeddedHarness) -> None:
    """Neither in a question that is not sent yet, nor in an answer that says neither yes nor no."""
    email_id = harness.receive()
    unclear = answer(harness, question_of(harness, email_id), "Perhaps")
    token = link_of(harness, email_id).rpartition("/")[2]
    harness.services.access.users.put(ConsoleUser("vic", Role.VIEWER, harness.services.clock.now()), "")
    secret = harness.services.access.issue_token("vic", "a test", timedelta(hours=1))
    with visitor(harness) as page:
        page.headers["Authorization"] = f"Bearer {secret}"
        addresses = [
            f"/mails/{email_id}/replies/0",
            *(f"/mails/{one}{more}" for one in (email_id, unclear) for more in ("", "/raw")),
        ]
        shown = [page.get(address) for address in addresses]
        assert {one.status_code for one in shown} == {200}
        assert [address for address, one in zip(addresses, shown, strict=True) if token in one.text] == []
        assert "Spring" in page.get(f"/wrote/{token}").text, "the token counts"


def test_a_no_on_the_page_drops_the_mail_for_good(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    address = question_of(harness, email_id)
    with visitor(harness) as page:
        assert page.post(link_of(harness, email_id), data={"said": "no"}, headers=FORM).status_code == 200
    answer(harness, address)
    assert not is_done(harness, email_id)
    assert stopped(harness, email_id) == "dropped"


def test_a_page_of_another_site_cannot_press_the_button(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    link = link_of(harness, email_id)
    with visitor(harness) as page:
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {}):
            assert page.post(link, data={"said": "yes"}, headers=headers).status_code == 403
    assert not is_done(harness, email_id)


@pytest.mark.parametrize("data", [{"said": "maybe"}, {}], ids=str)
def test_an_answer_that_is_neither_yes_nor_no_is_asked_for_again(
    harness: EmbeddedHarness, data: dict[str, str]
) -> None:
    email_id = harness.receive()
    link = link_of(harness, email_id)
    with visitor(harness) as page:
        again = page.post(link, data=data, headers=FORM)
        assert (again.status_code, "Did you write this?" in again.text) == (400, True)
        assert "is being done" in page.post(link, data={"said": "yes"}, headers=FORM).text
    assert is_done(harness, email_id)


def test_an_answer_by_mail_uses_the_link_up(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    link = link_of(harness, email_id)
    answer(harness, question_of(harness, email_id))
    with visitor(harness) as page:
        assert page.get(link).status_code == 404


def test_a_link_is_worth_nothing_after_two_days(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    link = link_of(harness, email_id)
    with harness.services.db.write() as conn:
        conn.execute("UPDATE confirmations SET expires_at = expires_at - ?", ((VALID + timedelta(1)).total_seconds(),))
    with visitor(harness) as page:
        assert page.post(link, data={"said": "yes"}, headers=FORM).status_code == 404
    assert not is_done(harness, email_id)


def test_guesses_are_slowed_down(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    with visitor(harness) as page:
        answers = [page.get(f"/wrote/confirm-{number:032x}").status_code for number in range(8)]
        assert answers[0] == 404
        assert answers[-1] == 429
    assert not is_done(harness, email_id)


def test_a_question_that_was_sent_keeps_no_link(harness: EmbeddedHarness, tmp_path: Path) -> None:
    email_id = harness.receive()
    link, services = link_of(harness, email_id), harness.services
    sent = MaildirTransport(tmp_path / "sent")
    assert deliver_due(services.outbox, sent, services.clock.now(), services.events) == 1
    assert links_in(harness, email_id) == []
    with visitor(harness) as page:
        assert page.get(link).status_code == 200, "the link that left still works"


def test_a_mail_that_cannot_be_shown_whole_has_no_link(harness: EmbeddedHarness) -> None:
    assert links_in(harness, harness.receive("Change the title. " + "More words. " * 200)) == []


def test_there_is_no_link_where_the_page_is_not_encrypted(tmp_path: Path) -> None:
    with open_harness(tmp_path, trusted_peers=(), public_url="http://console.example.com") as harness:
        [entry] = harness.replies(harness.receive())
        assert b"wrote/" not in entry.reply.raw
