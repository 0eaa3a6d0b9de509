"""The customer's wish as an agent reads it: the words, and the files that came with them."""

from __future__ import annotations

from webordinary.adapters.local.agents.luggage import Packed
from webordinary.site.task import AgentTask


def wish(task: AgentTask, luggage: tuple[Packed, ...]) -> str:
    """One text."""
    lines = [f"- {file.name} ({file.media_type}, {file.size:,} bytes): {file.path}" for file in luggage]
    return task.words + ("\n\nFiles that came with this mail:\n" + "\n".join(lines) if lines else "")
