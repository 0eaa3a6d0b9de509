from __future__ import annotations

import base64
import io
import zipfile
import zlib

import pytest

from tests.fakes.blobs import MemoryBlobs
from tests.fakes.events import EventRecorder
from tests.photos import HEIC, opened, picture
from tests.unit.mail.letters import JPEG, NOON, PNG, SCOTT, multipart
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.mails import SqliteAttachmentManifest
from webordinary.mail.parsing.attachments import as_sent, extract, safe_stem, store_attachments
from webordinary.mail.parsing.photos import prepared
from webordinary.mail.ports import ExtractedFile
from webordinary.mail.write import CustomerMail, OutgoingFile, write_mail
from webordinary.model.mail import Attachment, AttachmentKind, RefusedAttachment


def with_files(*files: tuple[str, bytes]) -> bytes:
    attached = [OutgoingFile(name, "application/octet-stream", data) for name, data in files]
    return write_mail(CustomerMail(SCOTT, "edit@localhost", "files", "see attached", attached), NOON)


def office(*names: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return packed.getvalue()


DOCX = ("[Content_Types].xml", "word/document.xml")


def odt(*names: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        for name in names:
            archive.writestr(name, "x")
    return packed.getvalue()


def pdf(content: bytes) -> bytes:
    return b"%PDF-1.7\n1 0 obj\n" + content + b"\nendobj\n%%EOF"


def packed_pdf(content: bytes, filters: bytes = b"/FlateDecode", level: int = 9) -> bytes:
    """A PDF whose objects lie in a compressed stream."""
    about = b"<< /Type /ObjStm /N 1 /First 4 /Filter " + filters + b" >>\nstream\n"
    return pdf(about + zlib.compress(content, level) + b"\nendstream")


@pytest.mark.parametrize(
    ("name", "data", "stored_as", "media_type"),
    [
        ("mug.PNG", PNG, "mug.png", "image/png"),
        ("mug.exe", JPEG, "mug.jpg", "image/jpeg"),
        ("anim", picture("GIF"), "anim.gif", "image/gif"),
        ("w", picture("WEBP"), "w.webp", "image/webp"),
        ("a", picture("AVIF"), "a.avif", "image/avif"),
        ("IMG_1.HEIC", HEIC.read_bytes(), "img_1.jpg", "image/jpeg"),
        ("menu.pdf", b"%PDF-1.7 ...", "menu.pdf", "application/pdf"),
        ("prices.csv", b"mug,12\n", "prices.csv", "text/csv"),
        ("About.md", b"# About\n", "about.md", "text/markdown"),
        ("note", "Grüße\n".encode(), "note.txt", "text/plain"),
        ("l.docx", office("[Content_Types].xml", "word/document.xml"), "l.docx", None),
        ("l.xlsx", office("[Content_Types].xml", "xl/workbook.xml"), "l.xlsx", None),
        ("l.odt", odt(), "l.odt", None),
        ("s.odt", odt("META-INF/manifest.xml", "content.xml"), "s.odt", None),
        ("chart.docx", office(*DOCX, "word/embeddings/Microsoft_Excel_Sheet1.xlsx"), "chart.docx", None),
        ("title.pdf", pdf(b"<</Title (HTML/JavaScript for all) /OpenAction [3 0 R /Fit]>>"), "title.pdf", None),
        ("packed.pdf", packed_pdf(b"1 0 <</Type /Page>>"), "packed.pdf", None),
    ],
)
def test_a_file_is_what_its_bytes_say(name: str, data: bytes, stored_as: str, media_type: str | None) -> None:
    found = next(extract(with_files((name, data)), prepared))
    assert isinstance(found, ExtractedFile)
    assert found.name == stored_as
    assert found.data == data or found.kind is AttachmentKind.IMAGE
    assert media_type is None or found.media_type == media_type


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("logo.svg", b"<svg xmlns='x'><script>alert(1)</script></svg>", "can carry programs"),
        ("photo.png", b"\n<!DOCTYPE html><script>", "can carry programs"),
        ("setup.jpg", b"MZ\x90\0", "a program"),
        ("run.txt", b"#!/bin/sh\nrm", "a program"),
        ("winmail.dat", b"x\x9f>\x22\0\0", "plain text or HTML"),
        ("IMG_1.HEIC", b"\0\0\0\x20ftypheic....", "cannot read this picture"),
        ("cut.jpg", JPEG[:300], "cannot read this picture"),
        ("all.zip", office("a.txt"), "one by one"),
        ("macro.docm", office(*DOCX, "word/vbaProject.bin"), "macros or objects"),
        (
            "xlm.xlsx",
            office("[Content_Types].xml", "xl/workbook.xml", "xl/macrosheets/sheet1.xml"),
            "macros or objects",
        ),
        ("ole.docx", office(*DOCX, "word/embeddings/oleObject1.bin"), "macros or objects"),
        ("control.docx", office(*DOCX, "word/activeX/activeX1.xml"), "macros or objects"),
        ("jar.docx", office(*DOCX, "META-INF/MANIFEST.MF", "Main.class"), "macros or objects"),
        ("jar.docx", office("word/document.xml", "Main.class"), "one by one"),
        ("macro.odt", odt("Basic/Standard/Module1.xml"), "macros or objects"),
        ("js.pdf", pdf(b"<</S/JavaScript/JS(app.alert(1))>>"), "scripts"),
        ("escaped.pdf", pdf(b"<< /S /J#61va#53cript /JS (x) >>"), "scripts"),
        ("launch.pdf", pdf(b"<< /S\n/Launch /F (calc.exe) >>"), "scripts"),
        ("form.pdf", pdf(b"<< /AcroForm << /XFA [1 0 R] >> >>"), "scripts"),
        ("packed.pdf", packed_pdf(b"1 0 <</S /JavaScript /JS (x)>>"), "scripts"),
        ("stored.pdf", packed_pdf(b"1 0 (endstream) <</S /JavaScript>>", level=0), "scripts"),
        ("bomb.pdf", packed_pdf(b"1 0 " + bytes(9_000_000)), "cannot look into"),
        ("locked.pdf", packed_pdf(b"1 0 x") + b"trailer << /Encrypt 5 0 R >>", "cannot look into"),
        ("hex.pdf", packed_pdf(b"1 0 x", filters=b"[/ASCIIHexDecode /FlateDecode]"), "cannot look into"),
        ("thing.bin", b"\0\1\2\3", "we cannot use files of its kind"),
    ],
)
def test_a_file_we_do_not_take_is_refused_with_what_to_do(name: str, data: bytes, words: str) -> None:
    found = next(extract(with_files((name, data)), prepared))
    assert isinstance(found, RefusedAttachment)
    assert found.name == name
    assert words in found.reason


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("Bäckerei außen.JPG", "backerei-aussen"),
        ("Smørrebrød & Łódź.png", "smorrebrod-lodz"),
        ("../../etc/passwd", "passwd"), ("C:\\photos\\Mug 1.JPG", "mug-1"), ("Töpferei.png", "topferei"),
        ("", "file"), ("...", "file"), ("con.png", "file-con"), ("陶器.png", "file"), (".htaccess", "htaccess"),
        ("a" * 300 + ".png", "a" * 80), ("x\r\ny.png", "x-y"),
    ],
)  # fmt: skip
def test_names_are_safe(name: str, stem: str) -> None:
    assert safe_stem(name, "file") == stem


def test_files_of_one_name_get_names_of_their_own() -> None:
    raw = with_files(("image.png", PNG), ("image.png", PNG), ("image-2.png", PNG), ("IMAGE.jpg", JPEG))
    found = list(extract(raw, prepared))
    assert [file.name for file in found] == ["image.png", "image-2.png", "image-2-2.png", "image-3.jpg"]


def test_a_cid_image_without_a_name_is_taken() -> None:
    head = "Content-Type: image/jpeg\r\nContent-ID: <x>\r\nContent-Transfer-Encoding: base64"
    found = next(extract(multipart(("Content-Type: text/plain", b"hi"), (head, base64.b64encode(JPEG))), prepared))
    assert isinstance(found, ExtractedFile)
    assert (found.name, found.kind) == ("file.jpg", AttachmentKind.IMAGE)


@pytest.mark.parametrize(
    ("name", "sent_as"),
    [
        ("Моя кружка.jpg", "Моя кружка.jpg"), ("C:\\Fotos\\陶器.jpg", "陶器.jpg"), ("a\u202egpj.exe", "a gpj.exe"),
        ("x\r\n# Rules: y.jpg", "x # Rules: y.jpg"), ("ж" * 300, "ж" * 80), ("", ""),
    ],
)  # fmt: skip
def test_the_customers_own_name_of_a_file_is_kept_on_one_line(name: str, sent_as: str) -> None:
    assert as_sent(name) == sent_as


def test_a_photo_of_which_no_copy_can_be_made_still_comes() -> None:
    found = next(extract(with_files(("mug.jpg", JPEG)), prepared, lambda *_: "takes too long"))
    assert isinstance(found, ExtractedFile)
    assert (found.name, found.webp) == ("mug.jpg", b"")


def test_a_webp_copy_is_kept_with_its_photo() -> None:
    blobs, manifest = MemoryBlobs(), SqliteAttachmentManifest(MemoryDatabase())
    head = "Content-Disposition: attachment; filename*=utf-8''%D0%92%D0%B0%D0%B7%D0%B0.jpg"
    raw = multipart(
        ("Content-Type: text/plain", b"hi"), (f"{head}\r\nContent-Transfer-Encoding: base64", base64.b64encode(JPEG))
    )
    files = extract(raw, prepared, lambda *_: b"the copy")
    store_attachments("e1", files, blobs, manifest, EventRecorder())
    (photo,) = manifest.of("e1")
    assert isinstance(photo, Attachment)
    assert (photo.sent_as, blobs.get(photo.webp)) == ("Ваза.jpg", b"the copy")


def test_storing_twice_is_storing_once() -> None:
    blobs, manifest, events = MemoryBlobs(), SqliteAttachmentManifest(MemoryDatabase()), EventRecorder()
    raw = with_files(("mug.png", PNG), ("x.exe", b"MZ\0"))
    for _ in range(2):
        store_attachments("e1", extract(raw, prepared), blobs, manifest, events)
    photo, program = manifest.of("e1")
    assert isinstance(photo, Attachment)
    assert opened(blobs.get(photo.digest)).size == (64, 48)
    assert isinstance(program, RefusedAttachment)
    assert [event.kind for event in events] == ["AttachmentStored", "AttachmentRefused"] * 2
