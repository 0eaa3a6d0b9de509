"""Releases and stages: what visitors see, and since which commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

COMMIT_DIGITS = 12
KEPT_RELEASES = 20


class Stage(StrEnum):
    """The edit site follows every change; the public one moves when the customer says `publish`."""

    EDIT = "edit"
    PUBLIC = "public"


@dataclass(frozen=True, slots=True)
class Release:
    """One published state of a site. Immutable; at most one per stage and commit.

    `path` is its folder, of which a worker may have no copy where sites lie in buckets.
    """

    project_id: str
    stage: Stage
    name: str
    path: Path
    made_at: datetime | None = field(default=None, compare=False)
    """When, if that is known without asking."""
    files: int = field(default=0, compare=False)
    """How many, if that is known without asking."""


def release_name(commit: str) -> str:
    """Releases are named after their commit."""
    return commit[:COMMIT_DIGITS]
