"""What a file of a site is, told by its name; the operating system's own table differs from machine to machine."""

from __future__ import annotations

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


def media_type_of(name: str) -> str:
    """The content type by the file's name, with UTF-8 for everything textual."""
    suffix = PurePosixPath(name).suffix.lower()
    media_type = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return f"{media_type}; charset=utf-8" if media_type.startswith(_TEXTUAL) else media_type
