"""A mail goes in, a site and a reply come out."""

from __future__ import annotations

import smtplib
import subprocess
import sys
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest

from tests.acceptance.waiting import Customer, get, get_bytes, replies, text_of, wait_for_reply, wait_until
from tests.conftest import Up
from tests.photos import exif, opened, picture
from webordinary.mail.write import OutgoingFile
from webordinary.operations import sample


@pytest.fixture
def up(start_up: Callable[..., Up]) -> Iterator[Up]:
    running = start_up()
    yield running
    assert running.stop() == 0


def origin_log(data: Path, *args: str) -> str:
    command = ["git", f"--git-dir={data / 'origins' / 'amelia.git'}", "log", *args, "main"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_customer_changes_a_title_adds_a_photo_and_takes_it_back(up: Up) -> None:
    before = get(up)
    photo = OutgoingFile(sample.PHOTO_NAME, "image/jpeg", sample.sample_photo())
    text = "Change the homepage title to Spring Sale and add the attached photo to the homepage"
    customer = Customer()
    asked = customer.write(up, text, subject="Spring sale, photo attached", files=(photo,))
    reply = wait_for_reply(up, asked)
    assert reply["To"] == "scott@example.com"
    assert reply["Subject"] == "Re: Spring sale, photo attached"
    assert "Spring Sale" in text_of(reply)
    assert "http://edit.amelia.localhost:" in text_of(reply)
    page = get(up)
    assert "<title>Spring Sale" in page
    image = next(part.split('"')[0] for part in page.split('src="')[1:] if ".jpg" in part.split('"')[0])
    shown = opened(get_bytes(up, f"/{image.lstrip('/')}", "edit.amelia.localhost"))
    assert (shown.format, shown.size) == ("JPEG", opened(sample.sample_photo()).size)

    undo = customer.write(up, "undo", subject="Re: Spring sale, photo attached", reply_to=reply)
    assert "taken back" in text_of(wait_for_reply(up, undo)).lower()
    assert get(up) == before


def test_a_standing_wish_is_kept_listed_and_forgotten(up: Up) -> None:
    customer = Customer()
    kept = wait_for_reply(up, customer.write(up, "Hi,\n\nremember: British spelling\n\nThanks,\nScott"))
    assert "I will remember that" in text_of(kept)
    assert "exact edits only" in text_of(kept), "the built-in agent says that it cannot follow it"
    assert "British spelling" in text_of(wait_for_reply(up, customer.write(up, "status")))
    gone = wait_for_reply(up, customer.write(up, "forget: british", reply_to=kept))
    assert "Not kept any more" in text_of(gone)
    assert "British spelling" not in text_of(wait_for_reply(up, customer.write(up, "status", reply_to=gone)))
    assert not origin_log(up.data, "--grep=British"), "wishes are kept outside of the repository"


def test_a_photo_with_a_gps_position_goes_public_without_it(up: Up) -> None:
    customer, sent = Customer(), picture("JPEG", (2400, 1800), exif=exif())
    assert b"Phone of Scott" in sent
    photo = OutgoingFile("Kiln.jpeg", "image/jpeg", sent)
    asked = customer.write(up, "Add the attached photo to the homepage", subject="The kiln", files=(photo,))
    wait_for_reply(up, customer.write(up, "publish", reply_to=wait_for_reply(up, asked)))
    page = get(up, stage="public")
    image = next(part.split('"')[0] for part in page.split('src="')[1:] if "kiln" in part.split('"')[0])
    public = get_bytes(up, f"/{image.lstrip('/')}", "amelia.localhost")
    assert (opened(public).size, dict(opened(public).getexif())) == ((1500, 2000), {})
    assert b"Phone of Scott" not in public


def test_the_commit_names_the_instruction_and_the_job(up: Up) -> None:
    wait_for_reply(up, Customer().write(up, "Change the homepage title to Autumn Glazes"))
    log = origin_log(up.data, "-1", "--format=%B")
    assert "Change the homepage title to Autumn Glazes" in log
    assert "Job-Id: job-" in log


def test_what_is_not_understood_is_said_plainly_and_changes_nothing(up: Up) -> None:
    before, history = get(up), origin_log(up.data, "--format=%H")
    reply = wait_for_reply(up, Customer().write(up, "Please make everything feel more like a summer evening"))
    assert "summer evening" in text_of(reply)
    assert (get(up), origin_log(up.data, "--format=%H")) == (before, history)


def test_a_strangers_mail_changes_nothing_and_gets_no_answer(up: Up) -> None:
    before = get(up)
    stranger = Customer("eve@example.net").write(up, "Change the homepage title to Mine")
    known = Customer().write(up, "status")
    wait_for_reply(up, known)
    wait_until(up.data, lambda: "refused" in _status(up), "the refusal")
    assert stranger not in replies(up.data)
    assert get(up) == before


def test_mails_of_a_thread_in_quick_succession_are_done_in_the_order_they_were_accepted(up: Up) -> None:
    customer, first = Customer(), EmailMessage()
    sent = [customer.write(up, "Change the homepage title to Number 0")]
    first["Message-ID"] = sent[0]
    sent += [customer.write(up, f"Change the homepage title to Number {n}", reply_to=first) for n in range(1, 8)]
    wait_until(up.data, lambda: set(sent) <= replies(up.data).keys(), "all answers")
    subjects = origin_log(up.data, "--reverse", "--format=%s").splitlines()[1:]
    assert subjects == [f"Change the homepage title to Number {number}" for number in range(8)]


def test_publish_puts_the_edit_site_before_the_public(up: Up) -> None:
    customer = Customer()
    done = wait_for_reply(up, customer.write(up, "Change the homepage title to Open House"))
    wait_for_reply(up, customer.write(up, "publish", reply_to=done))
    assert "<title>Open House" in get(up, stage="public")


def test_a_mail_that_cannot_be_read_is_kept_for_a_person_and_its_sender_told(up: Up) -> None:
    customer = Customer()
    nested = "".join(f"Content-Type: multipart/mixed; boundary=b{i}\r\n\r\n--b{i}\r\n" for i in range(300))
    head = f"From: {customer.address}\r\nTo: edit@localhost\r\nMessage-ID: <odd@example.com>\r\nSubject: odd\r\n"
    raw = head + nested
    with smtplib.SMTP(up.smtp_host, up.smtp_port, local_hostname="localhost") as smtp:
        smtp.sendmail(customer.address, ["edit@localhost"], raw.encode())
    reply = wait_for_reply(up, "<odd@example.com>")
    assert "could not read" in text_of(reply)
    wait_until(up.data, lambda: "dead letters: 1" in _status(up), "the dead letter")


def test_a_restored_backup_goes_on_where_it_was(start_up: Callable[..., Up], tmp_path: Path) -> None:
    up, customer = start_up(), Customer()
    for title in ("Before", "Kept"):
        wait_for_reply(up, customer.write(up, f"Change the homepage title to {title}"))
    backup, restored = tmp_path / "b.tar.gz", tmp_path / "restored"
    _webordinary("backup", str(backup), "--data", str(up.data))
    assert up.stop() == 0
    _webordinary("restore", str(backup), "--data", str(restored))
    again = start_up(data=restored)
    assert "<title>Kept" in get(again)
    wait_for_reply(again, customer.write(again, "Change the homepage title to After"))
    assert "<title>After" in get(again)
    assert again.stop() == 0


def _webordinary(*args: str) -> str:
    command = [sys.executable, "-m", "webordinary", *args]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def _status(up: Up) -> str:
    command = [sys.executable, "-m", "webordinary", "status", "--data", str(up.data)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
