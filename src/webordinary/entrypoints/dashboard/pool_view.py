"""View model of the pool's page: workers with their slots, claims, queues by age, and charts drawn as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from webordinary.entrypoints.dashboard.text import FormattedTime, duration, moment
from webordinary.entrypoints.dashboard.views import ActionView
from webordinary.model.snapshot import ClaimSummary, PoolSnapshot, QueueSummary, WorkerSummary
from webordinary.pool.metrics import SAMPLE_SECONDS, Durations, PoolHistory, PoolSpan

_BACK = (("back", "/pool"),)


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A job that a worker runs now."""

    key: str
    email_id: str
    subject: str
    since: FormattedTime | None
    interrupt: ActionView


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker; it is asked to end only once, where that is written down."""

    name: str
    pid: int
    slots: int
    up_since: FormattedTime
    tasks: tuple[TaskRow, ...]
    drain: ActionView | None


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A claim; `release` is None while its worker works under it."""

    key: str
    worker: str
    fence: int
    since: FormattedTime
    lease: str
    does: str
    tone: str
    release: ActionView | None


@dataclass(frozen=True, slots=True)
class QueueRow:
    """The open jobs of one key."""

    key: str
    preparing: int
    queued: int
    running: int
    since: FormattedTime | None
    owner: str


@dataclass(frozen=True, slots=True)
class PoolView:
    """The whole pool."""

    workers: tuple[WorkerRow, ...]
    claims: tuple[ClaimRow, ...]
    queues: tuple[QueueRow, ...]
    slots: int
    slots_used: int
    waiting: int
    unclaimed: int
    unclaimed_since: FormattedTime | None


def pool_view(pool: PoolSnapshot, now: datetime) -> PoolView:
    """The view of one look."""
    oldest_first = sorted(pool.queues, key=lambda queue: (queue.waiting_since or now, str(queue.key)))
    oldest = pool.unclaimed.oldest_since
    return PoolView(
        workers=tuple(_worker(worker, pool, now) for worker in pool.workers),
        claims=tuple(_claim(claim, now) for claim in pool.claims),
        queues=tuple(_queue(queue, now) for queue in oldest_first),
        slots=sum(worker.slots for worker in pool.workers),
        slots_used=len(pool.running),
        waiting=sum(queue.queued + queue.preparing for queue in pool.queues),
        unclaimed=pool.unclaimed.depth,
        unclaimed_since=moment(oldest, now) if oldest else None,
    )


def _worker(worker: WorkerSummary, pool: PoolSnapshot, now: datetime) -> WorkerRow:
    tasks = tuple(
        TaskRow(
            str(job.key),
            job.email_id,
            job.subject or "(no subject)",
            moment(job.started_at, now) if job.started_at else None,
            ActionView("Interrupt", f"/mails/{job.email_id}/interrupts", fields=_BACK),
        )
        for job in pool.running
        if job.worker == worker.worker
    )
    drain = ActionView("Stop when done", f"/workers/{quote(worker.worker, safe='')}/drains", fields=_BACK)
    started = moment(worker.started_at, now)
    return WorkerRow(worker.name, worker.pid, worker.slots, started, tasks, None if worker.drains else drain)


def _claim(claim: ClaimSummary, now: datetime) -> ClaimRow:
    left = claim.lease_expires_at - now
    does, tone = ("worker is dead", "bad") if claim.dead else ("works", "busy") if claim.busy else ("idle", "")
    release = ActionView("Release", f"/claims/{quote(str(claim.key), safe='')}/releases", fields=_BACK)
    return ClaimRow(
        str(claim.key),
        claim.worker,
        claim.fence,
        moment(claim.claimed_at, now),
        f"in {duration(left)}" if left.total_seconds() > 0 else "it is over",
        does,
        tone,
        None if claim.busy and not claim.dead else release,
    )


def _queue(queue: QueueSummary, now: datetime) -> QueueRow:
    since = moment(queue.waiting_since, now) if queue.waiting_since else None
    return QueueRow(str(queue.key), queue.preparing, queue.queued, queue.running, since, queue.owner or "")


WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 560, 170, 52, 12, 24
SPANS = {"24h": (SAMPLE_SECONDS, 144), "30d": (6 * 3600, 120)}
"""Seconds of a bar, and bars, by what the page calls it."""
TICKS = 6


@dataclass(frozen=True, slots=True)
class Series:
    """One line or one kind of bar: an SVG path with its name."""

    name: str
    tone: str
    path: str
    filled: bool


@dataclass(frozen=True, slots=True)
class ChartView:
    """A chart; `words` is its text alternative."""

    name: str
    title: str
    top: str
    middle: str
    series: tuple[Series, ...]
    ticks: tuple[tuple[int, str], ...]
    words: str


Value = Callable[[PoolSpan], float]


def charts_of(history: PoolHistory) -> tuple[ChartView, ...]:
    """Depth, time to claim, latency, outcomes and costs."""
    spans = history.spans
    tones = {"succeeded": "good", "cancelled": "", "failed": "busy", "timed-out": "warn", "dead": "bad"}
    return (
        _bars(spans, "waiting", f"{history.waits}, at most", str, [("waiting", "busy", lambda one: one.waiting)]),
        _lines(spans, "claim", "Time to claim", history.claims, lambda one: one.claims),
        _lines(spans, "latency", "Queued to done", history.latencies, lambda one: one.latencies),
        _bars(
            spans, "outcomes", "Jobs by outcome", str,
            [(outcome, tone, _outcome(outcome)) for outcome, tone in tones.items()],
        ),
        _bars(spans, "cost", "Costs of agents", _dollars, [("dollars", "warn", lambda one: one.usd)]),
    )  # fmt: skip


def _outcome(name: str) -> Value:
    return lambda one: one.outcomes.get(name, 0)


def _dollars(value: float) -> str:
    return f"${value:.2f}"


def _seconds(value: float) -> str:
    return duration(timedelta(seconds=value))


def _bars(
    spans: Sequence[PoolSpan],
    name: str,
    title: str,
    unit: Callable[[float], str],
    kinds: Sequence[tuple[str, str, Value]],
) -> ChartView:
    """Bars, one kind upon the other."""
    totals = [sum(value(one) for _, _, value in kinds) for one in spans]
    most = _round_up(max(totals, default=0.0), whole=unit is str)
    wide = (WIDTH - LEFT) / max(1, len(spans))
    stacked, series = [0.0] * len(spans), []
    for label, tone, value in kinds:
        path = ""
        for number, one in enumerate(spans):
            if height := value(one):
                x, low = LEFT + number * wide, _y(stacked[number], most)
                stacked[number] += height
                path += f"M{x:.1f} {low:.1f}V{_y(stacked[number], most):.1f}h{max(wide - 0.6, 0.6):.1f}V{low:.1f}z"
        series.append(Series(label, tone, path, filled=True))
    each = ", ".join(f"{label} {_amount(unit, sum(value(one) for one in spans))}" for label, _, value in kinds)
    words = f"{title}: {_amount(unit, max(totals, default=0.0))} at most in one bar"
    return ChartView(
        name, title, _amount(unit, most), _amount(unit, most / 2), tuple(series), _ticks(spans),
        f"{words}; {each} in all." if name in ("outcomes", "cost") else f"{words}.",
    )  # fmt: skip


def _amount(unit: Callable[[float], str], value: float) -> str:
    return f"{value:,.6g}" if unit is str else unit(value)


def _lines(
    spans: Sequence[PoolSpan], name: str, title: str, together: Durations, of: Callable[[PoolSpan], Durations]
) -> ChartView:
    """The median and the slowest twentieth; a gap where nothing happened."""
    bars = [of(one) for one in spans]
    lines = (
        ("half of them under", "busy", [one.half if one.count else None for one in bars], together.half),
        ("95 of 100 under", "warn", [one.most if one.count else None for one in bars], together.most),
    )
    most = _round_up(max((one.most for one in bars), default=0.0))
    wide = (WIDTH - LEFT) / max(1, len(spans))
    series = tuple(Series(label, tone, _line(values, most, wide), filled=False) for label, tone, values, _ in lines)
    shares_text = ", ".join(f"{label} {_seconds(of_all)}" for label, _, _, of_all in lines)
    words = f"{title}: {shares_text}." if together.count else f"{title}: nothing yet."
    return ChartView(name, title, _seconds(most), _seconds(most / 2), series, _ticks(spans), words)


def _line(values: Sequence[float | None], most: float, wide: float) -> str:
    path, drawing = "", False
    for number, value in enumerate(values):
        if value is None:
            drawing = False
            continue
        x, y = LEFT + (number + 0.5) * wide, _y(value, most)
        path += (
            f"{'L' if drawing else 'M'}{x:.1f} {y:.1f}" if drawing else f"M{x - 1.5:.1f} {y:.1f}L{x + 1.5:.1f} {y:.1f}"
        )
        drawing = True
    return path


def _y(value: float, most: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / most


def _round_up(value: float, *, whole: bool = False) -> float:
    """The next round number above: where the scale ends."""
    if value <= 0:
        return 2.0 if whole else 1.0
    size = 10.0 ** (len(str(int(value))) - 1) if value >= 1 else 0.001
    while size * 10 < value:
        size *= 10
    found = next(step * size for step in (1, 2, 4, 5, 10) if step * size >= value)
    return max(found, 2.0) if whole else found


def _ticks(spans: Sequence[PoolSpan]) -> tuple[tuple[int, str], ...]:
    if not spans:
        return ()
    step, wide = max(1, len(spans) // TICKS), (WIDTH - LEFT) / len(spans)
    long = spans[-1].at - spans[0].at > 2 * 86_400
    return tuple(
        (round(LEFT + number * wide), f"{at.day} {at:%b}" if long else f"{at:%H:%M}")
        for number in range(0, len(spans), step)
        for at in [datetime.fromtimestamp(spans[number].at, UTC).astimezone()]
    )
