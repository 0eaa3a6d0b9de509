"""The charset of a page: read in its own, kept byte for byte where it is not edited, and shown to people as letters."""

from __future__ import annotations

import codecs
import re

UTF8 = "utf-8"
_LIKELIEST = "cp1252"
_SEARCHED = 1_024  # bytes, as far as browsers look
_DECLARED = re.compile(rb"<(?:meta\b|\?xml\b)[^>]{1,300}?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.I)
_KNOWN = ("iso8859", "cp125", "cp932", "cp949", "koi8", "mac", "shift_jis", "euc", "gb", "big5", "tis-620")
_BYTE = re.compile("[\udc80-\udcff]")
_FENCES = (b"---", b"+++")  # of front matter
_MAX_SHOWN = 8_000


def decoded(name: str, raw: bytes) -> tuple[str, str]:
    """A charset and the text in it: of a plain HTML page that neither is UTF-8 nor says so its own, else UTF-8.

    Its own is the one that it declares, if that gives the same bytes back, else the likeliest. Letters in valid UTF-8
    are that, whatever is declared. A byte that is no letter becomes a lone surrogate, which `encoded` turns into that
    byte again.
    """
    declared = _declared(raw)
    if not _is_plain_html(name, raw) or declared == UTF8:
        return UTF8, raw.decode(UTF8, "surrogateescape")
    if _is_utf8(raw) and (declared is None or not raw.isascii()):
        return UTF8, raw.decode(UTF8)
    if declared is not None:
        text = raw.decode(declared, "surrogateescape")
        if encoded(text, declared) == raw:
            return declared, text
    return _LIKELIEST, raw.decode(_LIKELIEST, "surrogateescape")


def encoded(text: str, charset: str) -> bytes:
    """The bytes of a text; a letter that the charset does not have becomes a character reference."""
    return text.encode(charset, "webordinary.bytes-and-references")


def as_references(text: str) -> str:
    """The text with a character reference for all that is not ASCII: right in whichever charset it is read."""
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def shown(text: str) -> str:
    """A text for people: stray bytes of a page as the letters that they most likely are, and not without end."""
    text = _BYTE.sub(lambda byte: bytes([ord(byte[0]) - 0xDC00]).decode(_LIKELIEST, "replace"), text)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


def _is_plain_html(name: str, raw: bytes) -> bool:
    """All others are read by a generator, and those read UTF-8 alone."""
    return name.endswith((".html", ".htm")) and not raw.startswith(_FENCES)


def _declared(raw: bytes) -> str | None:
    if raw.startswith(codecs.BOM_UTF8):
        return UTF8
    found = _DECLARED.search(raw[:_SEARCHED])
    if found is None:
        return None
    try:
        name = codecs.lookup(found[1].decode("ascii")).name
    except (LookupError, UnicodeDecodeError):
        return None
    if name in ("ascii", "iso8859-1"):
        return _LIKELIEST  # browsers read these so
    return name if name.startswith(_KNOWN) else UTF8 if name == UTF8 else None


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode(UTF8)
    except UnicodeDecodeError:
        return False
    return True


def _byte_or_reference(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end]
    return b"".join(
        bytes([ord(c) - 0xDC00]) if _BYTE.match(c) else as_references(c).encode() for c in letters
    ), error.end


codecs.register_error("webordinary.bytes-and-references", _byte_or_reference)
