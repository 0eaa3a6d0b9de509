"""The graph of the workflow: every state once, the way of a mail in colours."""

from __future__ import annotations

import json

from webordinary.entrypoints.dashboard.graph import GraphView, graph_view
from webordinary.model.snapshot import StateVisit
from webordinary.workflow import definition

WAITING = [StateVisit(state) for state in ("AuthenticateSender", "Admission", "ParseEmail")]


def drawn(visits: list[StateVisit], *, finished: bool = False) -> GraphView:
    view = graph_view(visits, finished=finished)
    assert view
    return view


def test_each_state_of_the_workflow_is_drawn_once_and_none_over_another() -> None:
    view = drawn(WAITING)
    assert len(view.nodes) == len(json.loads(definition.text())["States"])
    assert len({(node.x, node.y) for node in view.nodes}) == len(view.nodes)
    assert all(node.x + 168 <= view.width and node.y + 30 <= view.height for node in view.nodes)


def test_the_state_that_a_mail_is_in_is_marked_until_it_has_ended() -> None:
    assert [node.label for node in drawn(WAITING).nodes if node.current] == ["Parse Email"]
    assert [node.tone for node in drawn(WAITING, finished=True).nodes if node.current] == []
    assert "now at Parse Email" in drawn(WAITING).words


def test_retries_and_returns_are_counted() -> None:
    again = [*WAITING[:2], StateVisit("ParseEmail", retries=2), *(StateVisit("AwaitResult"),) * 2]
    notes = {node.label: node.note for node in drawn(again).nodes if node.note}
    assert notes == {"Parse Email": "2 retries", "Await Result": "2 times"}


def test_the_lines_that_a_mail_took_are_marked_and_a_failure_is_drawn_only_then() -> None:
    failed = [*WAITING, StateVisit("GiveUp"), StateVisit("Reply")]
    calm, broken = drawn(WAITING), drawn(failed)
    assert [edge.after_failure for edge in broken.edges if edge.taken].count(True) == 1
    assert len(broken.edges) == len(calm.edges) + 1
    assert {node.label: node.tone for node in broken.nodes}["Give Up"] == "bad"


def test_states_of_another_workflow_are_passed_over() -> None:
    assert graph_view([StateVisit("NoSuchState")], finished=True) is None
