"""Mail is taken from a Maildir and from a folder of `.eml` files."""

from __future__ import annotations

import mailbox
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.harness.embedded import open_harness as open_data_folder
from tests.harness.intake import IntakeHarness, letter, now, open_intake
from webordinary.adapters.mailboxes import DropFolder
from webordinary.compose.background import alert_mailer
from webordinary.mail.replies.compose import OPERATOR
from webordinary.model.events import EventKind
from webordinary.model.mail import TransportKind
from webordinary.services.mail_intake import Intake, MailReader


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[IntakeHarness]:
    (tmp_path / "data").mkdir()
    yield from open_intake(tmp_path / "data")


def drop(tmp_path: Path, max_bytes: int = 100_000) -> DropFolder:
    return DropFolder(tmp_path / "drop", max_bytes)


def test_mails_of_a_maildir_are_taken_in_their_order_and_kept_as_seen(harness: IntakeHarness, tmp_path: Path) -> None:
    maildir = mailbox.Maildir(tmp_path / "drop")
    for number in range(3):
        maildir.add(letter(f"wish {number}").replace(b"\r\n", b"\n"))
    assert harness.reader(drop(tmp_path)).run_once(now()) == 3
    assert harness.texts() == ["wish 0", "wish 1", "wish 2"]
    assert harness.reader(drop(tmp_path)).run_once(now()) == 0
    assert [message.get_flags() for message in mailbox.Maildir(tmp_path / "drop")] == ["S", "S", "S"]


def test_eml_files_are_taken_whole_and_moved_aside(harness: IntakeHarness, tmp_path: Path) -> None:
    folder = tmp_path / "drop"
    folder.mkdir()
    for name, text in (("10.eml", "wish 10"), ("9.eml", "wish 9"), (".half.eml", "half"), ("notes.txt", "no mail")):
        (folder / name).write_bytes(letter(text))
    (folder / "link.eml").symlink_to("/etc/hostname")
    assert harness.reader(drop(tmp_path)).run_once(now()) == 2
    assert harness.texts() == ["wish 9", "wish 10"]
    assert sorted(file.name for file in (folder / "taken").iterdir()) == ["10.eml", "9.eml"]
    assert sorted(file.name for file in folder.glob("*.*")) == [".half.eml", "link.eml", "notes.txt"]


def test_a_mail_that_was_stored_but_not_moved_is_not_taken_twice(harness: IntakeHarness, tmp_path: Path) -> None:
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / "1.eml").write_bytes(letter("wish"))
    assert harness.reader(drop(tmp_path)).run_once(now()) == 1
    (tmp_path / "drop" / "taken" / "1.eml").rename(tmp_path / "drop" / "1.eml")  # as after kill -9 before the move
    assert harness.reader(drop(tmp_path)).run_once(now()) == 1
    assert harness.texts() == ["wish"]


def test_empty_and_large_files_are_refused_and_kept(harness: IntakeHarness, tmp_path: Path) -> None:
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / "empty.eml").write_bytes(b"")
    (tmp_path / "drop" / "large.eml").write_bytes(letter("x" * 3000))
    assert harness.reader(drop(tmp_path, max_bytes=2000)).run_once(now()) == 2
    reasons = [event.data["reason"] for event in harness.events if event.kind is EventKind.MAIL_REFUSED]
    assert ["empty" in reasons[0], "2,000 bytes" in reasons[1]] == [True, True]
    assert len(list((tmp_path / "drop" / "taken").iterdir())) == 2


def test_a_missing_folder_is_told_and_looked_for_again(
    harness: IntakeHarness, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reader = harness.reader(drop(tmp_path))
    assert reader.run_once(now()) == 0
    assert "make it, or give access to it" in caplog.text
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / "1.eml").write_bytes(letter("wish"))
    assert reader.run_once(now()) == 1


def test_a_place_that_cannot_be_read_for_five_minutes_is_an_alarm_for_the_operator(tmp_path: Path) -> None:
    with open_data_folder(tmp_path / "data", operator="ops@example.com") as harness:
        services = harness.services
        intake = Intake(services.accept_mail, lambda email_id: None)
        reader = MailReader(TransportKind.FOLDER, drop(tmp_path), intake, services.mail_deps.mailbox, services.events)
        began = services.clock.now() - timedelta(minutes=6)
        for minutes in (0, 4):
            reader.run_once(began + timedelta(minutes=minutes))
        assert alert_mailer(services).run_once(services.clock.now()) == 0
        reader.run_once(began + timedelta(minutes=6))
        services.events.close()
        assert [alert_mailer(services).run_once(services.clock.now()) for _ in range(2)] == [1, 0]
        (mail,) = services.outbox.of(OPERATOR)
        assert b"No mail is taken from folder" in mail.reply.raw
        (tmp_path / "drop").mkdir()
        reader.run_once(services.clock.now())
        assert reader._failing_since is None
