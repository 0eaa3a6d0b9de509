"""The trace of a run: kept as values while it runs, put into words only when somebody reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from types import FunctionType

from webordinary.model.claims import Claim
from webordinary.model.jobs import Job
from webordinary.worker.claims import JobCancelToken, SavingToken

_LONG_HEX = re.compile(r"\b[0-9a-f]{16,}\b")
_SHOWN = 400
_QUIET = ("load", "append", "due")


@dataclass(frozen=True, slots=True)
class Entry:
    """One port call, fault or event."""

    at: float
    actor: str
    what: str
    details: tuple[object, ...]
    outcome: object


class SimulationJournal:
    """What happened, in order; long names become the short ones that a reader can follow."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._names: dict[str, str] = {}

    def call(self, name: str, of: str) -> None:
        """Show `name` in the trace wherever `of` stands."""
        self._names[of] = name

    def note(self, at: float, actor: str, what: str, *details: object, outcome: object = None) -> None:
        """Keep one line."""
        self._entries.append(Entry(at, actor, what, details, outcome))

    def lines(self, *, everything: bool = False) -> list[str]:
        """The trace in words; the engine's own bookkeeping only where everything is wanted."""
        chosen = (e for e in self._entries if everything or e.what.rpartition(".")[2] not in _QUIET)
        return [self.short(_line(entry)) for entry in chosen]

    def short(self, text: str) -> str:
        """The same text with short names."""
        for name in sorted(self._names, key=len, reverse=True):
            text = text.replace(name, self._names[name])
        return _LONG_HEX.sub(lambda match: match[0][:6] + "…", text)


def _line(entry: Entry) -> str:
    details = ", ".join(_words(detail) for detail in entry.details if not isinstance(detail, datetime))
    outcome = f" → {_words(entry.outcome)}" if entry.outcome is not None else ""
    return f"{entry.at:10.3f} {entry.actor:<26} {entry.what}({details}){outcome}"[:_SHOWN]


def _words(value: object) -> str:
    match value:
        case BaseException():
            return f"{type(value).__name__}: {value}"
        case Claim():
            return f"{value.key} {value.status} by {value.worker} fence {value.fence} beat {value.beat}"
        case Job():
            stands = value.outcome or value.state
            return f"{value.job_id} {stands} order {value.order} a{value.attempts} i{value.interruptions}"
        case JobCancelToken() | SavingToken():
            return f"hold of {value.job_id}"
        case Enum() | str():
            return str(value)
        case bytes():
            return f"{len(value)} bytes"
        case FunctionType():
            return value.__name__
        case set() | frozenset():
            return f"[{', '.join(sorted(map(_words, value)))}]"  # its order differs between processes
        case list() | tuple():
            return f"[{', '.join(_words(one) for one in value)}]"
        case dict():
            return f"{{{', '.join(f'{name}: {_words(one)}' for name, one in value.items())}}}"
    if not is_dataclass(value) or type(value).__str__ is not object.__str__:
        return repr(value) if not is_dataclass(value) else str(value)
    said = ((field.name, getattr(value, field.name)) for field in fields(value))
    told = (f"{name}={_words(one)}" for name, one in said if one and not isinstance(one, datetime))
    return f"{type(value).__name__}({', '.join(told)})"
