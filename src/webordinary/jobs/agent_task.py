"""What an agent is asked, and the four ways it can end.

Each way says with `agent` who it was, where the project leaves that open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from webordinary.model.mail import Attachment

SMALLER = "Nothing was changed. Please ask for it in smaller steps."


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """What one run may use up; of money, what earlier runs for the same mail have left."""

    seconds: float = 1800.0
    output_bytes: int = 1_000_000
    turns: int = 60
    cost_usd: float = 5.0
    """For one mail, all runs together."""
    spent_usd: float = 0.0
    """By earlier runs."""

    @property
    def left_usd(self) -> float:
        """What this run may cost."""
        return max(0.0, self.cost_usd - self.spent_usd)

    @property
    def too_costly(self) -> str:
        """What became too much, in words."""
        return f"more work than one mail may cost (${self.cost_usd:.2f})"


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A customer's file, where the agent can read it."""

    attachment: Attachment
    path: Path


def ignore_progress(told: object) -> None:
    """For those who do not want to know."""


@dataclass(frozen=True, slots=True)
class AgentTask:
    """One instruction, to be followed in one workspace.

    `tell` gets a few words now and then about what the agent does, a bounded number of times; `spent` gets what the
    run cost in dollars, once, also when it fails. Both may be called from any thread.
    """

    instruction: str
    workspace: Path
    attachments: tuple[AttachedFile, ...] = ()
    session: str = ""
    limits: AgentLimits = field(default_factory=AgentLimits)
    project_id: str = ""
    thread_id: str = ""
    tell: Callable[[str], None] = ignore_progress
    spent: Callable[[float], None] = ignore_progress
    note: str = ""
    """What went wrong the first time, for an agent that can use it."""

    wishes: tuple[str, ...] = ()
    """What holds for every change of this site."""

    @property
    def words(self) -> str:
        """The instruction with the site's standing wishes and the note, as one text."""
        kept = "\n".join(
            ["Standing wishes for this site, for whatever you write:", *(f"- {one}" for one in self.wishes)]
        )
        return "\n\n".join(filter(None, (self.instruction, kept if self.wishes else "", self.note)))


@dataclass(frozen=True, slots=True)
class Changed:
    """The workspace differs now; `summary` says how, to the customer."""

    summary: str
    session: str = ""
    cost_usd: float = 0.0
    agent: str = ""
    then: str = ""
    """`publish` or `undo`: what the customer wants done after it; empty for nothing."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer without a change."""

    text: str
    session: str = ""
    cost_usd: float = 0.0
    agent: str = ""
    then: str = ""
    """`publish` or `undo`: what the customer wants done after it; empty for nothing."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question back to the customer; nothing is changed."""

    question: str
    session: str = ""
    cost_usd: float = 0.0
    agent: str = ""


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """The agent could not follow; `text` says what it can do. Nothing is changed."""

    text: str
    session: str = ""
    cost_usd: float = 0.0
    agent: str = ""


AgentResult = Changed | Answered | Asked | NotUnderstood
