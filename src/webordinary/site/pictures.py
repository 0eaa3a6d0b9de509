"""What comes of taking pictures of a page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pictures:
    """PNG pictures of one page; empty where there was no such page, or no picture came out in time."""

    page: str
    before: bytes = b""
    after: bytes = b""
