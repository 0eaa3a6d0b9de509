"""Bytes to text: the declared charset if it fits, else the likeliest one."""

from __future__ import annotations

import codecs

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


def decode(data: bytes, charset: str) -> str:
    """Decode without ever failing."""
    for name in (charset.strip().strip("\"'").lower(), "utf-8"):
        codec = _text_codec(_ALIASES.get(name, name))
        if codec is None:
            continue
        try:
            return codec.decode(data, "strict")[0]
        except (UnicodeError, ValueError):
            continue
    return data.decode("cp1252", "replace")


def _text_codec(name: str) -> codecs.CodecInfo | None:
    """Only real charsets: Python also knows `zip`, `hex` and `idna`, which a mail must not reach."""
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    known = getattr(codec, "_is_text_encoding", False) and codec.name not in _NOT_CHARSETS
    return codec if known else None


_NOT_CHARSETS = {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"}
