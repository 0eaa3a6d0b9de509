from __future__ import annotations

import pytest

from tests.fakes.events import EventRecorder
from tests.harness.stores import TemporaryRawMails
from tests.unit.mail.letters import delivery, raw_mail
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.mail.addresses import Mailbox
from webordinary.mail.intake import accept, name_of
from webordinary.mail.parsing.headers import split, with_crlf
from webordinary.model.errors import Permanent


def test_a_mail_is_named_by_what_it_is_and_to_whom_it_goes() -> None:
    name = name_of(raw_mail(), "edit@localhost")
    assert name == name_of(raw_mail(received="by another host"), "EDIT@localhost")
    assert name != name_of(raw_mail(), "edit+amelia@localhost")
    assert name != name_of(raw_mail("another text"), "edit@localhost")
    assert name != name_of(raw_mail(message_id="<2@example.com>"), "edit@localhost")
    assert name != name_of(raw_mail(**{"from": "eve@example.com"}), "edit@localhost")


def test_each_new_mail_is_told_once() -> None:
    mails, events = TemporaryRawMails(MemoryDatabase()), EventRecorder()
    both = delivery("edit@localhost", "edit+amelia@localhost", "edit@localhost")
    first = accept(raw_mail(), both, mails=mails, events=events)
    again = accept(raw_mail(), both, mails=mails, events=events)
    assert [mail.is_new for mail in first] == [True, True]
    assert [mail.is_new for mail in again] == [False, False]
    assert [event.email_id for event in events] == [mail.email_id for mail in first]


@pytest.mark.parametrize("raw", [b"", b"\r\n", b"\xff\xfe", b"no header at all", b"From: " + b"(" * 70_000])
def test_anything_can_be_accepted(raw: bytes) -> None:
    assert accept(raw, delivery(), mails=TemporaryRawMails(MemoryDatabase()), events=EventRecorder())[0].is_new


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        (b"A: 1\r\nB: 2\r\n\r\nbody\r\n\r\n", (b"A: 1\r\nB: 2", b"body\r\n\r\n")),
        (b"A: 1\n\nB: 2\r\n\r\nbody", (b"A: 1\n\nB: 2", b"body")),
        (b"A: 1\r\rB: 2\r\n\r\nbody", (b"A: 1\r\rB: 2", b"body")),
        (b"A: 1\n\r\nB: 2\r\n\r\nbody", (b"A: 1\n\r\nB: 2", b"body")),
        (b"A: 1", (b"A: 1", b"")),
        (b"A: 1\r\n", (b"A: 1", b"")),
        (b"\r\nbody", (b"", b"body")),
    ],
)
def test_a_mail_is_split_at_its_first_empty_line(raw: bytes, parts: tuple[bytes, bytes]) -> None:
    assert split(raw) == parts


@pytest.mark.parametrize(
    ("file", "carried"),
    [
        (b"A: 1\nB: 2\n\nbody\nmore\r\n", b"A: 1\r\nB: 2\r\n\r\nbody\r\nmore\r\n"),
        (b"A: 1\r\n\r\nbody\nmore\rx", b"A: 1\r\n\r\nbody\r\nmore\r\nx"),
        (b"A: 1\nB: 2\r\rx\n\nbody", b"A: 1\r\nB: 2\r\rx\r\n\r\nbody"),
        (b"A: 1\r\nB: 2\n\nx\r\n\r\nbody", b"A: 1\r\nB: 2\n\nx\r\n\r\nbody"),
        (b"A: 1\rB: 2", b"A: 1\rB: 2"),
        (b"\n\nbody", b"\r\n\r\nbody"),
        (b"", b""),
    ],
)
def test_a_file_gets_the_line_ends_of_smtp_except_where_its_header_mixes_them(file: bytes, carried: bytes) -> None:
    assert with_crlf(file) == carried
    assert with_crlf(carried) == carried


def test_a_mailbox_takes_its_own_mail_only() -> None:
    edit = Mailbox.parse("Edit@localhost", "example.org")
    taken = ["edit@localhost", "EDIT+amelia@Localhost", "edit@example.org"]
    others = [
        "edit@localhost.example.com",
        "credit@localhost",
        "edit",
        "@localhost",
        "a@b@localhost",
        "edit@localhost x",
    ]
    assert [edit.accepts(address) for address in taken] == [True] * 3
    assert [edit.accepts(address) for address in others] == [False] * 6
    assert (edit.token("edit+Amelia@localhost"), edit.token("edit@localhost")) == ("amelia", "")
    with pytest.raises(Permanent, match="no mail address"):
        Mailbox.parse("edit")
