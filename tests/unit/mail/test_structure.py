"""Mails that are built wrongly: no file that a person attached vanishes in silence."""

from __future__ import annotations

import base64
import binascii

import pytest

from tests.unit.mail.letters import PNG, SCOTT, multipart
from webordinary.mail.parsing.attachments import FileType, extract
from webordinary.mail.parsing.message import parse
from webordinary.mail.ports import ExtractedFile
from webordinary.model.mail import RefusedAttachment

HEAD = f"From: {SCOTT}\r\nSubject: photo\r\nMessage-ID: <1@example.com>\r\n".encode()
ENCODED = base64.encodebytes(PNG).replace(b"\n", b"\r\n")
TEXT = b"Content-Type: text/plain\r\n\r\nHello\r\n"
PHOTO = (
    b'Content-Type: image/png; name="a.png"\r\nContent-Transfer-Encoding: base64\r\n'
    b'Content-Disposition: attachment; filename="a.png"\r\n\r\n' + ENCODED
)
BODY = b"--b0\r\n" + TEXT + b"--b0\r\n" + PHOTO + b"--b0--\r\n"


def as_it_came(data: bytes, found: FileType) -> bytes:
    return data


def files_of(mail: bytes) -> list[tuple[str, bytes | str]]:
    """Of each file its name and bytes, or why it is refused."""
    found = extract(mail, as_it_came)
    return [(file.name, file.data if isinstance(file, ExtractedFile) else file.reason) for file in found]


@pytest.mark.parametrize(
    "content_type",
    [
        b'multipart/mixed boundary="b0"',
        b"multipart/mixed boundary=b0",
        b"multipart/mixed\r\n\tboundary=b0",
        b'multipart/mixed, boundary="b0"',
        b'multipart/mixed; charset=utf-8 boundary="b0"',
        b'multipart / mixed; boundary="b0"',
        b'multipart; boundary="b0"',
        b'multipart/mixed; boundary="b0',
        b"multipart/mixed; boundary='b0'",
        b'multipart/mixed; boundary="b0 "',
        b'multipart/mixed; boundary = "b0"',
        b'MULTIPART/MIXED; BOUNDARY="b0"',
        b'multipart/mixed; boundary="B0"',
        b'multipart/mixed; boundary="other"; boundary="b0"',
        b'multipart/mixed; boundary*0="b"; boundary*1="0"',
        b'multipart/mixed; boundary="other"',
        b'multipart/mixed; boundary=""',
        b"multipart/mixed",
        b'text/plain; boundary="b0"',
        b'text/plain\r\nContent-Type: multipart/mixed; boundary="b0"',
        b"",
    ],
)
def test_the_parts_of_a_mail_are_found_however_its_header_names_the_boundary(content_type: bytes) -> None:
    mail = HEAD + (b"Content-Type: " + content_type + b"\r\n" if content_type else b"") + b"\r\n" + BODY
    assert parse(mail).text == "Hello"
    assert files_of(mail) == [("a.png", PNG)]


def test_a_text_that_shows_the_source_of_a_mail_stays_a_text() -> None:
    shown = "Put this source on the page:\r\n\r\n--b0\r\nContent-Type: text/plain\r\n\r\nHello"
    assert parse(HEAD + b"\r\n" + shown.encode()).text == shown.replace("\r\n", "\n")
    plain = HEAD + b"Content-Type: text/plain\r\n\r\n" + BODY
    assert parse(plain).text.startswith("--b0")


def test_a_mail_that_declares_parts_and_has_none_is_a_text() -> None:
    assert parse(HEAD + b"Content-Type: multipart/mixed; boundary=b0\r\n\r\nMake it red.").text == "Make it red."


@pytest.mark.parametrize(
    "body",
    [
        BODY.removesuffix(b"--b0--\r\n"),
        BODY.replace(b"--b0\r\n", b"--b0  \t\r\n"),
        BODY.replace(PHOTO, b"\r\n" + PHOTO),
        b"--b0\r\n" + TEXT + b"--b0--\r\n\r\n--b0\r\n" + PHOTO + b"--b0--\r\n",
        b"--b0\r\nContent-Type: multipart/alternative; boundary=b1\r\n\r\n--b1\r\n" + TEXT + b"--b0\r\n" + PHOTO,
    ],
    ids=["not closed", "spaces after it", "empty line above a header", "parts below the end", "inner one not closed"],
)
def test_a_file_is_found_where_delimiters_are_wrong(body: bytes) -> None:
    mail = HEAD + b"Content-Type: multipart/mixed; boundary=b0\r\n\r\n" + body
    assert (parse(mail).text, files_of(mail)) == ("Hello", [("a.png", PNG)])


@pytest.mark.parametrize(
    "encoding", ["BASE64", "base64 (of my program)", "base64;", '"base64"', "base-64", "7bit", "nonsense"]
)
def test_a_picture_is_decoded_whatever_its_encoding_is_called(encoding: str) -> None:
    lines = base64.encodebytes(PNG + bytes(100))
    mail = multipart((f"Content-Type: image/png; name=a.png\r\nContent-Transfer-Encoding: {encoding}", lines))
    assert files_of(mail) == [("a.png", PNG + bytes(100))]


@pytest.mark.parametrize("content_type", ["text/plain", "text/plain; charset=utf-8", "", "image"])
def test_a_picture_that_is_declared_as_a_text_is_a_file(content_type: str) -> None:
    head = f"Content-Type: {content_type}\r\n" if content_type else ""
    mail = multipart(("Content-Type: text/plain", b"Hello"), (f"{head}Content-Transfer-Encoding: base64", ENCODED))
    assert parse(mail).text == "Hello"
    assert files_of(mail) == [("file.png", PNG)]


def test_a_uuencoded_file_in_a_text_is_a_file() -> None:
    lines = b"".join(binascii.b2a_uu(PNG[at : at + 45]) for at in range(0, len(PNG), 45))
    mail = HEAD + b"\r\nHello\r\n\r\nbegin 644 a.png\r\n" + lines.replace(b"\n", b"\r\n") + b"`\r\nend\r\n\r\nBye"
    assert parse(mail).text == "Hello\n\nBye"
    assert files_of(mail) == [("a.png", PNG)]
    begun = HEAD + b"\r\nbegin 644 means that the file may be read"
    assert (parse(begun).text, files_of(begun)) == ("begin 644 means that the file may be read", [])


def test_the_files_of_an_attached_mail_came_with_the_mail() -> None:
    attached = HEAD + b"Content-Type: multipart/mixed; boundary=b1\r\n\r\n" + BODY.replace(b"--b0", b"--b1")
    mail = multipart(("Content-Type: text/plain", b"Use this photo"), ("Content-Type: message/rfc822", attached))
    assert parse(mail).text == "Use this photo"
    assert parse(mail).attachment_count == 2
    assert files_of(mail)[1] == ("a.png", PNG)


@pytest.mark.parametrize(
    ("head", "data", "name", "reason"),
    [
        ('Content-Type: image/png; name="a.png"', b"", "a.png", "it is empty"),
        ("Content-Type: application/ms-tnef; name=winmail.dat", b"x\x9f\x3e\x22", "winmail.dat", "winmail.dat"),
        ("Content-Type: message/partial; number=1; name=a.eml", b"x", "a.eml", "a piece of a mail"),
        ("Content-Type: message/external-body; name=a.png", b"x", "a.png", "not in the mail"),
        ("Content-Type: text/plain; name=a.asc", b"-----BEGIN PGP MESSAGE-----\r\nx", "a.asc", "encrypted"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(head: str, data: bytes, name: str, reason: str) -> None:
    (refused,) = extract(multipart((head, data)), as_it_came)
    assert isinstance(refused, RefusedAttachment)
    assert refused.name == name
    assert reason in refused.reason


def test_the_name_in_full_counts_before_the_one_in_ascii() -> None:
    disposition = "attachment; filename=\"Fruehling.png\"; filename*=UTF-8''Fr%C3%BChling.png"
    head = f"Content-Type: image/png\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: {disposition}"
    mail = multipart((head, ENCODED))
    (found,) = extract(mail, as_it_came)
    assert isinstance(found, ExtractedFile)
    assert found.sent_as == "Frühling.png"
