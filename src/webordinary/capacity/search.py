"""The fewest workers that keep a promise: a plain queue says where to look, trials of the real pool decide."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from webordinary.capacity.bounds import MAX_WORKERS
from webordinary.capacity.demand import Mail
from webordinary.capacity.measures import percentile


def plain_waits(mails: Sequence[Mail], servers: int) -> list[float]:
    """How long each mail would wait if any free slot took the oldest one: no keys, no claims, no conversations."""
    free_at = [0.0] * servers
    waits = []
    for mail in mails:
        begins = max(mail.at, free_at[0])
        heapq.heapreplace(free_at, begins + mail.seconds)
        waits.append(begins - mail.at)
    return waits


def first_guess(mails: Sequence[Mail], slots: int, share: float, seconds: float) -> int:
    """The fewest workers that would do for a plain queue."""

    def enough(workers: int) -> bool:
        return percentile(plain_waits(mails, workers * slots), share) <= seconds

    return fewest(enough, 1) or MAX_WORKERS


def fewest(enough: Callable[[int], bool], guess: int, most: int = MAX_WORKERS) -> int | None:
    """The smallest number that is enough, near a guess; None if not even `most` are.

    Goes by steps that double until the number lies between two known ones, then by halves.
    """
    too_few, plenty = 0, most + 1
    step, at = 1, max(1, min(most, guess))
    while plenty - too_few > 1:
        if enough(at):
            plenty, following = at, at - step
        else:
            too_few, following = at, at + step
        step *= 2
        at = following if too_few < following < plenty else (too_few + plenty) // 2
        at = max(1, min(most, at))
    return plenty if plenty <= most else None
