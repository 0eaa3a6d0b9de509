from __future__ import annotations

from tests.unit.jobs.fixtures import SCOTT
from webordinary.adapters.git.workspaces import FenceMark, key_fence_ref, project_fence_ref, read_mark


def test_a_mark_moves_with_every_push_of_the_same_fence() -> None:
    assert FenceMark(7, 1).moved(7) == FenceMark(7, 2)


def test_a_mark_never_moves_to_a_lower_fence() -> None:
    assert FenceMark(7, 1).moved(6) is None


def test_a_mark_is_read_as_written() -> None:
    assert read_mark(FenceMark(1_700_000_000, 12).text()) == FenceMark(1_700_000_000, 12)


def test_a_foreign_text_counts_as_the_lowest_fence() -> None:
    assert read_mark("hello") == FenceMark(0, 0)


def test_no_fence_ref_lies_below_another() -> None:
    project, key = project_fence_ref("amelia"), key_fence_ref(SCOTT)
    assert not key.startswith(project + "/")
    assert not project.startswith(key + "/")
