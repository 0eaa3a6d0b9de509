"""What a file is, told by its bytes; names and declared types are only what somebody claims."""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass

from webordinary.model.mail import AttachmentKind


@dataclass(frozen=True, slots=True)
class FileType:
    """A kind of file we accept, and the ending it gets."""

    media_type: str
    kind: AttachmentKind
    ending: str


_IMAGE, _DOCUMENT = AttachmentKind.IMAGE, AttachmentKind.DOCUMENT
PNG = FileType("image/png", _IMAGE, ".png")
JPEG = FileType("image/jpeg", _IMAGE, ".jpg")
GIF = FileType("image/gif", _IMAGE, ".gif")
WEBP = FileType("image/webp", _IMAGE, ".webp")
AVIF = FileType("image/avif", _IMAGE, ".avif")
PDF = FileType("application/pdf", _DOCUMENT, ".pdf")
DOCX = FileType("application/vnd.openxmlformats-officedocument.wordprocessingml.document", _DOCUMENT, ".docx")
XLSX = FileType("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", _DOCUMENT, ".xlsx")
ODT = FileType("application/vnd.oasis.opendocument.text", _DOCUMENT, ".odt")
TEXT = FileType("text/plain", _DOCUMENT, ".txt")
CSV = FileType("text/csv", _DOCUMENT, ".csv")
MARKDOWN = FileType("text/markdown", _DOCUMENT, ".md")

_MAGIC = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), PNG),
    (re.compile(rb"\xff\xd8\xff"), JPEG),
    (re.compile(rb"GIF8[79]a"), GIF),
    (re.compile(rb"RIFF....WEBP", re.S), WEBP),
    (re.compile(rb"....ftyp(?:avif|avis)", re.S), AVIF),
    (re.compile(rb"%PDF-"), PDF),
)
_ZIPPED = (("word/document.xml", DOCX), ("xl/workbook.xml", XLSX))
_TEXT_ENDINGS = {".csv": CSV, ".md": MARKDOWN, ".markdown": MARKDOWN}
_ACTIVE = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*<(?:\?xml|!doctype|svg|html|script|!--)", re.I)

# Refusals worth more than "we cannot use this".
_REFUSED = (
    (_ACTIVE, "it is a web or SVG file, which can carry programs; send drawings as PNG, JPEG or PDF"),
    (re.compile(rb"x\x9f\x3e\x22"), "Outlook packed it as winmail.dat; send the mail as plain text or HTML"),
    (re.compile(rb"MZ|\x7fELF|#!|\xca\xfe\xba\xbe"), "it is a program, and we take none"),
    (
        re.compile(rb"....ftyp(?:heic|heix|mif1)", re.S),
        "it is a HEIC photo; send it as JPEG (a phone can convert it)",
    ),
    (
        re.compile(rb"II\*\0|MM\0\*|BM"),
        "its picture format does not work on websites; send it as JPEG or PNG",
    ),
    (re.compile(rb"\xd0\xcf\x11\xe0"), "it is an old Office file; save it as .docx, .xlsx or PDF"),
    (
        re.compile(rb"PK\x03\x04|Rar!|7z\xbc\xaf|\x1f\x8b"),
        "it is an archive; send the files in it one by one",
    ),
)
_ANYTHING_ELSE = "we cannot use files of its kind; send pictures (JPEG, PNG, GIF, WebP, AVIF), PDF, Word or text"


def sniff(data: bytes, name: str) -> FileType | str:
    """The type of a file, or the reason why we do not take it."""
    head = data[:64]
    if known := next((kind for pattern, kind in _MAGIC if pattern.match(head)), None):
        return known
    if head.startswith(b"PK\x03\x04") and (office := _office(data)):
        return office
    if refused := next((reason for pattern, reason in _REFUSED if pattern.match(head)), None):
        return refused
    if _is_text(data):
        ending = "." + name.lower().rpartition(".")[2]
        return _TEXT_ENDINGS.get(ending, TEXT)
    return _ANYTHING_ELSE


def _office(data: bytes) -> FileType | None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        return None
    if any(name.rpartition("/")[2].lower() == "vbaproject.bin" for name in names):
        return None
    if known := next((kind for inside, kind in _ZIPPED if inside in names), None):
        return known
    return ODT if data[30:].startswith(b"mimetype" + ODT.media_type.encode()) else None


def _is_text(data: bytes) -> bool:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return not any(ord(char) < 32 and char not in "\t\n\r\f" for char in text)
