"""History events: what happened, in which scope, when. The history is the execution's only state.

Types are AWS's names. A type that starts with a small letter is the interpreter's own note and, like every
event in a distributed Map's child (a scope with `~`), is not numbered as AWS numbers its events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

EXECUTION_STARTED = "ExecutionStarted"
EXECUTION_SUCCEEDED = "ExecutionSucceeded"
EXECUTION_FAILED = "ExecutionFailed"
EXECUTION_TIMED_OUT = "ExecutionTimedOut"
EXECUTION_ABORTED = "ExecutionAborted"
RETRY_PLANNED = "retryPlanned"

HISTORY_LIMIT = 25_000


class Event(NamedTuple):
    """One line of a history. `scope` is empty at the top, `2.0` in branch 0 of a state in branch 2."""

    type: str
    scope: str
    at: float
    data: dict[str, Any]

    @property
    def numbered(self) -> bool:
        """Whether AWS would show it, and so count it."""
        return self.type[0].isupper() and "~" not in self.scope


def encode(events: Iterable[Event]) -> str:
    """Events as one JSON text; ASCII, since a lone surrogate is legal in JSON and not in a database."""
    return json.dumps([list(event) for event in events], separators=(",", ":"))


def decode(text: str) -> list[Event]:
    """The events of one encoded text."""
    return [Event(*fields) for fields in json.loads(text)]
