"""The whole answer: workers, waits, utilisation and a month's bill for a day of demand."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from webordinary.operations.capacity.costs import (
    COMPUTE_KINDS,
    EC2,
    MEETING_THE_BARS,
    TAIL_QUARTERS,
    DayOfWork,
    UsageModel,
    monthly_bill,
)
from webordinary.operations.capacity.demand import (
    BIN_SECONDS,
    BINS,
    MAX_WORKERS,
    Demand,
    Mail,
    OutOfBounds,
    mails_of,
    within,
)
from webordinary.operations.capacity.simulation import ENDLESS, Measures, SimulatedDay, WaitTarget, percentile


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


PERCENTILES = (0.5, 0.9, 0.95, 0.99, 1.0)
PROMISED = 0.95
"""The share of claims that must come in time."""
_CERTAIN = 1.2
"""So much more than what may be late is too much, however few claims are still to come."""
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Question:
    """The question to answer. `workers` None: find the smallest number that keeps the promise."""

    demand: Demand
    workers: int | None = None
    target_seconds: float = 60.0
    slots: int = 4
    compute: str = EC2
    habits: UsageModel = MEETING_THE_BARS

    def __post_init__(self) -> None:
        within("workers", self.workers if self.workers is not None else 1, 1, MAX_WORKERS)
        within("target", self.target_seconds, 0.1, 86_400)
        within("slots", self.slots, 1, 64)
        if self.compute not in COMPUTE_KINDS:
            raise OutOfBounds(f"compute {self.compute!r}: use {' or '.join(COMPUTE_KINDS)}")


@dataclass(frozen=True, slots=True)
class Scaling:
    """What would be enough if workers came and went with the day, by quarters of an hour."""

    workers: tuple[int, ...]
    monthly_usd: dict[str, float]

    @property
    def worker_hours(self) -> float:
        """Of a day."""
        return sum(self.workers) * 24 / BINS


@dataclass(frozen=True, slots=True)
class Forecast:
    """The answer. Waits are seconds by percentile."""

    question: Question
    workers: int
    tried: tuple[int, ...]
    claim_waits: dict[float, float]
    start_waits: dict[float, float]
    utilisation: float
    arrivals: tuple[int, ...]
    busy_workers: tuple[float, ...]
    """The mean by quarters of an hour, as slots busy over slots of a worker."""
    counts: dict[str, int]
    monthly_usd: dict[str, float]
    scaling: Scaling

    @property
    def promise_kept(self) -> bool:
        """Whether enough claims come in time."""
        return self.claim_waits[PROMISED] <= self.question.target_seconds


def estimated_workers(question: Question) -> int:
    """About how many workers the day needs, by a plain queue: seconds instead of minutes."""
    if question.workers is not None:
        return question.workers
    return first_guess(mails_of(question.demand), question.slots, PROMISED, question.target_seconds)


def forecast(question: Question, tell: Tell = lambda words: None) -> Forecast:
    """Simulate the day as often as it takes."""
    mails = mails_of(question.demand)
    trials = _Trials(question, mails, tell)
    if question.workers is None:
        guess = first_guess(mails, question.slots, PROMISED, question.target_seconds)
        workers = fewest(trials.keeps_promise, guess)
        if workers is None:
            raise OutOfBounds(
                f"not even {MAX_WORKERS:,} workers keep the target; ask for fewer mails or a later target"
            )
    else:
        workers = question.workers
        trials.measure(workers)
    return _answer(question, mails, workers, trials)


class _Trials:
    """Days that were simulated, by their number of workers."""

    def __init__(self, question: Question, mails: list[Mail], tell: Tell) -> None:
        self._question, self._mails, self._tell = question, mails, tell
        self.known: dict[int, Measures] = {}

    def keeps_promise(self, workers: int) -> bool:
        """Whether so many workers are enough; a hopeless day is not played to its end."""
        target = self._question.target_seconds
        enough = math.ceil(len(self._mails) * (1 - PROMISED) * _CERTAIN)
        measures = self.measure(workers, WaitTarget(target, enough))
        return measures.late() <= enough and percentile(measures.claim_waits, PROMISED) <= target

    def measure(self, workers: int, patience: WaitTarget = ENDLESS) -> Measures:
        """Simulate a day."""
        trial = SimulatedDay(self._mails, workers, self._question.slots, patience)
        self.known[workers] = trial.run(lambda words: self._tell(f"day with {workers} workers, {words}"))
        return self.known[workers]


def _answer(question: Question, mails: list[Mail], workers: int, trials: _Trials) -> Forecast:
    measures, slots = trials.known[workers], question.slots
    minutes = sum(mail.seconds for mail in mails) / 60
    day = DayOfWork(len(mails), minutes, workers * 24.0, slots)
    return Forecast(
        question=question,
        workers=workers,
        tried=tuple(trials.known),
        claim_waits={share: percentile(measures.claim_waits, share) for share in PERCENTILES},
        start_waits={share: percentile(measures.start_waits, share) for share in PERCENTILES},
        utilisation=measures.utilisation(workers * slots),
        arrivals=tuple(measures.arrivals),
        busy_workers=tuple(seconds / BIN_SECONDS / slots for seconds in measures.busy_seconds),
        counts={
            "mails": len(mails),
            "people": len({mail.key for mail in mails}),
            "claims": measures.kinds["ClaimTaken"],
            "warm_starts": measures.kinds["JobStarted"] - measures.kinds["ClaimTaken"],
            "interruptions": measures.kinds["JobInterrupted"],
            "unstarted": measures.unstarted,
        },
        monthly_usd=monthly_bill(day, question.compute, question.habits),
        scaling=_scaling(question, measures, day),
    )


def _scaling(question: Question, measures: Measures, day: DayOfWork) -> Scaling:
    """Workers for the busiest moment of each quarter and of the next, which they must be there for; they leave late."""
    busiest = [*measures.busiest, 0]
    needed = tuple(math.ceil(max(busiest[at : at + 2]) / question.slots) for at in range(BINS))
    paid = tuple(max(needed[max(0, at - TAIL_QUARTERS) : at + 1]) for at in range(BINS))
    scaled = DayOfWork(day.mails, day.job_minutes, sum(paid) * 24 / BINS, day.slots)
    return Scaling(paid, monthly_bill(scaled, question.compute, question.habits))
