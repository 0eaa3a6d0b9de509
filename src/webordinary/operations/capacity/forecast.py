"""Workers, waits, utilisation and a month's bill for a day of demand, and how people and scripts read that answer."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from webordinary.operations.capacity.costs import (
    AS_OF,
    COMPUTE_KINDS,
    EC2,
    LEFT_OUT,
    MEETING_THE_BARS,
    REGION,
    TAIL_QUARTERS,
    DayOfWork,
    SystemSize,
    UsageModel,
    as_data,
    monthly_bill,
    quota_data,
    quota_lines,
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
    usage_model: UsageModel = MEETING_THE_BARS
    console: bool = False
    """The bill has the console behind a load balancer."""

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
    needed: tuple[int, ...]
    """Without those that leave and have not left yet."""
    monthly_usd: dict[str, float]

    @property
    def worker_hours(self) -> float:
        """Worker-hours of a day."""
        return sum(self.workers) * 24 / BINS

    @property
    def tail_hours(self) -> float:
        """Those in which a worker only waits to leave."""
        return self.worker_hours - sum(self.needed) * 24 / BINS


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

    def measure(self, workers: int, target: WaitTarget = ENDLESS) -> Measures:
        """Simulate a day."""
        simulated_day = SimulatedDay(self._mails, workers, self._question.slots, target)
        self.known[workers] = simulated_day.run(lambda words: self._tell(f"day with {workers} workers, {words}"))
        return self.known[workers]


def _answer(question: Question, mails: list[Mail], workers: int, trials: _Trials) -> Forecast:
    measures, slots = trials.known[workers], question.slots
    minutes = sum(mail.seconds for mail in mails) / 60
    day = DayOfWork(len(mails), minutes, workers * 24.0, slots, question.demand.projects, question.console)
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
        monthly_usd=monthly_bill(day, question.compute, question.usage_model),
        scaling=_scaling(question, measures, day),
    )


def _scaling(question: Question, measures: Measures, day: DayOfWork) -> Scaling:
    """Workers for the busiest moment of each quarter and of the next, which they must be there for; they leave late."""
    busiest = [*measures.busiest, 0]
    needed = tuple(math.ceil(max(busiest[at : at + 2]) / question.slots) for at in range(BINS))
    paid = tuple(max(needed[max(0, at - TAIL_QUARTERS) : at + 1]) for at in range(BINS))
    scaled = replace(day, worker_hours=sum(paid) * 24 / BINS)
    return Scaling(paid, needed, monthly_bill(scaled, question.compute, question.usage_model))


BLOCKS = " ▁▂▃▄▅▆▇█"
PLAIN = " .:-=+*##"
HEIGHT = 6
_LABEL = 8


def chart(title: str, values: Sequence[float], *, columns: int, top: float | None = None, plain: bool = False) -> str:
    """A title, bars and the hours below; `top` is the value of a full column. `plain` is for old terminals."""
    narrowed = _narrowed(values, columns)
    highest = max(top or 0.0, *narrowed) or 1.0
    levels = [round(value / highest * HEIGHT * 8) for value in narrowed]
    blocks = PLAIN if plain else BLOCKS
    lines = []
    for row in reversed(range(HEIGHT)):
        label = f"{highest:,.0f}" if row == HEIGHT - 1 else ("0" if row == 0 else "")
        bars = "".join(blocks[min(8, max(0, level - row * 8))] for level in levels)
        lines.append(f"{label:>{_LABEL}} {bars}".rstrip())
    return "\n".join([title, *lines, _hours(columns)])


def _narrowed(values: Sequence[float], columns: int) -> list[float]:
    """Means of as many neighbours as it takes to fit."""
    each = len(values) // columns
    return [sum(values[at : at + each]) / each for at in range(0, each * columns, each)]


def _hours(columns: int) -> str:
    step = columns // 8
    return " " * (_LABEL + 1) + "".join(f"{hour:<{step}}" for hour in range(0, 24, 3)).rstrip()


_QUARTERS = 4
WIDE, NARROW = 96, 48


def text(answer: Forecast, *, columns: int = NARROW, plain: bool = False) -> str:
    """The whole report."""
    parts = [_asked(answer), _workers(answer), _waits(answer), _charts(answer, columns, plain), _bill(answer)]
    return "\n\n".join([*parts, _scaling_lines(answer), _quotas(answer), f"Left out: {LEFT_OUT}."])


def plain_data(answer: Forecast) -> dict[str, Any]:
    """The same as JSON values."""
    question, demand = answer.question, answer.question.demand
    return {
        "projects": demand.projects,
        "mails_per_day": demand.mails,
        "seed": demand.seed,
        "day": demand.curve,
        "job_seconds": demand.job_seconds,
        "slots": question.slots,
        "compute": question.compute,
        "target_seconds": question.target_seconds,
        "target_met": answer.promise_kept,
        "workers": answer.workers,
        "workers_tried": list(answer.tried),
        "time_to_claim_seconds": _named(answer.claim_waits),
        "time_to_start_seconds": _named(answer.start_waits),
        "utilisation": round(answer.utilisation, 4),
        "counts": answer.counts,
        "monthly_usd": _dollars(answer.monthly_usd),
        "monthly_usd_total": round(sum(answer.monthly_usd.values()), 2),
        "scaled": {
            "workers_by_quarter_hour": list(answer.scaling.workers),
            "worker_hours_per_day": answer.scaling.worker_hours,
            "tail_hours_per_day": answer.scaling.tail_hours,
            "monthly_usd": _dollars(answer.scaling.monthly_usd),
            "monthly_usd_total": round(sum(answer.scaling.monthly_usd.values()), 2),
        },
        "prices": {"region": REGION, "as_of": AS_OF.isoformat(), "left_out": LEFT_OUT},
        "quotas": as_data(_size(answer)),
        "quotas_by_size": quota_data(_size(answer)),
        "mails_by_quarter_hour": list(answer.arrivals),
        "busy_workers_by_quarter_hour": [round(busy, 2) for busy in answer.busy_workers],
    }


def _size(answer: Forecast) -> SystemSize:
    demand = answer.question.demand
    return SystemSize(demand.projects, demand.mails, answer.workers)


def _quotas(answer: Forecast) -> str:
    """What is reached on the way to this size, and at it."""
    head = "Of AWS's default quotas these are reached, at each size the first in front:"
    return "\n".join([head, *(f"  {line}" for line in quota_lines(_size(answer)))])


def _asked(answer: Forecast) -> str:
    demand = answer.question.demand
    minutes = demand.job_seconds / 60
    return (
        f"{demand.mails:,} mails on a {demand.curve} day for {demand.projects:,} projects, from "
        f"{answer.counts['people']:,} people; jobs of {minutes:.1f} minutes on average; seed {demand.seed}"
    )


def _workers(answer: Forecast) -> str:
    question = answer.question
    several = answer.workers > 1
    who = f"{answer.workers:,} worker{'s' if several else ''} of {question.slots} slots"
    promise = f"{PROMISED:.0%} of claims within {question.target_seconds:g} s"
    if question.workers is None:
        tried = ", ".join(map(str, sorted(answer.tried)))
        verdict = f"{who} {'are' if several else 'is'} needed for {promise} (simulated with {tried})"
    elif answer.promise_kept:
        verdict = f"{who} keep{'' if several else 's'} {promise}"
    else:
        verdict = f"{who} cannot keep {promise}: use more, or --workers auto"
    left = answer.counts["unstarted"]
    return verdict + (f"\n{left:,} mails were not begun an hour after midnight" if left else "")


def _waits(answer: Forecast) -> str:
    counts = answer.counts
    head = "".join(f"{_percent(share):>10}" for share in answer.claim_waits)
    rows = [("time to claim", answer.claim_waits), ("time to start", answer.start_waits)]
    lines = [f"{name:<14}" + "".join(f"{_seconds(wait):>10}" for wait in waits.values()) for name, waits in rows]
    peak = max(answer.busy_workers) / answer.workers
    return "\n".join(
        [
            f"{'':<14}{head}",
            *lines,
            f"{'utilisation':<14}{answer.utilisation:>10.0%} of all slots over the day, "
            f"{min(1.0, peak):.0%} in the busiest quarter of an hour",
            f"{'claims':<14}{counts['claims']:>10,}; {counts['warm_starts']:,} jobs began under a claim held already, "
            f"{counts['interruptions']:,} were interrupted",
        ]
    )


def _charts(answer: Forecast, columns: int, plain: bool) -> str:
    an_hour = [mails * _QUARTERS for mails in answer.arrivals]
    top = float(answer.workers)
    return "\n".join(
        [
            chart("mails an hour", an_hour, columns=columns, plain=plain),
            "",
            chart(f"busy workers, of {answer.workers:,}", answer.busy_workers, columns=columns, top=top, plain=plain),
        ]
    )


def _bill(answer: Forecast) -> str:
    total = sum(answer.monthly_usd.values())
    a_thousand = total / (answer.counts["mails"] / 1000 * 730 / 24)
    rows = [*answer.monthly_usd.items(), ("total", total)]
    compute = answer.question.compute.replace("ec2", "EC2").replace("fargate", "Fargate")
    return "\n".join(
        [
            f"A month of such days ({REGION}, list prices of {AS_OF:%B %Y}, compute on {compute}, ARM):",
            *(f"  {service:<16}{usd:>12,.2f} $" for service, usd in rows),
            f"  {'per 1,000 mails':<16}{a_thousand:>12,.2f} $",
        ]
    )


def _scaling_lines(answer: Forecast) -> str:
    scaling, fixed = answer.scaling, answer.workers * 24
    total, before = sum(scaling.monthly_usd.values()), sum(answer.monthly_usd.values())
    return (
        "Scaled with the day, by the age of what is unclaimed, "
        f"{min(scaling.workers):,} to {max(scaling.workers):,} workers would do:\n"
        f"{scaling.worker_hours:,.1f} worker-hours a day instead of {fixed:,}, "
        f"{scaling.tail_hours:,.1f} of them leaving; {total:,.2f} $ a month instead of {before:,.2f} $."
    )


def _percent(share: float) -> str:
    return "longest" if share >= 1 else f"{share:.0%}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else (f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min")


def _named(waits: Mapping[float, float]) -> dict[str, float]:
    return {"max" if share >= 1 else f"p{share * 100:g}": round(wait, 3) for share, wait in waits.items()}


def _dollars(bill: Mapping[str, float]) -> dict[str, float]:
    return {service: round(usd, 2) for service, usd in bill.items()}


def columns_for(width: int) -> int:
    """The widest chart that a terminal of so many columns shows."""
    return WIDE if width >= WIDE + 10 else NARROW


WIDTH, SVG_HEIGHT = 960, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 70, 60, 50
_ACROSS, _DOWN = WIDTH - LEFT - RIGHT, SVG_HEIGHT - TOP - BOTTOM
MAILS, WORKERS = "#1f6f8b", "#c2571a"

_STYLE = "text{font:13px sans-serif;fill:#333}.axis{stroke:#bbb;fill:none}.t{font-size:16px}.r{text-anchor:end}"


def svg(answer: Forecast) -> str:
    """A picture on its own: no script, no font, nothing to fetch."""
    mails = [count * 4 for count in answer.arrivals]
    most_mails = _round_up(max(mails))
    most_workers = _round_up(max(answer.workers, *answer.busy_workers))
    title = (
        f"{answer.counts['mails']:,} mails a day, {answer.workers:,} workers of {answer.question.slots} slots, "
        f"{answer.utilisation:.0%} busy"
    )
    capacity = _y(answer.workers, most_workers)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {SVG_HEIGHT}" role="img">',
        f"<title>{title}</title><style>{_STYLE}</style>",
        f'<rect width="{WIDTH}" height="{SVG_HEIGHT}" fill="#fff"/>',
        f'<text class="t" x="{LEFT}" y="26">{title}</text>',
        f'<text x="{LEFT}" y="46" style="fill:{MAILS}">mails an hour (left)</text>',
        f'<text class="r" x="{WIDTH - RIGHT}" y="46" style="fill:{WORKERS}">busy workers (right); dashed: all</text>',
        *_grid(most_mails, most_workers),
        f'<path d="{_line(answer.busy_workers, most_workers)}L{LEFT + _ACROSS},{TOP + _DOWN}L{LEFT},{TOP + _DOWN}Z" '
        f'fill="{WORKERS}" fill-opacity="0.25" stroke="{WORKERS}"/>',
        f'<path d="M{LEFT},{capacity}H{LEFT + _ACROSS}" stroke="{WORKERS}" stroke-dasharray="6 4"/>',
        f'<path d="{_line(mails, most_mails)}" fill="none" stroke="{MAILS}" stroke-width="2"/>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _grid(most_mails: int, most_workers: int) -> list[str]:
    parts = [f'<path class="axis" d="M{LEFT},{TOP}V{TOP + _DOWN}H{LEFT + _ACROSS}V{TOP}"/>']
    for share in (0.0, 0.5, 1.0):
        y = _y(share, 1.0) + 4
        parts.append(f'<text class="r" x="{LEFT - 8}" y="{y}">{most_mails * share:,.0f}</text>')
        parts.append(f'<text x="{LEFT + _ACROSS + 8}" y="{y}">{most_workers * share:,.0f}</text>')
    for hour in range(0, 25, 3):
        x = LEFT + _ACROSS * hour / 24
        parts.append(f'<text x="{x:.0f}" y="{TOP + _DOWN + 20}" text-anchor="middle">{hour}:00</text>')
    return parts


def _line(values: Sequence[float], most: float) -> str:
    """Each value in the middle of its part of the day."""
    step = _ACROSS / len(values)
    points = [f"{LEFT + (at + 0.5) * step:.1f},{_y(value, most)}" for at, value in enumerate(values)]
    return "M" + "L".join(points)


def _y(value: float, most: float) -> float:
    return round(TOP + _DOWN * (1 - value / most), 1)


def _round_up(value: float) -> int:
    """The next number that looks well on an axis."""
    size = 1
    while size * 10 < value:
        size *= 10
    return next(size * step for step in (1, 2, 4, 6, 8, 10) if size * step >= value)
