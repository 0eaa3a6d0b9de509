"""A stored mail starts its workflow; one that a crash left behind is started later. Never twice: by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from webordinary.mail.ports import RawMails
from webordinary.model.jobs import DeadLetter
from webordinary.model.names import first_job_of
from webordinary.pool.ports import DeadLetters

_BATCH = 100
RELEASED = "-c"
"""Ends the name of the execution of a released mail."""


class Workflows(Protocol):
    """Runs the workflow: the embedded engine, or Step Functions."""

    def start(self, name: str, input: dict[str, Any]) -> bool:
        """Start an execution; False, and nothing happens, if one of this name exists."""


def executions_of(job_id: str, email_id: str) -> tuple[str, ...]:
    """The names of the executions that may wait for a job: of its redrive, else the first and that of a release."""
    redriven = job_id.removeprefix(first_job_of(job_id))
    return (f"{email_id}{redriven}",) if redriven else (email_id, f"{email_id}{RELEASED}")


@dataclass(frozen=True, slots=True)
class BrokenExecution:
    """An execution that failed, timed out or was aborted."""

    name: str
    status: str
    error: str = ""
    cause: str = ""
    lost_by_engine: bool = False
    """The engine itself lost it. Nothing is wrong with the mail, and its job goes on."""


class BrokenExecutions(Protocol):
    """The executions that ended badly, where a lost event would leave them unnoticed."""

    def ended_badly(self, since: datetime) -> Sequence[str]:
        """The names of those that ended since then, the newest first; a bounded number."""

    def describe(self, name: str) -> BrokenExecution:
        """How one of them ended."""


_REDRIVEN = re.compile(r"(?P<email_id>.+)-r(?P<number>\d+)")


def started_with(name: str) -> dict[str, Any]:
    """The input of an execution, derived from its name."""
    if redriven := _REDRIVEN.fullmatch(name):
        return {"emailId": redriven["email_id"], "redrive": int(redriven["number"])}
    return {"emailId": name.removesuffix(RELEASED), "redrive": 0}


def start(email_id: str, workflows: Workflows, raw_mails: RawMails) -> None:
    """Start the workflow of one mail; again is harmless."""
    workflows.start(email_id, {"emailId": email_id, "redrive": 0})
    raw_mails.mark_started(email_id)


def start_released(email_id: str, workflows: Workflows, raw_mails: RawMails) -> None:
    """Start the execution of a held mail that was released; again is harmless. Its first execution has ended."""
    workflows.start(f"{email_id}{RELEASED}", {"emailId": email_id, "redrive": 0})
    raw_mails.mark_started(email_id)


def start_missing(workflows: Workflows, raw_mails: RawMails) -> int:
    """Start the workflows of accepted mails that have none."""
    started: set[str] = set()  # a store may list a mail a moment longer than it is true
    while email_ids := set(raw_mails.without_workflow(_BATCH)) - started:
        for email_id in email_ids:
            begin = start_released if raw_mails.is_released(email_id) else start
            begin(email_id, workflows, raw_mails)
        started |= email_ids
    return len(started)


def redrive(dead_letter: DeadLetter, workflows: Workflows, dead_letters: DeadLetters) -> str:
    """Start the mail's next execution, then take its letters away; returns the execution's name.

    Redriving the same letter again, after a crash or by a second operator, starts nothing more: the name
    follows from the letter.
    """
    number = dead_letter.redrives + 1
    name = f"{dead_letter.email_id}-r{number}"
    workflows.start(name, {"emailId": dead_letter.email_id, "redrive": number})
    dead_letters.clear(dead_letter.email_id, dead_letter.redrives)
    return name
