"""The operator's actions in the console, on a real data folder: each does what the command of the same name does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from webordinary.compose.container import Container
from webordinary.compose.embedded import open_embedded
from webordinary.config import Config
from webordinary.entrypoints.dashboard.ports import Dashboard, EventFeed
from webordinary.entrypoints.dashboard.web import create_app
from webordinary.jobs.site_files import Stage
from webordinary.mail.auth import AwaitsConfirmation
from webordinary.mail.parsing.message import parse
from webordinary.model.mail import Delivery, TransportKind
from webordinary.operations import onboarding
from webordinary.operations.console import Console

PAGE = "http://127.0.0.1:8080"
FORM = {"Origin": PAGE}
NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
MAIL = b"From: scott@example.com\r\nSubject: Hello\r\nMessage-ID: <1@example.com>\r\n\r\nHello\r\n"
DELIVERY = Delivery(TransportKind.SMTP, "127.0.0.1", "scott@example.com", ("edit@localhost",), NOON)


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    with open_embedded(Config(data=tmp_path / "data")) as container:
        onboarding.ensure_sample(container)
        yield container


@pytest.fixture
def page(container: Container) -> Iterator[TestClient]:
    dashboard = Dashboard(
        overview=container.overview,
        feed=EventFeed(),
        send_mail=lambda *_: "",
        mail_of=lambda _: None,
        diff_of=lambda *_: "",
        current_release=container.current_site,
        console=Console(container),
        access=container.access,
    )
    with TestClient(create_app(dashboard), base_url=PAGE, follow_redirects=False) as client:
        yield client


def give_up(container: Container) -> tuple[int, str]:
    """A mail that was accepted and then given up."""
    [accepted] = container.accept_mail(MAIL, DELIVERY)
    container.dead_letters.add(accepted.email_id, None, "the kiln was <cold>", NOON)
    [letter] = container.dead_letters.all(10)
    return letter.letter_id, accepted.email_id


def test_a_mail_that_was_given_up_is_tried_again_by_one_click(container: Container, page: TestClient) -> None:
    letter_id, email_id = give_up(container)
    assert "the kiln was &lt;cold&gt;" in page.get("/attention").text
    done = page.post(f"/dead-letters/{letter_id}/redrives", headers=FORM)
    assert (done.status_code, done.headers["location"]) == (303, "/attention")
    assert container.dead_letters.all(10) == []
    assert container.workflows.start(f"{email_id}-r1", {"emailId": email_id, "redrive": 1}) is False
    again = page.post(f"/dead-letters/{letter_id}/redrives", headers=FORM)
    assert again.status_code == 409
    assert "gone" in again.text


def test_a_dead_letter_is_dropped_by_one_click_and_its_mail_stays(container: Container, page: TestClient) -> None:
    letter_id, email_id = give_up(container)
    assert page.post(f"/dead-letters/{letter_id}/drops", headers=FORM).status_code == 303
    assert "Nothing waits for you" in page.get("/attention").text
    assert container.raw_mails.load(email_id).raw == MAIL


def test_a_site_is_paused_and_resumed_by_one_click(container: Container, page: TestClient) -> None:
    assert "amelia" in page.get("/sites").text
    assert page.post("/sites/amelia/pauses", headers=FORM).status_code == 303
    assert "Its mails wait" in page.get("/sites/amelia").text
    assert page.post("/sites/amelia/resumes", headers=FORM).status_code == 303
    project = container.directory.project("amelia")
    assert project
    assert not project.paused


def test_the_page_of_a_site_shows_its_people_and_releases(container: Container, page: TestClient) -> None:
    text = page.get("/sites/amelia").text
    assert "scott@example.com" in text
    assert "shown now" in text
    assert page.get("/sites/nobody").status_code == 404


def test_what_cannot_be_shown_again_is_said_in_words(container: Container, page: TestClient) -> None:
    shown = container.current_site("amelia", Stage.EDIT)
    for path in ("edit/releases/no-such-release", "staging/releases/x"):
        answer = page.post(f"/sites/amelia/{path}/rollbacks", headers=FORM)
        assert answer.status_code in (404, 409)
    assert container.current_site("amelia", Stage.EDIT) == shown


def test_no_action_is_taken_for_another_sites_form(container: Container, page: TestClient) -> None:
    letter_id, _ = give_up(container)
    for path in (f"/dead-letters/{letter_id}/drops", "/sites/amelia/pauses"):
        assert page.post(path, headers={"Origin": "http://evil.example"}).status_code == 403
    assert len(container.dead_letters.all(10)) == 1


def hold(container: Container) -> str:
    """A mail of a known sender that proves nothing, as the workflow holds it."""
    [accepted] = container.accept_mail(MAIL, DELIVERY)
    container.raw_mails.mark_placed(accepted.email_id, AwaitsConfirmation("no proof"))
    return accepted.email_id


def test_a_held_mail_is_released_by_one_click_in_the_operators_name(container: Container, page: TestClient) -> None:
    email_id = hold(container)
    assert "They wrote it" in page.get("/attention").text
    assert page.post(f"/mails/{email_id}/releases", headers=FORM).status_code == 303
    assert container.raw_mails.is_released(email_id)
    assert page.post(f"/mails/{'0' * 64}/releases", headers=FORM).status_code == 409


def test_a_held_mail_is_dropped_by_one_click(container: Container, page: TestClient) -> None:
    email_id = hold(container)
    assert page.post(f"/mails/{email_id}/drops", headers=FORM).status_code == 303
    assert not container.raw_mails.is_released(email_id)
    assert page.post(f"/mails/{email_id}/drops", headers=FORM).status_code == 409


def test_mails_are_found_by_sender_site_and_state(container: Container, page: TestClient) -> None:
    email_id = hold(container)
    for query, found in (("sender=SCOTT", True), ("state=held&project=amelia", True), ("state=answered", False)):
        assert (f"/mails/{email_id}" in page.get(f"/mails?{query}").text) is found, query


def test_the_operator_answers_a_customer_in_the_conversation_from_the_page(
    container: Container, page: TestClient
) -> None:
    [accepted] = container.accept_mail(MAIL, DELIVERY)
    unread = page.post(f"/mails/{accepted.email_id}/answers", data={"text": "Hello Scott"}, headers=FORM)
    assert (unread.status_code, "cannot be answered" in unread.text) == (409, True)
    container.mailroom.parsed_mails.save(accepted.email_id, parse(MAIL), NOON)
    done = page.post(f"/mails/{accepted.email_id}/answers", data={"text": "Hello Scott"}, headers=FORM)
    assert done.status_code == 303
    [entry] = container.outbox.of(accepted.email_id)
    assert b"Hello Scott" in entry.reply.raw
