"""Events, in the past tense: what the log, the counters and the timeline are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from webordinary.model.names import ProjectUser


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. `kind` is one of the names in docs/glossary.md; `data` holds small values."""

    kind: str
    email_id: str | None = None
    job_id: str | None = None
    key: ProjectUser | None = None
    worker: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


class Events(Protocol):
    """Where every room tells what happened. Never fails its caller and never waits."""

    def emit(self, event: Event) -> None:
        """Tell the timeline; it may be on disk a moment later."""
