"""Under which addresses a file of the source may stand on the site, whichever generator builds it."""

from __future__ import annotations

import re
from urllib.parse import unquote

_HOST = re.compile(r"^https?://[^/?#]*", re.I)
_SERVED = (".html", ".htm", ".xhtml")
_PAGES = (*_SERVED, ".md", ".markdown", ".mdx", ".astro")
_ROOTS = ("public/", "site/", "docs/", "content/", "src/pages/", "src/content/")


def is_address(words: str) -> bool:
    """Whether it tells a whole way from the home page on, rather than the name of a file."""
    return words.startswith("/") or _HOST.match(words) is not None


def becomes_page(file: str) -> bool:
    """Whether a file of the source is, or is made into, a page."""
    return file.lower().endswith(_PAGES)


def place_of(words: str) -> str:
    """What an address or the name of a file leads to, to be compared with `places_of` files; home is empty."""
    if is_address(words):
        words = unquote(re.split(r"[?#]", _HOST.sub("", words))[0])
    return _place(words.casefold().strip("/"))


def places_of(file: str) -> set[str]:
    """Where a file of the source may stand on the site; a page without its suffix, and home empty."""
    file = file.casefold()
    root = next((root for root in _ROOTS if file.startswith(root)), "")
    places = {_place(file.removeprefix(root))}
    if not becomes_page(file) or file.endswith(_SERVED):
        places.add(_place(file))  # where nothing is built, it lies in a folder that only happens to be named so
    return places


def _place(path: str) -> str:
    suffix = next((suffix for suffix in _PAGES if path.endswith(suffix)), "")
    folder, _, name = path.removesuffix(suffix).rpartition("/")
    return folder if name in ("index", "_index") else f"{folder}/{name}".lstrip("/")
