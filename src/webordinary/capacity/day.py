"""When people write: curves over the 24 hours of a day."""

from __future__ import annotations

import random
from itertools import accumulate

DAY_SECONDS = 86_400.0
BINS = 96
BIN_SECONDS = DAY_SECONDS / BINS

# Weights of the hours from midnight on: quiet nights, two humps around lunch, a slow evening.
CURVES = {
    "business": (
        0.4, 0.3, 0.2, 0.2, 0.3, 0.5, 1.0, 2.2, 5.0, 8.2, 9.2, 8.8,
        6.5, 7.4, 8.8, 8.6, 7.6, 5.6, 4.0, 3.6, 3.4, 2.8, 1.6, 0.8,
    ),
    "flat": (1.0,) * 24,
}  # fmt: skip


def moments(curve: str, count: int, dice: random.Random) -> list[float]:
    """So many moments of one day, in order, as the curve has them."""
    weights = list(accumulate(_quarters(CURVES[curve])))
    bins = dice.choices(range(BINS), cum_weights=weights, k=count)
    return sorted((quarter + dice.random()) * BIN_SECONDS for quarter in bins)


def bin_of(seconds: float) -> int:
    """The quarter of an hour that a moment falls into; what comes after midnight counts as the last one."""
    return min(BINS - 1, int(seconds // BIN_SECONDS))


def _quarters(hours: tuple[float, ...]) -> list[float]:
    """The same curve without its steps: a straight line from the middle of each hour to that of the next."""
    return [_between(hours, (quarter + 0.5) / 4 - 0.5) for quarter in range(BINS)]


def _between(hours: tuple[float, ...], at: float) -> float:
    low = int(at // 1)
    share = at - low
    return hours[low % 24] * (1 - share) + hours[(low + 1) % 24] * share
