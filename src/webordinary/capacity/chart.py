"""Curves of a day as text: bars of blocks, as high as the terminal has lines to spare."""

from __future__ import annotations

from collections.abc import Sequence

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
