"""Write as a customer: what the form sends."""

from __future__ import annotations

import email
import email.policy
from email.message import EmailMessage

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from tests.unit.dashboard.tables import MAILBOX, PIXEL, SCOTT, DashboardTables
from webordinary.entrypoints.dashboard.web import create_app
from webordinary.entrypoints.dashboard.write import MAX_UPLOAD_BYTES
from webordinary.model.errors import Transient

Files = list[tuple[str, tuple[str, bytes, str]]] | None
OWN = {"Origin": "http://127.0.0.1:8080"}


def send(page: TestClient, files: Files = None, **fields: str) -> Response:
    return page.post("/mails", data={"from": SCOTT, **fields}, files=files, headers=OWN)


def only_mail(world: DashboardTables) -> EmailMessage:
    [(raw, mail_from, _)] = world.sent
    assert mail_from == SCOTT
    return email.message_from_bytes(raw, policy=email.policy.default)


def test_a_letter_is_sent_as_a_mail_and_its_page_opens(world: DashboardTables, page: TestClient) -> None:
    answer = send(page, subject="Öffnungszeiten", text="Please.\r\nThank you.")
    assert answer.status_code == 303
    assert page.get(answer.headers["location"]).status_code == 200
    mail = only_mail(world)
    assert (mail["From"], mail["To"], mail["Subject"]) == (SCOTT, MAILBOX, "Öffnungszeiten")
    assert mail["Message-ID"]
    assert mail.get_content().splitlines() == ["Please.", "Thank you."]


def test_files_go_with_it(world: DashboardTables, page: TestClient) -> None:
    files = [("files", ("va\nse.png", PIXEL, "image/png")), ("files", ("b", b"text", "nonsense"))]
    send(page, files, subject="Photo", text="Add it.")
    photo, other = only_mail(world).iter_attachments()
    assert (photo.get_content_type(), photo.get_content()) == ("image/png", PIXEL)
    assert other.get_content_type() == "application/octet-stream"


def test_an_example_fills_the_form_and_attaches_its_photo(world: DashboardTables, page: TestClient) -> None:
    form = page.get("/write?example=2").text
    assert "vase.png" in form
    assert 'name="example" value="2"' in form
    send(page, subject="Title and photo", text="Please.", example="2")
    [photo] = only_mail(world).iter_attachments()
    assert (photo.get_filename(), photo.get_content()) == ("vase.png", PIXEL)


@pytest.mark.parametrize("number", ["0", "4", "-1", "x", "9" * 30])
def test_an_example_that_does_not_exist_is_an_empty_form(page: TestClient, number: str) -> None:
    answer = page.get("/write", params={"example": number})
    assert answer.status_code == 200
    assert "goes with it" not in answer.text


def test_a_reply_goes_on_in_the_thread(world: DashboardTables, page: TestClient) -> None:
    email_id = world.published("New title")
    form = page.get(f"/write?reply_to={email_id}&text=undo").text
    assert 'value="Re: New title"' in form
    assert ">undo</textarea>" in form
    send(page, text="undo", reply_to=email_id)
    mail = only_mail(world)
    answer = f"<reply-to-{email_id[:8]}@localhost>"
    assert (mail["Subject"], mail["In-Reply-To"]) == ("Re: New title", answer)
    assert mail["References"].endswith(answer)
    assert len(mail["References"].split()) == 2


def test_a_reply_before_the_answer_names_the_mail_itself(world: DashboardTables, page: TestClient) -> None:
    email_id = world.mail("New title")
    send(page, text="stop", reply_to=email_id)
    assert only_mail(world)["In-Reply-To"].endswith("@example.com>")


def test_who_has_several_sites_writes_for_the_one_that_is_chosen(world: DashboardTables, page: TestClient) -> None:
    world.put("projects", project_id="bakery", settings="{}", created_at=0.0)
    world.put("senders", address=SCOTT, project_id="bakery", user_id="scott", created_at=0.0)
    shown = page.get("/write").text
    assert f'value="{SCOTT} bakery"' in shown
    assert f"{SCOTT} (bakery#scott), to edit+bakery@" in shown
    sent = page.post("/mails", data={"from": f"{SCOTT} bakery", "text": "Please."}, headers=OWN)
    assert sent.status_code == 303
    assert only_mail(world)["To"].startswith("edit+bakery@")
    wrong = page.post("/mails", data={"from": f"{SCOTT} kiln", "text": "Please."}, headers=OWN)
    assert (wrong.status_code, "known senders" in wrong.text) == (400, True)


def test_a_header_cannot_be_smuggled_in_by_the_subject(world: DashboardTables, page: TestClient) -> None:
    send(page, subject="Hello\r\nBcc: victim@example.com", text="Please.")
    mail = only_mail(world)
    assert mail["Bcc"] is None
    assert mail["Subject"] == "Hello Bcc: victim@example.com"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"from": "stranger@example.com", "text": "Please."}, "known senders"),
        ({"text": "  ", "subject": ""}, "Write what should change"),
        ({"text": "x" * 200_001}, "too long"),
    ],
)
def test_a_letter_that_cannot_be_sent_comes_back_with_words(
    world: DashboardTables, page: TestClient, fields: dict[str, str], words: str
) -> None:
    answer = page.post("/mails", data={"from": SCOTT, **fields}, headers=OWN)
    assert answer.status_code == 400
    assert words in answer.text
    assert world.sent == []


def test_too_many_files_are_refused(world: DashboardTables, page: TestClient) -> None:
    answer = send(page, [("files", (f"{n}.txt", b"x", "text/plain")) for n in range(11)], text="Please.")
    assert answer.status_code == 400
    assert "Too many files" in answer.text
    assert world.sent == []


def test_too_large_files_are_refused(world: DashboardTables, page: TestClient) -> None:
    answer = send(page, [("files", ("big", b"x" * (MAX_UPLOAD_BYTES + 2_000_000), "text/plain"))], text="Please.")
    assert answer.status_code == 413
    assert "20 MB" in answer.text
    assert world.sent == []


def test_a_mail_that_the_intake_refuses_keeps_its_words(world: DashboardTables) -> None:
    def full(raw: bytes, mail_from: str, recipient: str) -> str:
        raise Transient("452 the disk is full; free some space and send again")

    with TestClient(create_app(world.dashboard(send_mail=full)), base_url="http://127.0.0.1:8080") as page:
        answer = send(page, subject="Hello", text="My long letter")
    assert answer.status_code == 502
    assert "the disk is full" in answer.text
    assert "My long letter" in answer.text
