"""A mail that was given up runs once more, as a new execution with a new job and an answer of its own."""

from __future__ import annotations

from webordinary.model.jobs import DeadLetter
from webordinary.pool.ports import DeadLetters
from webordinary.workflow.start import Workflows


def redrive(letter: DeadLetter, workflows: Workflows, letters: DeadLetters) -> str:
    """Start the mail's next execution, then take its letters away; returns the execution's name.

    Redriving the same letter again, after a crash or by a second operator, starts nothing more: the name
    follows from the letter.
    """
    number = letter.redrives + 1
    name = f"{letter.email_id}-r{number}"
    workflows.start(name, {"emailId": letter.email_id, "redrive": number})
    letters.clear(letter.email_id, letter.redrives)
    return name
