"""What a file of a site is, told by its name; the operating system's own table differs from machine to machine."""

from __future__ import annotations

import codecs
import mimetypes
from pathlib import PurePosixPath

_TYPES = {
    ".html": "text/html",
    ".htm": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".json": "application/json",
    ".map": "application/json",
    ".webmanifest": "application/manifest+json",
    ".xml": "application/xml",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".ico": "image/x-icon",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
    ".wasm": "application/wasm",
    ".pdf": "application/pdf",
}
_TEXTUAL = ("text/", "application/json", "application/manifest+json", "application/xml", "image/svg+xml")


OPENING = 1 << 20
"""As many bytes of a file tell whether it is foreign."""


def media_type_of(name: str, *, foreign: bool = False) -> str:
    """The content type by the file's name, with UTF-8 for everything textual that is not foreign."""
    return f"{_bare(name)}; charset=utf-8" if is_textual(name) and not foreign else _bare(name)


def is_textual(name: str) -> bool:
    """What has a charset."""
    return _bare(name).startswith(_TEXTUAL)


def is_foreign(name: str, opening: bytes) -> bool:
    """Text that is no UTF-8, such as old pages: it says itself what it is, and a header would speak louder."""
    if not is_textual(name):
        return False
    try:  # an opening may end amid a character, a whole file may not
        codecs.getincrementaldecoder("utf-8")().decode(opening[:OPENING], final=len(opening) < OPENING)
    except UnicodeDecodeError:
        return True
    return False


def _bare(name: str) -> str:
    suffix = PurePosixPath(name).suffix.lower()
    return _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
