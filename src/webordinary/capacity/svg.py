"""The curves of a day as one small SVG: mails an hour against busy workers, and how many workers there are."""

from __future__ import annotations

from collections.abc import Sequence

from webordinary.capacity.forecast import Forecast

WIDTH, HEIGHT = 960, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 70, 60, 50
_ACROSS, _DOWN = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
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
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{title}</title><style>{_STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
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
