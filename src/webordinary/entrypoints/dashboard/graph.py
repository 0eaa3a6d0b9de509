"""The workflow drawn as a graph: positions from the workflow file, colours from the way of one mail."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from webordinary.entrypoints.dashboard.text import plural
from webordinary.model.snapshot import StateVisit
from webordinary.workflow.definition import text

WIDTH, HEIGHT, ROW, GAP, LEFT, TOP = 168, 30, 48, 26, 92, 12
BENDS = 5
"""How far a line bows out for each row that it passes."""
FAILURES = frozenset({"GiveUp", "Broken"})
SHORTFALLS = frozenset({"Refused", "Held", "HandleTimeout", "RecordInterruption"})


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A state as a box. `tone` is good, busy, warn or bad where the mail came through it."""

    label: str
    x: int
    y: int
    tone: str
    current: bool
    note: str
    """How often it was entered and tried again, if more than once."""


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """A line from one box to another, as an SVG path."""

    path: str
    taken: bool
    after_failure: bool


@dataclass(frozen=True, slots=True)
class GraphView:
    """The workflow of one mail; `words` is its text alternative."""

    width: int
    height: int
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    words: str


class _Arrow(NamedTuple):
    source: str
    target: str
    after_failure: bool


class _Layout(NamedTuple):
    rows: Mapping[str, int]
    columns: Mapping[str, int]
    edges: tuple[_Arrow, ...]


def graph_view(visits: Sequence[StateVisit], *, finished: bool) -> GraphView | None:
    """The graph with what one mail did; None where nothing is known of its way, as long after its end."""
    layout = _layout()
    known = [visit for visit in visits if visit.state in layout.rows]
    if not known:
        return None
    last = known[-1].state
    current = "" if finished or not any(edge.source == last for edge in layout.edges) else last
    entered, retries = Counter[str](), Counter[str]()
    for visit in known:
        entered[visit.state] += 1
        retries[visit.state] += visit.retries
    steps = {(one.state, other.state) for one, other in pairwise(known)}
    return GraphView(
        width=LEFT + (max(layout.columns.values()) + 1) * (WIDTH + GAP) + 2 * GAP,
        height=2 * TOP + max(layout.rows.values()) * ROW + HEIGHT,
        nodes=tuple(
            GraphNode(
                _spaced(state), *_corner(layout, state), _tone(state, entered[state], current), state == current,
                _note(entered[state], retries[state]),
            )
            for state in layout.rows
        ),
        edges=tuple(
            GraphEdge(_path(layout, edge), (edge.source, edge.target) in steps, edge.after_failure)
            for edge in sorted(_drawn(layout, steps), key=lambda edge: (edge.source, edge.target) in steps)
        ),
        words=_words(known, retries, current),
    )  # fmt: skip


def _words(known: Sequence[StateVisit], retries: Counter[str], current: str) -> str:
    way = ", ".join(_spaced(visit.state) for visit in known[-40:])
    again = "".join(f"; {_spaced(state)} tried again {plural(n, 'time')}" for state, n in retries.items() if n)
    return f"Way: {way}{again}{f'; now at {_spaced(current)}' if current else ''}."


def _note(entered: int, retries: int) -> str:
    times = [f"{entered} times"] if entered > 1 else []
    return ", ".join([*times, *([plural(retries, "retry", "retries")] if retries else [])])


def _tone(state: str, entered: int, current: str) -> str:
    if not entered:
        return ""
    if state == current:
        return "busy"
    return "bad" if state in FAILURES else "warn" if state in SHORTFALLS else "good"


def _spaced(state: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", state)


def _drawn(layout: _Layout, steps: set[tuple[str, str]]) -> Iterator[_Arrow]:
    """Every usual line; of those after a failure, the taken ones and those that alone lead to a state."""
    usual = {edge.target for edge in layout.edges if not edge.after_failure}
    drawn: set[tuple[str, str]] = set()
    for edge in sorted(layout.edges, key=lambda edge: edge.after_failure):
        ends = (edge.source, edge.target)
        if ends not in drawn and (not edge.after_failure or edge.target not in usual or ends in steps):
            drawn.add(ends)
            yield edge


def _corner(layout: _Layout, state: str) -> tuple[int, int]:
    return LEFT + layout.columns[state] * (WIDTH + GAP), TOP + layout.rows[state] * ROW


def _path(layout: _Layout, edge: _Arrow) -> str:
    """Straight down to the next row; around the boxes on the left further down, on the right back up."""
    (x, y), (to_x, to_y) = _corner(layout, edge.source), _corner(layout, edge.target)
    rows = layout.rows[edge.target] - layout.rows[edge.source]
    if rows == 1 or (rows > 0 and x != to_x):
        bottom, middle = y + HEIGHT, (y + HEIGHT + to_y) // 2
        start, end = x + WIDTH // 2, to_x + WIDTH // 2
        return f"M{start} {bottom} C{start} {middle} {end} {middle} {end} {to_y}"
    side, out = (0, -1) if rows > 0 else (WIDTH, 1)
    bow = min(LEFT - 8, 18 + BENDS * abs(rows)) * out
    start, end, far = x + side, to_x + side, max(x, to_x) + side if out > 0 else min(x, to_x)
    y, to_y = y + HEIGHT // 2, to_y + HEIGHT // 2
    return f"M{start} {y} C{far + bow} {y} {far + bow} {to_y} {end} {to_y}"


@cache
def _layout() -> _Layout:
    """Each state below all that lead to it; the usual way is the first column."""
    workflow = json.loads(text())
    states: dict[str, dict[str, Any]] = workflow["States"]
    edges = tuple(edge for name, state in states.items() for edge in _edges_of(name, state))
    back = _back_edges(workflow["StartAt"], edges)
    rows: dict[str, int] = dict.fromkeys(states, 0)
    for _ in states:  # the longest way is shorter than the number of states
        for edge in edges:
            if (edge.source, edge.target) not in back:
                rows[edge.target] = max(rows[edge.target], rows[edge.source] + 1)
    columns: dict[str, int] = {}
    taken = Counter[int]()
    usual = list(_usual_way(workflow["StartAt"], states))
    for state in [*usual, *(state for state in states if state not in usual)]:
        columns[state] = taken[rows[state]] if state in usual else max(1, taken[rows[state]])
        taken[rows[state]] = columns[state] + 1
    return _Layout(rows, columns, edges)


def _edges_of(name: str, state: Mapping[str, Any]) -> Iterator[_Arrow]:
    targets = [state.get("Next"), *(choice.get("Next") for choice in state.get("Choices", ())), state.get("Default")]
    yield from (_Arrow(name, target, after_failure=False) for target in targets if target)
    yield from (_Arrow(name, catch["Next"], after_failure=True) for catch in state.get("Catch", ()))


def _usual_way(start: str, states: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    state: str | None = start
    seen: set[str] = set()
    while state and state not in seen:
        yield state
        seen.add(state)
        state = states[state].get("Next") or next((one["Next"] for one in states[state].get("Choices", ())), None)


def _back_edges(start: str, edges: Sequence[_Arrow]) -> set[tuple[str, str]]:
    """The edges that lead back to a state on the way to their source."""
    targets: dict[str, list[str]] = {}
    for edge in edges:
        targets.setdefault(edge.source, []).append(edge.target)
    found, done = set[tuple[str, str]](), set[str]()

    def walk(state: str, way: tuple[str, ...]) -> None:
        for target in targets.get(state, ()):
            if target in (*way, state):
                found.add((state, target))
            elif target not in done:
                walk(target, (*way, state))
        done.add(state)

    walk(start, ())
    return found
