"""What customers get back: in their language, with buttons, under the operator's name."""

from __future__ import annotations

import re
from collections.abc import Callable
from email.message import EmailMessage
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from tests.acceptance.waiting import Customer, get, text_of, wait_for_reply
from tests.conftest import Up
from tests.photos import picture
from webordinary.mail.write import OutgoingFile


def buttons_of(reply: EmailMessage) -> list[str]:
    """The mailto links of a reply's HTML."""
    body = reply.get_body(("html",))
    assert body is not None
    return [unescape(link) for link in re.findall(r'href="(mailto:[^"]+)"', body.get_content())]


def test_the_buttons_of_a_reply_publish_and_take_back_without_a_reference_to_it(start_up: Callable[..., Up]) -> None:
    up = start_up()
    reply = wait_for_reply(
        up, Customer().write(up, "Change the homepage title to “Spring Sale”", subject="Größe & mehr")
    )
    publish, undo = (urlsplit(link) for link in buttons_of(reply))
    for button, word in ((publish, "publish"), (undo, "undo")):
        assert parse_qs(button.query)["body"] == [word]
        mail = {name: values[0] for name, values in parse_qs(button.query).items()}
        clicked = Customer(mailbox=unquote(button.path)).write(up, mail["body"], subject=mail["subject"])
        wait_for_reply(up, clicked)
        assert ("<title>Spring Sale" in get(up, stage="public")) is (word == "publish")
    assert up.stop() == 0


def test_a_german_mail_is_answered_in_german_and_under_the_operators_name(
    start_up: Callable[..., Up], tmp_path: Path
) -> None:
    logo = tmp_path / "logo.png"
    logo.write_bytes(picture("PNG"))
    up = start_up(
        env={
            "WEBORDINARY_REPLY_NAME": "Müller Web", "WEBORDINARY_REPLY_LOGO": str(logo),
            "WEBORDINARY_REPLY_FOOTER": "Telefon 030 123456",
        }
    )  # fmt: skip
    customer = Customer()
    reply = wait_for_reply(up, customer.write(up, "Guten Tag,\n\nbitte machen Sie die Seite schöner.\n\nDanke, Scott"))
    text = text_of(reply)
    assert text.startswith("Es wurde nichts geändert")
    assert "Müller Web" in text
    assert "Telefon 030 123456" in text
    assert reply["From"].addresses[0].display_name == "Müller Web"
    assert [part.get_filename() for part in reply.walk() if part.get_filename()] == ["logo.png"]
    assert up.stop() == 0


def test_a_german_question_is_answered_in_german_done_and_published(start_up: Callable[..., Up]) -> None:
    up = start_up()
    customer = Customer()
    asked = customer.write(up, "Hallo,\n\nbitte ändern Sie „Visit the workshop“ in „Kommen Sie vorbei“.\n\nDanke")
    question = wait_for_reply(up, asked)
    assert "„Visit the workshop“ steht an 6 Stellen" in text_of(question)
    done = wait_for_reply(up, customer.write(up, "Überall bitte!", reply_to=question))
    text = " ".join(text_of(done).split())
    assert text.startswith("Erledigt, zu sehen auf Ihrer Entwurfsseite")
    assert "die Startseite, die Seite „about“, die Seite „contact“, die Seite „pots“" in text
    public = wait_for_reply(up, customer.write(up, "Passt, bitte veröffentlichen. Danke!", reply_to=done))
    assert "Jetzt öffentlich zu sehen" in text_of(public)
    assert "Visit the workshop" not in get(up, stage="public")
    assert up.stop() == 0


def test_status_tells_what_waits_for_an_answer_and_what_is_not_public(start_up: Callable[..., Up]) -> None:
    up, customer = start_up(), Customer()
    done = wait_for_reply(up, customer.write(up, "Change the homepage title to Spring Sale."))
    wait_for_reply(up, customer.write(up, "change “Visit the workshop” to “Come by”", subject="The link"))
    told = " ".join(text_of(wait_for_reply(up, customer.write(up, "status"))).split())
    assert "wait for your answer: - The link" in told
    assert "not public yet: - Changed the title of the homepage to “Spring Sale”." in told
    public = wait_for_reply(up, customer.write(up, "publish", reply_to=done))
    assert text_of(public).startswith("Published")
    told = " ".join(text_of(wait_for_reply(up, customer.write(up, "status"))).split())
    assert "The link" in told
    assert "not public yet" not in told
    assert up.stop() == 0


def test_a_bare_ja_takes_a_change_back_and_is_answered_in_german(start_up: Callable[..., Up]) -> None:
    up, customer = start_up(), Customer()
    done = wait_for_reply(
        up, customer.write(up, "Bitte ändern Sie den Titel der Startseite in „Frühling“. Danke, Anna")
    )
    assert "Frühling" in get(up)
    regret = "Ich habe es mir leider anders überlegt. Mach es bitte rückgängig.\n\nAnna"
    question = wait_for_reply(up, customer.write(up, regret, reply_to=done))
    assert "antworten Sie „ja“" in " ".join(text_of(question).split())
    undone = wait_for_reply(up, customer.write(up, "Ja", reply_to=question))
    assert text_of(undone).startswith("Zurückgenommen auf Ihrer Entwurfsseite")
    assert "Frühling" not in get(up)
    assert up.stop() == 0


def test_a_photo_gets_its_size_and_the_customers_words(start_up: Callable[..., Up]) -> None:
    up, customer = start_up(), Customer()
    photo = OutgoingFile("IMG_1.jpg", "image/jpeg", picture("JPEG", (400, 300)))
    asked = customer.write(up, "Replace the photo of the kiln with the attached one", files=(photo,))
    wait_for_reply(up, asked)
    assert '<img src="images/img-1.jpg" alt="The kiln" width="400" height="300"' in get(up, "/about.html")
    assert up.stop() == 0
