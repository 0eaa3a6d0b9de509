"""Where in a repository the pages of a plain site begin."""

from __future__ import annotations

from collections.abc import Container
from pathlib import PurePosixPath

_CANDIDATES = (".", "public", "site")


def site_root(files: Container[str]) -> PurePosixPath | None:
    """The folder that holds the home page."""
    for candidate in _CANDIDATES:
        root = PurePosixPath(candidate)
        if str(root / "index.html") in files:
            return root
    return None
