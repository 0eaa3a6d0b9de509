"""The customer's wish as an agent reads it: the words, the files that came with them, and what went wrong before."""

from __future__ import annotations

from webordinary.adapters.local.agents.luggage import Packed
from webordinary.site.task import AgentTask

_NOTE_CHARACTERS = 20_000


def wish(task: AgentTask, luggage: tuple[Packed, ...]) -> str:
    """One text; the end of a long note is what matters in it."""
    return task.instruction + _files(luggage) + _note(task.note)


def _files(luggage: tuple[Packed, ...]) -> str:
    lines = [f"- {file.name} ({file.media_type}, {file.size:,} bytes): {file.path}" for file in luggage]
    return "\n\nFiles that came with this mail:\n" + "\n".join(lines) if lines else ""


def _note(note: str) -> str:
    if not note:
        return ""
    return f"\n\n(Not from the owner: the first try did not succeed. Mend it.)\n{note[-_NOTE_CHARACTERS:]}"
