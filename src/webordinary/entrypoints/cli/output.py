"""Printing: aligned tables for people, one JSON value for scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from pathlib import Path


def print_json(value: object) -> None:
    """One JSON value on one line, so that `logs --follow --json` can be read line by line."""
    print(json.dumps(value, default=_plain, ensure_ascii=False), flush=True)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns as wide as their widest cell; a word instead when there are no rows."""
    if not rows:
        return "  none"
    cells = [[clean(str(cell)) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(f"  {line}".rstrip() for line in lines)


def clean(text: str) -> str:
    """Text from a mail must not move the cursor or colour the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def clock(at: datetime) -> str:
    """A point in time as the operator's watch shows it."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    return str(value)
