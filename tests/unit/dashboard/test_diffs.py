from __future__ import annotations

from tests.unit.dashboard.tables import DIFF
from webordinary.entrypoints.dashboard.mail_view import MAX_LINES, diff_view


def test_a_diff_is_shown_file_by_file() -> None:
    page, photo = diff_view(DIFF).files
    assert (page.path, page.added, page.removed) == ("index.html", 2, 1)
    assert [line.kind for line in page.lines] == ["hunk", "context", "removed", "added", "added", "context"]
    assert photo.path == "photos/vase.png"
    assert [line.kind for line in photo.lines] == ["note", "note"]


def test_a_removed_line_of_dashes_is_not_taken_for_a_header() -> None:
    diff = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n--- old\n+++ new\n"
    assert [(line.kind, line.text) for line in diff_view(diff).files[0].lines] == [
        ("hunk", "@@ -1 +1 @@"),
        ("removed", "-- old"),
        ("added", "++ new"),
    ]


def test_what_stands_before_the_first_file_is_left_out() -> None:
    assert diff_view("commit 1234\nAuthor: Scott\n\n    New title\n").files == ()


def test_a_long_diff_is_cut_and_says_so() -> None:
    diff = "diff --git a/a b/a\n@@ -1 +1 @@\n" + "+x\n" * MAX_LINES
    view = diff_view(diff)
    assert view.cut
    assert len(view.files[0].lines) < MAX_LINES
