"""What can be asked: limits that keep a simulated day within minutes and a machine's memory."""

from __future__ import annotations

from webordinary.model.errors import Permanent

MAX_PROJECTS = 200_000
MAX_MAILS = 500_000
MAX_WORKERS = 10_000


class OutOfBounds(Permanent):
    """A question that cannot be simulated: which part of it, and what would fit."""


def within(name: str, value: float, lowest: float, highest: float) -> None:
    """Raise OutOfBounds unless `value` lies between the two."""
    if not lowest <= value <= highest:  # says no to NaN, too
        raise OutOfBounds(f"{name} {value:,g}: use {lowest:,g} to {highest:,g}")
