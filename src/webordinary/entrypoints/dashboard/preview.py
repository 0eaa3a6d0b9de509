"""A customer's site as visitors see it: files of one release, found as a plain web server finds them."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from webordinary.site.media_types import OPENING, is_foreign, is_textual, media_type_of

_NOT_FOUND = "<!doctype html><meta charset=utf-8><title>Not found</title><h1>Not found</h1><p>{}</p>"


@dataclass(frozen=True, slots=True)
class Found:
    """A file of a release."""

    path: Path
    info: os.stat_result
    etag: str


def answer(release: Path | None, path: str, headers: Headers) -> Response:
    """Answer a GET or HEAD wholly from one release, whatever is published meanwhile."""
    if release is None:
        return HTMLResponse(_NOT_FOUND.format("This site shows nothing yet."), status_code=404)
    root = release.resolve()
    segments = _segments(path)
    if segments is None:
        return _missing(root)
    if segments and not path.endswith("/") and _is_folder(root.joinpath(*segments)):
        return RedirectResponse("/" + quote("/".join(segments)) + "/", status_code=308)
    found = next(filter(None, (_find(root, name) for name in _candidates(segments, path))), None)
    if found is None:
        return _missing(root)
    if _unchanged(found, headers):
        return Response(status_code=304, headers=_headers(found))
    return _file(found, 200)


def _segments(path: str) -> list[str] | None:
    """The path's names; None where one would leave the site or look behind it."""
    segments = [segment for segment in path.split("/") if segment]
    hidden = any(s.startswith(".") and s != ".well-known" for s in segments)
    return None if hidden or "\0" in path else segments


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long
        return False


def _candidates(segments: list[str], path: str) -> list[str]:
    name = "/".join(segments)
    if not segments or path.endswith("/"):
        return [f"{name}/index.html".lstrip("/")]
    return [name, f"{name}.html"]


def _find(root: Path, name: str) -> Found | None:
    try:
        path = (root / name).resolve(strict=True)
        info = path.stat()
    except (OSError, RuntimeError):  # not there, a name too long, a loop of links
        return None
    if not path.is_relative_to(root) or not stat.S_ISREG(info.st_mode):
        return None
    # A file that did not change is the same file in the next release: visitors need not fetch it again.
    told = f"{info.st_dev}\0{info.st_ino}\0{info.st_size}\0{info.st_mtime_ns}"
    return Found(path, info, f'"{hashlib.sha256(told.encode()).hexdigest()[:24]}"')


def _unchanged(found: Found, headers: Headers) -> bool:
    tags = headers.get("if-none-match")
    if tags is not None:
        return "*" in tags or found.etag in (tag.strip().removeprefix("W/") for tag in tags.split(","))
    try:
        since = parsedate_to_datetime(headers.get("if-modified-since", ""))
    except ValueError:
        return False
    return found.info.st_mtime < since.timestamp() + 1


def _file(found: Found, status: int) -> Response:
    media_type = media_type_of(found.path.name, foreign=_foreign(found.path))
    headers = {**_headers(found), "Content-Type": media_type}
    return FileResponse(found.path, status, headers, media_type, stat_result=found.info)


def _foreign(path: Path) -> bool:
    if not is_textual(path.name):
        return False
    with path.open("rb") as file:
        return is_foreign(path.name, file.read(OPENING))


def _headers(found: Found) -> dict[str, str]:
    return {"ETag": found.etag, "Cache-Control": "no-cache"}  # ask again each time: a change shows at once


def _missing(root: Path) -> Response:
    own = _find(root, "404.html")
    if own:
        return _file(own, 404)
    return HTMLResponse(_NOT_FOUND.format("This site has no such page."), status_code=404)
