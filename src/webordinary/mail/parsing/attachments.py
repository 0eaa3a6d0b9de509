"""Files that came with a mail: bounded, told by their bytes, named safely, or refused in words."""

from __future__ import annotations

import codecs
import io
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from webordinary.mail.parsing.parts import Part, take_apart
from webordinary.mail.ports import AttachmentManifest, Blobs, ExtractedFile
from webordinary.model.events import Event, EventKind, Events
from webordinary.model.mail import Attachment, AttachmentKind, RefusedAttachment

PDF_REFUSED = "it is a PDF with scripts in it; print it to a new PDF and send that"
PDF_OPAQUE = "it is a PDF that we cannot look into; print it to a new PDF, without a password, and send that"
OFFICE_REFUSED = "it carries macros or objects, which can be programs; save it as PDF, or without them"

_PDF_ACTIVE = re.compile(
    rb"(?:/S|/Subtype|[\s<>\[\]()])/(?:JavaScript|Launch|RichMedia)(?![A-Za-z0-9])|/XFA\s*[\[\d]"
)  # not in "(HTML/JavaScript)", which is a title
_ACTIVE_WORDS = (b"/JavaScript", b"/Launch", b"/RichMedia", b"/XFA")
_ESCAPES = 50_000
_ESCAPED = re.compile(rb"#([0-9A-Fa-f]{2})")
_STREAM = re.compile(rb"stream\r?\n")
_OBJECTS = re.compile(rb"[\s\d%]")
"""How a stream of objects begins: with their numbers."""
_OTHER_FILTERS = re.compile(rb"/(?:ASCII85Decode|ASCIIHexDecode|LZWDecode|RunLengthDecode|Crypt|A85|AHx|LZW|RL)\b")
_AROUND = 400
_STREAMS = 20_000
_STREAM_BYTES = 8_000_000
_ALL_BYTES = 32_000_000
_CHUNK = 65_536
_OFFICE_ACTIVE = re.compile(
    r"(?:^|/)(?:vbaproject\.bin|vbadata\.xml|macrosheets/|activex/|embeddings/(?!.*\.xlsx$)|basic/|scripts/)"
    r"|^meta-inf/(?!manifest\.xml$|documentsignatures\.xml$)|\.(?:class|jar|exe|dll|js|vbs|hta|lnk|bat|cmd|ps1|sh)$",
)


def refusal_of_office(names: Iterable[str]) -> str:
    """Why an Office file with these parts is refused; empty if it may pass.

    `embeddings/*.xlsx` are the numbers behind a chart. A `META-INF` with more than OpenDocument's own files is a jar.
    """
    return OFFICE_REFUSED if any(_OFFICE_ACTIVE.search(name.lower()) for name in names) else ""


def refusal_of_pdf(data: bytes) -> str:
    """Why a PDF file is refused; empty if it may pass.

    Reads the plain text and the compressed streams of objects, both with escaped names. What cannot be read (encrypted
    or otherwise packed objects, more than the bound) is refused.
    """
    plain, escapes = _ESCAPED.subn(_written_out, data, _ESCAPES)
    packed = [plain[max(0, at - _AROUND) : at + _AROUND] for at in islice(_positions(plain, b"/ObjStm"), _STREAMS)]
    if _is_active(plain):
        return PDF_REFUSED
    if escapes == _ESCAPES or len(packed) == _STREAMS:
        return PDF_OPAQUE
    if packed and (b"/Encrypt" in plain or any(map(_OTHER_FILTERS.search, packed))):
        return PDF_OPAQUE
    return _refusal_of_objects(data) if packed else ""


def _refusal_of_objects(data: bytes) -> str:
    left = _ALL_BYTES
    for content in _object_streams(data):
        left -= len(content)
        if _is_active(_ESCAPED.sub(_written_out, content, _ESCAPES)):
            return PDF_REFUSED
        if left < 0 or len(content) >= _STREAM_BYTES:
            return PDF_OPAQUE
    return ""


def _is_active(content: bytes) -> bool:
    """The words first: they are found much faster than the pattern."""
    return any(word in content for word in _ACTIVE_WORDS) and bool(_PDF_ACTIVE.search(content))


def _written_out(escaped: re.Match[bytes]) -> bytes:
    return bytes.fromhex(escaped[1].decode())


def _positions(data: bytes, name: bytes) -> Iterator[int]:
    at = data.find(name)
    while at >= 0:
        yield at
        at = data.find(name, at + 1)


def _object_streams(data: bytes) -> Iterator[bytes]:
    """The content of each compressed stream that may hold objects; of too many, one that is too large to be read."""
    for count, found in enumerate(_STREAM.finditer(data)):
        if count == _STREAMS:
            yield bytes(_STREAM_BYTES)
            return
        with suppress(zlib.error):
            begin = zlib.decompressobj().decompress(data[found.end() : found.end() + 1024], 64)
            if _OBJECTS.match(begin):
                yield _inflated(data, found.end())


def _inflated(data: bytes, at: int) -> bytes:
    """One compressed stream up to the bound. Ends where the compressed data do, whatever the file says."""
    inflater, content = zlib.decompressobj(), bytearray()
    with suppress(zlib.error):  # damaged further on: what came out counts
        while not inflater.eof and at < len(data) and len(content) < _STREAM_BYTES:
            content += inflater.decompress(data[at : at + _CHUNK], _STREAM_BYTES - len(content))
            at += _CHUNK
    return bytes(content)


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
HEIC = FileType("image/heic", _IMAGE, ".heic")
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
    (re.compile(rb"....ftyp(?:avi[fs]|m(?:if|sf)1.{4}(?:.{4})*?avi[fs])", re.S), AVIF),
    (re.compile(rb"....ftyp(?:he(?:ic|ix|im|is|vc|vx|vm|vs)|m(?:if|sf)1)", re.S), HEIC),
    (re.compile(rb"%PDF-"), PDF),
)
_CONTENT_TYPES = "[Content_Types].xml"
_ZIPPED = (("word/document.xml", DOCX), ("xl/workbook.xml", XLSX))
_TEXT_ENDINGS = {".csv": CSV, ".md": MARKDOWN, ".markdown": MARKDOWN}
_ACTIVE = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*<(?:\?xml|!doctype|svg|html|script|!--)", re.I)

# Refusals worth more than "we cannot use this".
_ELSEWHERE = {
    "message/external-body": "it is not in the mail, which only says where it is; attach the file itself",
    "message/partial": "it is a piece of a mail that was cut in several; send the mail in one piece",
}
_REFUSED = (
    (re.compile(rb"\s*-----BEGIN PGP MESSAGE-----"), "it is encrypted, and we have no key to it; send it unencrypted"),
    (_ACTIVE, "it is a web or SVG file, which can carry programs; send drawings as PNG, JPEG or PDF"),
    (re.compile(rb"x\x9f\x3e\x22"), "Outlook packed it as winmail.dat; send the mail as plain text or HTML"),
    (re.compile(rb"MZ|\x7fELF|#!|\xca\xfe\xba\xbe"), "it is a program, and we take none"),
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
MAX_ARCHIVED = 5000
"""Files in an Office document; reading the names of a million takes seconds."""
_PIECE = 1024 * 1024
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f]")
_ANYTHING_ELSE = "we cannot use files of its kind; send pictures (JPEG, PNG, GIF, WebP, AVIF, HEIC), PDF, Word or text"


def sniff(data: bytes, name: str) -> FileType | str:
    """The type of a file, or the reason why we do not take it."""
    head = data[:64]
    if known := next((kind for pattern, kind in _MAGIC if pattern.match(head)), None):
        return (refusal_of_pdf(data) if known is PDF else "") or known
    if head.startswith(b"PK\x03\x04") and (office := _office(data)):
        return office
    if refused := next((reason for pattern, reason in _REFUSED if pattern.match(head)), None):
        return refused
    if _is_text(data):
        ending = "." + name.lower().rpartition(".")[2]
        return _TEXT_ENDINGS.get(ending, TEXT)
    return _ANYTHING_ELSE


def _office(data: bytes) -> FileType | str | None:
    if data.count(b"PK\x01\x02") > MAX_ARCHIVED:
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        return None
    known = next((kind for inside, kind in _ZIPPED if {inside, _CONTENT_TYPES} <= names), None)
    if known is None and data.startswith(b"mimetype" + ODT.media_type.encode(), 30):
        known = ODT
    return known and (refusal_of_office(names) or known)


def _is_text(data: bytes) -> bool:
    """UTF-8 without control characters; decoded in pieces, as the text of a file takes up to four times its bytes."""
    if _CONTROLS.search(data):
        return False
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(data), _PIECE):
            decoder.decode(data[start : start + _PIECE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


MAX_ATTACHMENTS = 20
MAX_ATTACHMENT_BYTES = 25 * 1024 * 1024
MAX_NAME = 80
MAX_LISTED = 20

_UNSAFE = re.compile(r"[^\w.-]+")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.I)


def accepted_count(files: Sequence[Part]) -> int:
    """How many files of a mail we look at."""
    return min(len(files), MAX_ATTACHMENTS)


def surplus(files: Sequence[Part]) -> tuple[RefusedAttachment, ...]:
    """The files beyond the bound, each with its reason."""
    reason = f"a mail may carry {MAX_ATTACHMENTS} files; send the others in a second mail"
    return tuple(RefusedAttachment(_shown(part.name), reason) for part in files[MAX_ATTACHMENTS:][:MAX_LISTED])


PreparePhoto = Callable[[bytes, FileType], bytes | str]
"""Makes a picture fit for a website, or says why not; `photos.prepared` or `webp_copy`, in whatever process."""


def extract(
    raw: bytes, prepare: PreparePhoto, copy: PreparePhoto | None = None
) -> Iterator[ExtractedFile | RefusedAttachment]:
    """The files of a mail in their order, one at a time; the same each time. `copy` makes the WebP copies."""
    files = take_apart(raw).all_files[:MAX_ATTACHMENTS]
    return (_extracted(part, stem, prepare, copy) for part, stem in zip(files, _unique_stems(files), strict=True))


def _extracted(
    part: Part, stem: str, prepare: PreparePhoto, copy: PreparePhoto | None
) -> ExtractedFile | RefusedAttachment:
    data = part.data
    if reason := _ELSEWHERE.get(part.media_type) or ("" if data.strip() else "it is empty; send it again"):
        return RefusedAttachment(_shown(part.name), reason)
    if len(data) > MAX_ATTACHMENT_BYTES:
        size, allowed = len(data) // 2**20, MAX_ATTACHMENT_BYTES // 2**20
        return RefusedAttachment(_shown(part.name), f"it has {size} MB and we take {allowed} MB; send it smaller")
    found = sniff(data, part.name)
    content = found if isinstance(found, str) else prepare(data, found) if found.kind is _IMAGE else data
    if isinstance(found, str) or isinstance(content, str):
        return RefusedAttachment(_shown(part.name), str(content))
    published = JPEG if found is HEIC else found
    webp = copy(content, published) if copy and published.kind is _IMAGE else ""
    return ExtractedFile(
        stem + published.ending,
        published.media_type,
        published.kind,
        content,
        as_sent(part.name),
        webp if isinstance(webp, bytes) else b"",
    )


def store_attachments(
    email_id: str,
    files: Iterable[ExtractedFile | RefusedAttachment],
    blobs: Blobs,
    manifest: AttachmentManifest,
    events: Events,
) -> None:
    """Keep the bytes of each file, then its line in the manifest; again is harmless."""
    for position, found in enumerate(files):
        if isinstance(found, RefusedAttachment):
            manifest.save(email_id, position, found)
            data = {"name": found.name, "reason": found.reason}
            events.emit(Event(EventKind.ATTACHMENT_REFUSED, email_id=email_id, data=data))
            continue
        digest = blobs.put(found.data)
        copy = blobs.put(found.webp) if found.webp else ""
        stored = Attachment(found.name, found.media_type, found.kind, len(found.data), digest, found.sent_as, copy)
        manifest.save(email_id, position, stored)
        shown = {"name": stored.name, "media_type": stored.media_type, "size": stored.size}
        events.emit(Event(EventKind.ATTACHMENT_STORED, email_id=email_id, data=shown))


_LATIN = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "\u0131": "i"}
)
"""Letters without an accent that could be taken off."""


def safe_stem(name: str, fallback: str) -> str:
    """A file name without folders, spaces, ending or surprises."""
    base = name.replace("\\", "/").rpartition("/")[2]
    latin = (base.rpartition(".")[0] or base).casefold().translate(_LATIN)
    plain = unicodedata.normalize("NFKD", latin).encode("ascii", "ignore").decode()
    stem = _UNSAFE.sub("-", plain).strip("-._")[:MAX_NAME].lower()
    return f"{fallback}-{stem}".rstrip("-") if not stem or _RESERVED.match(stem) else stem


def _unique_stems(files: Sequence[Part]) -> list[str]:
    """Two photos called image.png become image and image-2."""
    taken: list[str] = []
    for part in files:
        first = safe_stem(part.name, "file")
        numbered = (f"{first}-{number}" for number in range(2, MAX_ATTACHMENTS + 2))
        taken.append(next(name for name in (first, *numbered) if name not in taken))
    return taken


def picture_names(files: Sequence[Part]) -> dict[str, str]:
    """By Content-ID: the name of a file as the agent sees it, without its ending."""
    named = files[:MAX_ATTACHMENTS]
    return {part.content_id: stem for part, stem in zip(named, _unique_stems(named), strict=True) if part.content_id}


def as_sent(name: str) -> str:
    """The customer's own name for a file, on one line: `safe_stem` keeps nothing of other scripts."""
    base = unicodedata.normalize("NFC", name.replace("\\", "/").rpartition("/")[2][: 2 * MAX_NAME])
    return " ".join("".join(c if c.isprintable() else " " for c in base).split())[:MAX_NAME]


def _shown(name: str) -> str:
    return name[:MAX_NAME] or "a file without a name"
