"""What customers get back: in their language, with buttons, under the operator's name."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import EmailMessage
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tests.acceptance.waiting import Customer, get, replies, text_of, wait_for_reply, wait_until
from tests.conftest import Up
from tests.photos import HEIC, picture
from webordinary.adapters.files.screenshots import find_browser
from webordinary.entrypoints.running import MODEL_VARIABLES
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
    assert "not published by you yet: - Changed the title of the homepage to “Spring Sale”." in told
    public = wait_for_reply(up, customer.write(up, "publish", reply_to=done))
    assert text_of(public).startswith("Published")
    told = " ".join(text_of(wait_for_reply(up, customer.write(up, "status"))).split())
    assert "The link" in told
    assert "not published by you yet" not in told
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


def test_a_mail_that_changes_and_publishes_gets_both_and_undo_that_takes_it_back_on_both_sites(
    start_up: Callable[..., Up],
) -> None:
    up, customer = start_up(), Customer()
    mail = (
        "Hi Anna,\n\nI hope you are well! Please change the title of the homepage to “Spring Sale” and publish it.\n\n"
        "Kind regards\nScott\n\nSent from my iPhone"
    )
    done = wait_for_reply(up, customer.write(up, mail))
    assert text_of(done).startswith("Done and published")
    assert "<title>Spring Sale" in get(up, stage="public")
    undone = wait_for_reply(up, customer.write(up, "Hmm, sorry, undo that. Thanks, Scott", reply_to=done))
    assert text_of(undone).startswith("Taken back on your edit site and your public site")
    for stage in ("edit", "public"):
        assert "Spring Sale" not in get(up, stage=stage)
    assert up.stop() == 0


def test_of_several_wishes_none_is_done_before_the_unclear_one_is_answered(start_up: Callable[..., Up]) -> None:
    up, customer = start_up(), Customer()
    mail = (
        "Hello,\n\ntwo small things:\n1. The title of the homepage should be “Spring Sale”.\n"
        "2. Please change “Visit the workshop” to “Come by”.\n\nThanks!\nScott"
    )
    before = get(up)
    question = wait_for_reply(up, customer.write(up, mail))
    assert text_of(question).startswith("I need a word from you")
    assert "I found “Visit the workshop” in 6 places" in text_of(question)
    assert "Nothing was changed yet." in " ".join(text_of(question).split())
    assert get(up) == before
    wait_for_reply(up, customer.write(up, "Everywhere, please.\n\nScott", reply_to=question))
    assert "<title>Spring Sale" in get(up)
    assert "Come by" in get(up, "/about.html")
    assert up.stop() == 0


def test_a_phones_photo_takes_the_place_of_another_whose_file_goes(start_up: Callable[..., Up]) -> None:
    up, customer = start_up(), Customer()
    photo = OutgoingFile("IMG_0815.HEIC", "image/heic", HEIC.read_bytes())
    before = get(up, "/about.html")
    [old] = re.findall(r'<img src="(images/[^"]*kiln[^"]*)"', before)
    reply = wait_for_reply(
        up,
        customer.write(up, "Here is a new photo. Please replace the photo on the about page with it.", files=(photo,)),
    )
    assert "Replaced the photo" in text_of(reply), text_of(reply)
    page = get(up, "/about.html")
    assert '<img src="images/img-0815.jpg"' in page
    assert old not in page
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(up, f"/{old}")
    assert up.stop() == 0


def test_an_agents_dead_link_is_told_and_its_foreign_script_left_out(start_up: Callable[..., Up]) -> None:
    script = (
        "cat > wish; grep -q shop wish && sed -i 's/about.html/shop.html/' index.html; "
        "grep -q chat wish && sed -i 's#</body>#<script src=https://chat.example/x.js></script></body>#' index.html; "
        "rm wish; echo Done."
    )
    agent = shlex.join(["sh", "-c", script])
    up = start_up("--agent", "command", "--agent-command", agent, "--allow-unjailed-agents", "true")
    customer = Customer()
    told = wait_for_reply(up, customer.write(up, "Link the shop on the homepage"))
    assert "the link to shop.html leads nowhere." in " ".join(text_of(told).split())
    before = get(up)
    left_out = wait_for_reply(up, customer.write(up, "Put the chat on the homepage"))
    assert "has not allowed yet (chat.example" in " ".join(text_of(left_out).split())
    assert get(up) == before
    assert up.stop() == 0


def test_what_no_agent_understands_is_on_the_operators_list_and_answered_in_the_thread(
    start_up: Callable[..., Up],
) -> None:
    up, customer = start_up(), Customer()
    asked = customer.write(up, "Could you make the shop feel more like autumn?", subject="Autumn")
    told = wait_for_reply(up, asked)
    assert "the person who looks after your site sees this mail and answers you here" in " ".join(text_of(told).split())
    with urllib.request.urlopen(f"{up.page}attention", timeout=60) as page:
        listed = page.read().decode()
    assert "more like autumn" in listed
    [email_id] = set(re.findall(r"/mails/([\w-]+)", listed))
    command = [sys.executable, "-m", "webordinary", "mails", "answer", email_id, "I will do that by hand."]
    subprocess.run([*command, "--data", str(up.data)], check=True, timeout=60)
    wait_until(up.data, lambda: len(replies(up.data)[asked]) == 2, "the operator's answer")
    assert "I will do that by hand." in " ".join(text_of(one) for one in replies(up.data)[asked])
    assert up.stop() == 0


def test_a_first_start_without_a_key_says_what_its_agent_does_and_the_command_that_tries_a_real_one(
    start_up: Callable[..., Up],
) -> None:
    up = start_up(env=dict.fromkeys(MODEL_VARIABLES, ""))
    command = f"agent test --data {up.data}"
    with urllib.request.urlopen(up.page, timeout=60) as answer:
        page = " ".join(unescape(answer.read().decode()).split())
    for told in (" ".join(" ".join(up.lines).split()), page):
        assert "built-in: it does simple, exact edits (a title, a quoted text, a photo) and asks about the rest" in told
        for way in ("ANTHROPIC_API_KEY", "Bedrock", "Vertex", "gateway", "ANTHROPIC_BASE_URL", "ACP"):
            assert way in told
        assert command in told
    tried = subprocess.run(
        [sys.executable, "-m", "webordinary", *shlex.split(command)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert tried.returncode == 0, tried.stderr
    assert up.stop() == 0


def test_a_reply_shows_the_page_before_and_after_inside_the_mail(start_up: Callable[..., Up]) -> None:
    if find_browser() is None:
        pytest.skip("no chromium on this machine")
    up = start_up(env={"WEBORDINARY_PICTURES": "on", "WEBORDINARY_PICTURE_SECONDS": "60"})
    reply = wait_for_reply(up, Customer().write(up, "Change the heading on the homepage to “Spring Sale”"))
    body = reply.get_body(("html",))
    assert body is not None
    shown = re.findall(r'<img[^>]*src="cid:([^"]+)"', body.get_content())
    inside = {part["Content-ID"].strip("<>"): part.get_content() for part in reply.walk() if part["Content-ID"]}
    before, after = (inside[one] for one in shown)
    assert before != after
    assert all(one.startswith(b"\x89PNG") for one in (before, after))
    assert "http" not in " ".join(re.findall(r'<img[^>]*src="([^"]+)"', body.get_content())), "nothing is loaded"
    assert up.stop() == 0
