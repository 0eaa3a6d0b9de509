"""The header fields of a mail, read from bytes: bounded, linear in time, and never raising.

The standard library's header classes take seconds and gigabytes on hostile headers; we need a handful of
fields and read these ourselves.

Lines end with CRLF, as RFC 5322 and DKIM verifiers read them. Other programs also end a line at a bare CR or LF, or a
string at a NUL: a header with one of these says different things to different readers, so `Headers.defect` names it
and its sender is not believed.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import hashlib
import quopri
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import groupby
from operator import itemgetter

from webordinary.mail.addresses import is_address
from webordinary.model.text import clean

_ALIASES = {
    "us-ascii": "utf-8",  # what claims to be ASCII and is not, is UTF-8 nowadays
    "ascii": "utf-8",
    "iso-8859-1": "cp1252",  # as browsers do: the C1 controls of Latin-1 are never meant
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "unknown-8bit": "utf-8",
    "default": "utf-8",
    "utf8mb4": "utf-8",
    "iso-8859-8-i": "iso-8859-8",
    "iso-8859-8-e": "iso-8859-8",
    "ks_c_5601-1987": "cp949",
    "x-gbk": "gbk",
    "gb2312": "gb18030",
    "cp-850": "cp850",
    "windows-31j": "cp932",
    "shift_jis": "cp932",
    "x-sjis": "cp932",
    "unicode-1-1-utf-7": "utf-7",
}

_WESTERN = {"cp1252", "windows-1252", "iso-8859-15"}


def decode(data: bytes, charset: str) -> str:
    """Decode without ever failing; a byte that does not fit spoils only itself."""
    name = charset.strip().strip("\"'").lower()
    name = _ALIASES.get(name, name)
    if _JIS_ESCAPE.search(data) and (name in ("", "utf-8") or name.startswith("iso-2022-jp")):
        return _decode_jis(data)
    declared, utf8 = _text_codec(name) or _text_codec("utf-8"), _text_codec("utf-8")
    # Words in Latin-1 are never valid UTF-8 by chance; programs that write UTF-8 and declare Latin-1 exist.
    for codec in (utf8, declared) if name in _WESTERN else (declared, utf8):
        with suppress(UnicodeError, ValueError):
            return codec.decode(data, "strict")[0] if codec else ""
    if declared is None or declared.name == "utf-8":
        return _decode_cyrillic(data) if _CYRILLIC_WORDS.search(data) else data.decode("utf-8", "cp1252")
    try:
        return declared.decode(data, "replace")[0]
    except (UnicodeError, ValueError):
        return data.decode("utf-8", "cp1252")


def _as_cp1252(error: UnicodeError) -> tuple[str, int]:
    """Bytes that are no UTF-8 are mostly of a program that writes Windows-1252."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error("cp1252", _as_cp1252)

_CYRILLIC_WORDS = re.compile(rb"(?:[\xb8\xc0-\xff]{3,}[ -~\s]{1,20}){2}[\xb8\xc0-\xff]{3}")
"""No Western language has three words with three accents in a row; in UTF-8 such bytes never follow one another."""


def _decode_cyrillic(data: bytes) -> str:
    """By the code page in which most letters are small: Windows-1251 and KOI8-R have them in one another's place."""
    texts = (data.decode(codec, "replace") for codec in ("cp1251", "koi8-r"))
    return max(texts, key=lambda text: sum(map(str.islower, text)))


_JIS_ESCAPE = re.compile(rb"\x1b\$[@B]")
_JIS_RUN = re.compile(rb"\x1b(\$[@B]|\([BJI])([^\x1b]*)")


def _decode_jis(data: bytes) -> str:
    """ISO-2022-JP with the characters of vendors, which the codec of that name refuses: each run by EUC-JP."""
    start = data.partition(b"\x1b")[0].decode("utf-8", "cp1252")
    return start + "".join(_decode_jis_run(*run.groups()) for run in _JIS_RUN.finditer(data))


def _decode_jis_run(escape: bytes, run: bytes) -> str:
    if escape == b"(I":  # half-width katakana
        return bytes(byte | 0x80 for byte in run).decode("cp932", "replace")
    if escape.startswith(b"("):
        return run.decode("ascii", "replace")
    double, line_end, rest = run.partition(b"\n")  # a line end returns to ASCII
    euc = bytes(byte | 0x80 if byte > 0x20 else byte for byte in double)
    return euc.decode("euc_jis_2004", "replace") + ("\n" + rest.decode("ascii", "replace") if line_end else "")


def _text_codec(name: str) -> codecs.CodecInfo | None:
    """Only real charsets: Python also knows `zip`, `hex` and `idna`, which a mail must not reach."""
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    known = getattr(codec, "_is_text_encoding", False) and codec.name not in _NOT_CHARSETS
    return codec if known else None


_NOT_CHARSETS = {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"}


HEAD_BYTES = 256 * 1024
"""The sender is judged by so many bytes; a header that is longer has a defect."""
MAX_HEADER_BYTES = 64 * 1024
MAX_FIELD_BYTES = 8 * 1024
MAX_IDS = 200

_FIELD_NAME = re.compile(rb"[!-9;-~]{1,200}[ \t]*:")
_BARE = re.compile(rb"\r(?!\n)|(?<!\r)\n|\0")
_NO_FIELD = re.compile(rb"\r\n(?![ \t]|[!-9;-~]{1,200}[ \t]*:)")
_AUTHOR_FIELD = re.compile(rb"\r\nfrom[ \t]*:", re.I)
_LINE_END = re.compile(rb"\r\n|\r|\n")
_ENCODED_WORD = re.compile(r"=\?([^?\s]{1,60})\?([bBqQ])\?([^?]*)\?=")
_ENCODED_WORDS = re.compile(r"(?:=\?[^?\s]{1,60}\?[bBqQ]\?[^?]*\?=)+")
_BETWEEN_WORDS = re.compile(r"(\?=)\s+(?==\?[^?\s]{1,60}\?[bBqQ]\?)")
_MESSAGE_ID = re.compile(r"<[^<>\s]{1,500}>")


@dataclass(frozen=True, slots=True)
class Headers:
    """Names in lower case with their unfolded values, in the order of the mail.

    Values hold no control characters, except those of From: whether they are an author's is judged there.
    """

    fields: tuple[tuple[str, str], ...]
    defect: str = ""
    """Why another program may read this header in another way; empty for a sound one."""

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of a field."""
        return tuple(value for field, value in self.fields if field == name)

    def first(self, name: str) -> str:
        """The first value of a field, or nothing."""
        return next(iter(self.all(name)), "")

    def text(self, name: str) -> str:
        """The first value of a field as people read it."""
        return decode_words(self.first(name))

    def message_ids(self, name: str) -> tuple[str, ...]:
        """The Message-IDs in a field, in order, each once."""
        found = _MESSAGE_ID.findall(" ".join(self.all(name)))
        return tuple(dict.fromkeys(found))[:MAX_IDS]


def split(raw: bytes) -> tuple[bytes, bytes]:
    """The header section and the body of a mail: before and after its first empty line."""
    end, body_at = _bounds(raw)
    return raw[:end], raw[body_at:]


def body_view(raw: bytes) -> memoryview:
    """The body of a mail, without a copy of it."""
    return memoryview(raw)[_bounds(raw)[1] :]


def _bounds(raw: bytes) -> tuple[int, int]:
    """Where the header section ends and where the body begins."""
    if raw.startswith(b"\r\n"):
        return 0, 2
    end = raw.find(b"\r\n\r\n")
    return (end, end + 4) if end >= 0 else (len(raw.removesuffix(b"\r\n")), len(raw))


def read_headers(raw: bytes) -> Headers:
    """Read the first 64 kB of header fields; the pre-scan refuses a mail with more.

    The first HEAD_BYTES + 1 bytes of a mail give the same answer as the whole.
    """
    head = raw[:HEAD_BYTES]
    block = split(head)[0]
    return Headers(tuple(_unfolded(block[:MAX_HEADER_BYTES])), _defect(head, block))


def read_fields(block: bytes) -> Headers:
    """Read the header of a part, whose lines end with CRLF or LF."""
    return Headers(tuple(_unfolded(block.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))))


def with_crlf(raw: bytes) -> bytes:
    """A mail file as SMTP carries it: a file with LF line ends gets CRLF.

    Called where files enter the system. In a header with mixed line ends the odd ones stay, so that it is held.
    """
    first_line = raw[: raw.find(b"\n") + 1]
    crlf_file = first_line.endswith(b"\r\n")
    end = b"\r\n\r\n" if crlf_file else b"\n\n"
    header, found, body = raw.partition(end)
    head = header + found if crlf_file else (header + found).replace(b"\n", b"\r\n")
    return head + _LINE_END.sub(b"\r\n", body)


def _defect(head: bytes, block: bytes) -> str:
    if len(block) == HEAD_BYTES:
        return f"its header is longer than {HEAD_BYTES // 1024} kB"
    if _BARE.search(block):
        return "its header has a bare CR, a bare LF or a NUL, which mail programs read in different ways"
    lines = b"\r\n" + block
    if block and _NO_FIELD.search(lines):
        return "its header has a line that is no header field"
    if _AUTHOR_FIELD.search(lines, MAX_HEADER_BYTES):
        return f"it names an author behind the first {MAX_HEADER_BYTES // 1024} kB of its header"
    return ""


_CHARSET = re.compile(rb"(?im)^content-type:[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*?charset=\"?([a-z0-9._-]{1,40})")


def _charset_of(block: bytes) -> str:
    """In which charset bytes of this header that are neither ASCII nor UTF-8 were written, by its Content-Type."""
    declared = None if block.isascii() else _CHARSET.search(block)
    return declared[1].decode("ascii") if declared else "utf-8"


def _unfolded(block: bytes) -> Iterator[tuple[str, str]]:
    charset = _charset_of(block)
    name, parts = "", list[bytes]()
    for line in [*block.split(b"\r\n"), b"end:"]:
        if line[:1] in (b" ", b"\t"):
            parts.append(line)
            continue
        if name:
            yield name, _value(name, b" ".join(part.strip(b" \t") for part in parts), charset)
        name, parts = "", []
        if match := _FIELD_NAME.match(line):
            name, parts = match.group()[:-1].strip().lower().decode("ascii"), [line[match.end() :]]


_PLAIN = re.compile(rb"[\t -~]*")


def _value(name: str, value: bytes, charset: str) -> str:
    # A guessed charset or a dropped control character would turn another address into a customer's.
    if name == "from" or _PLAIN.fullmatch(value):
        return value.decode("utf-8", "replace")
    return clean(_decode_raw(value, charset))


def _decode_raw(value: bytes, charset: str) -> str:
    """UTF-8 where it is, whatever the mail declares; else the declared charset."""
    try:
        return value.decode("utf-8") if not _JIS_ESCAPE.search(value) else decode(value, charset)
    except UnicodeDecodeError:
        return decode(value, charset)


def decode_words(text: str) -> str:
    """Decode `=?utf-8?q?…?=`; what cannot be decoded stays as it is."""
    if text.isascii() and text.isprintable() and "=?" not in text:
        return text[:MAX_FIELD_BYTES]
    joined = _BETWEEN_WORDS.sub(r"\1", text[:MAX_FIELD_BYTES])
    return clean(_ENCODED_WORDS.sub(_decode_run, joined))


def _decode_run(match: re.Match[str]) -> str:
    """Neighbours of one charset are decoded together: some programs break a character over two words."""
    words = [(word[1].partition("*")[0].lower(), word) for word in _ENCODED_WORD.finditer(match.group())]
    runs = ((charset, [word for _, word in run]) for charset, run in groupby(words, key=itemgetter(0)))
    return "".join(_decode_words(charset, run) for charset, run in runs)


def _decode_words(charset: str, words: Sequence[re.Match[str]]) -> str:
    try:
        return decode(b"".join(_payload_of(word) for word in words), charset)
    except (binascii.Error, ValueError):
        return "".join(word.group() if len(words) == 1 else _decode_words(charset, [word]) for word in words)


def _payload_of(word: re.Match[str]) -> bytes:
    charset, encoding, payload = word.groups()
    data = _bytes_of(payload, charset)
    if encoding in "bB":
        return base64.b64decode(data + b"=" * (-len(data) % 4))
    return quopri.decodestring(data, header=True)


def _bytes_of(payload: str, charset: str) -> bytes:
    """Some programs put raw bytes of the charset into an encoded word; these were read as text before."""
    try:
        return payload.encode("ascii" if payload.isascii() else charset)
    except (LookupError, UnicodeError):
        return payload.encode("utf-8", "replace")


MAX_AUTHOR = 1000
MAX_DATE = 200
# Stricter than RFC 5322, and than the standard library: one address, and no second reading of it.
_AUTHOR = re.compile(
    r"""(?ax)
    (?: "(?P<quoted>(?:[^"\\]|\\.)*)" | (?P<name>[^<>"@]*|[^<>",;:()]*) ) \s* <\s*(?P<bracketed>[^<>\s]+)\s*>
    | (?P<bare>[^<>\s"]+) \s* (?: \((?P<comment>[^()]*)\) )?
    """
)
_ESCAPED = re.compile(r"\\(.)")
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_INVISIBLE = ("C", "Z")  # Unicode categories: controls, formats, unassigned; spaces
_TRACE = {
    "received",
    "return-path",
    "delivered-to",
    "x-original-to",
    "received-spf",
    "authentication-results",
    "x-ses-spam-verdict",
    "x-ses-virus-verdict",
    "x-ses-receipt",
    "x-ses-dkim-signature",
}


def message_id_of(raw: bytes, headers: Headers) -> str:
    """The Message-ID; where a mail has none, one that follows from its content."""
    named = headers.message_ids("message-id")
    if named:
        return named[0]
    digest = hashlib.sha256()
    for name, value in headers.fields:
        if name not in _TRACE:  # a second delivery of the same mail differs in these
            digest.update(f"{name}:{value}\n".encode())
    digest.update(body_view(raw))
    return f"<{digest.hexdigest()[:40]}@message-id.invalid>"


@dataclass(frozen=True, slots=True)
class Author:
    """Address and display name of the one author; no address where there is none, or more than one."""

    address: str = ""
    name: str = ""
    doubt: str = ""
    """Why the header may name another author to another program; then there is no address."""


def author_of(headers: Headers) -> Author:
    """Read From. Reply-To, Sender and encoded words never name an author: identity comes from a plain From alone."""
    if headers.defect:
        return Author(doubt=headers.defect)
    fields = headers.all("from")
    if any(map(_CONTROLS.search, fields)):
        return Author(doubt="its From has control characters")
    author = _AUTHOR.fullmatch(fields[0].strip(" \t")) if len(fields) == 1 and len(fields[0]) <= MAX_AUTHOR else None
    address = (author["bracketed"] or author["bare"]) if author else ""
    if not address.isascii() and not _one_spelling(address):
        return Author(doubt="the address in its From has characters that look like others")
    if author is None or not is_address(address):
        return Author()
    name = author["quoted"] or author["name"] or author["comment"] or ""
    return Author(address.lower(), decode_words(_ESCAPED.sub(r"\1", name).strip())[:200])


def _one_spelling(address: str) -> bool:
    """No normalisation (NFKC, IDNA) turns this address into another; nothing in it is invisible."""
    domain = address.rpartition("@")[2].lower()
    try:
        stays = domain.encode("idna").decode("idna") == domain
    except UnicodeError:
        return False
    hidden = any(char == "\ufffd" or unicodedata.category(char).startswith(_INVISIBLE) for char in address)
    return stays and not hidden and unicodedata.normalize("NFKC", address) == address


def sent_at_of(headers: Headers) -> datetime | None:
    """When the sender says it was written."""
    try:
        sent_at = parsedate_to_datetime(headers.first("date")[:MAX_DATE])
        return (sent_at if sent_at.tzinfo else sent_at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
