from __future__ import annotations

import base64
import io
import zipfile

import pytest

from tests.unit.mail.letters import JPEG, NOON, PNG, SCOTT, multipart
from webordinary.adapters.memory.blobs import MemoryBlobs
from webordinary.adapters.memory.mails import MemoryAttachmentManifest
from webordinary.mail.attachments import ExtractedFile, extract, safe_stem, store_attachment
from webordinary.mail.write import AttachedFile, Letter, write_mail
from webordinary.model.errors import Permanent
from webordinary.model.events import Event
from webordinary.model.mail import Attachment, AttachmentKind, RefusedAttachment


class Told(list[Event]):
    def emit(self, event: Event) -> None:
        self.append(event)


def with_files(*files: tuple[str, bytes]) -> bytes:
    attached = [AttachedFile(name, "application/octet-stream", data) for name, data in files]
    return write_mail(Letter(SCOTT, "edit@localhost", "files", "see attached", attached), NOON)


def office(*names: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return packed.getvalue()


def odt() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "stored_as", "media_type"),
    [
        ("mug.PNG", PNG, "mug.png", "image/png"),
        ("mug.exe", JPEG, "mug.jpg", "image/jpeg"),
        ("anim", b"GIF89a.....", "anim.gif", "image/gif"),
        ("w", b"RIFF\0\0\0\0WEBPVP8 ", "w.webp", "image/webp"),
        ("a", b"\0\0\0\x20ftypavif....", "a.avif", "image/avif"),
        ("menu.pdf", b"%PDF-1.7 ...", "menu.pdf", "application/pdf"),
        ("prices.csv", b"mug,12\n", "prices.csv", "text/csv"),
        ("About.md", b"# About\n", "about.md", "text/markdown"),
        ("note", "Grüße\n".encode(), "note.txt", "text/plain"),
        ("l.docx", office("word/document.xml"), "l.docx", None),
        ("l.xlsx", office("xl/workbook.xml"), "l.xlsx", None),
        ("l.odt", odt(), "l.odt", None),
    ],
)
def test_a_file_is_what_its_bytes_say(name: str, data: bytes, stored_as: str, media_type: str | None) -> None:
    found = extract(with_files((name, data)), 0)
    assert isinstance(found, ExtractedFile)
    assert (found.name, found.data) == (stored_as, data)
    assert media_type is None or found.media_type == media_type


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("logo.svg", b"<svg xmlns='x'><script>alert(1)</script></svg>", "can carry programs"),
        ("photo.png", b"\n<!DOCTYPE html><script>", "can carry programs"),
        ("setup.jpg", b"MZ\x90\0", "a program"),
        ("run.txt", b"#!/bin/sh\nrm", "a program"),
        ("winmail.dat", b"x\x9f>\x22\0\0", "plain text or HTML"),
        ("IMG_1.HEIC", b"\0\0\0\x20ftypheic....", "send it as JPEG"),
        ("all.zip", office("a.txt"), "one by one"),
        ("macro.docm", office("word/document.xml", "word/vbaProject.bin"), "one by one"),
        ("thing.bin", b"\0\1\2\3", "we cannot use files of its kind"),
    ],
)
def test_a_file_we_do_not_take_is_refused_with_what_to_do(name: str, data: bytes, words: str) -> None:
    found = extract(with_files((name, data)), 0)
    assert isinstance(found, RefusedAttachment)
    assert found.name == name
    assert words in found.reason


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("../../etc/passwd", "passwd"), ("C:\\photos\\Mug 1.JPG", "mug-1"), ("Töpferei.png", "topferei"),
        ("", "file"), ("...", "file"), ("con.png", "file-con"), ("陶器.png", "file"), (".htaccess", "htaccess"),
        ("a" * 300 + ".png", "a" * 80), ("x\r\ny.png", "x-y"),
    ],
)  # fmt: skip
def test_names_are_safe(name: str, stem: str) -> None:
    assert safe_stem(name, "file") == stem


def test_files_of_one_name_get_names_of_their_own() -> None:
    raw = with_files(("image.png", PNG), ("image.png", PNG), ("image-2.png", PNG), ("IMAGE.jpg", JPEG))
    found = [extract(raw, position) for position in range(4)]
    assert [file.name for file in found] == ["image.png", "image-2.png", "image-2-2.png", "image-3.jpg"]


def test_a_cid_image_without_a_name_is_taken() -> None:
    head = "Content-Type: image/jpeg\r\nContent-ID: <x>\r\nContent-Transfer-Encoding: base64"
    found = extract(multipart(("Content-Type: text/plain", b"hi"), (head, base64.b64encode(JPEG))), 0)
    assert isinstance(found, ExtractedFile)
    assert (found.name, found.kind) == ("file.jpg", AttachmentKind.IMAGE)


def test_a_position_beyond_the_files_is_an_error() -> None:
    with pytest.raises(Permanent, match="none at position 1"):
        extract(with_files(("mug.png", PNG)), 1)


def test_storing_twice_is_storing_once() -> None:
    blobs, manifest, events = MemoryBlobs(), MemoryAttachmentManifest(), Told()
    raw = with_files(("mug.png", PNG), ("x.exe", b"MZ\0"))
    for position in (0, 1, 0):
        store_attachment("e1", raw, position, blobs, manifest, events)
    photo, program = manifest.of("e1")
    assert isinstance(photo, Attachment)
    assert blobs.get(photo.digest) == PNG
    assert isinstance(program, RefusedAttachment)
    assert [event.kind for event in events] == ["AttachmentStored", "AttachmentRefused", "AttachmentStored"]
