"""What a change only added is taken back from between its neighbours, and nothing else is, in real git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from webordinary.adapters.git.command import Git
from webordinary.adapters.git.repository import take_out_added_lines, without_added_lines

pytestmark = pytest.mark.needs("git")
PAGE = "<main>\n<p>one</p>\n<p>two</p>\n</main>\n"
FIRST = PAGE.replace("<p>two", "<img a>\n<p>two")


def undone(folder: Path, *states: str | None) -> str | None:
    """The last of these states without what the second one added to the first."""
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", "init", "-q", folder], check=True)
    for state in states:
        if state is not None:
            (folder / "page.html").write_bytes(state.encode())
        subprocess.run(["git", "add", "."], cwd=folder, check=True)
        subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "-"], cwd=folder, check=True)
    git = Git(folder / ".git", "w-1", folder)
    commits = git("rev-list", "--reverse", "HEAD").split()
    content = without_added_lines(git, commits[1], "page.html")
    return None if content is None else content.decode()


@pytest.mark.parametrize(
    "beside",
    ["<img b>\n<img a>", "<img a>\n<img b>", "<img b>\n<img a>\n<img c>"],
    ids=["above", "below", "between"],
)
def test_what_was_added_beside_it_stays(tmp_path: Path, beside: str) -> None:
    later = FIRST.replace("<img a>", beside)
    assert undone(tmp_path, PAGE, FIRST, later) == later.replace("<img a>\n", "")


def test_lines_and_their_ends_stay_as_they_are(tmp_path: Path) -> None:
    page, first = PAGE.replace("\n", "\r\n").rstrip(), FIRST.replace("\n", "\r\n").rstrip()
    later = first.replace("<img a>", "<img b>\r\n<img a>")
    assert undone(tmp_path, page, first, later) == later.replace("<img a>\r\n", "")


def test_the_same_line_added_by_somebody_else_is_not_taken_for_it(tmp_path: Path) -> None:
    changed = FIRST.replace("<img a>", "<img z>")
    assert undone(tmp_path, PAGE, FIRST, changed, changed.replace("<p>one", "<img a>\n<p>one")) is None


@pytest.mark.parametrize(
    ("second", "later"),
    [
        (PAGE.replace("two", "three"), PAGE.replace("two", "three").replace("</main>", "<p>x</p>\n</main>")),
        (FIRST, FIRST.replace("<img a>", "<img a lazy>")),
        (FIRST.replace("<img a>", "<ul>\n</ul>"), FIRST.replace("<img a>", "<ul>\n<li>x</li>\n</ul>")),
        (FIRST.replace("</main>", "<img b>\n</main>"), FIRST),
    ],
    ids=["it replaced something", "it was changed", "something stands within it", "a part of it is gone"],
)
def test_what_is_not_there_as_it_was_added_is_left_to_the_customer(tmp_path: Path, second: str, later: str) -> None:
    assert undone(tmp_path, PAGE, second, later) is None


@pytest.mark.parametrize(
    ("second", "later"),
    [
        ("| Pot | Price |\n|---|---|\n| Bowl | 30 |\n", "| Cup | 12 |\n"),
        ("Pot | Price\n:-- | --:\nBowl | 30\n", "Cup | 12\n"),
        ("menu:\n  main:\n", "    weight: 5\n"),
        ("- Bowls\n", "\n  - with a lid\n"),
    ],
    ids=["a table", "a table without borders", "a setting", "a list"],
)
def test_what_others_added_into_it_is_not_left_without_it(tmp_path: Path, second: str, later: str) -> None:
    page = "Words.\n\n"
    assert undone(tmp_path, page, page + second, page + second + later) is None


def test_a_page_that_the_change_made_is_not_taken_from_under_what_others_added(tmp_path: Path) -> None:
    assert undone(tmp_path, None, PAGE, f"{PAGE}<p>three</p>\n") is None


def test_photos_in_markdown_stand_in_blocks_of_their_own_and_are_told_apart(tmp_path: Path) -> None:
    page, first = "# Kiln\n\nWords.\n\nMore.\n", "# Kiln\n\nWords.\n\n![a](a.jpg)\n\nMore.\n"
    later = first.replace("![a](a.jpg)", "![b](b.jpg)\n\n![a](a.jpg)")
    assert undone(tmp_path, page, first, later) == later.replace("![a](a.jpg)\n\n", "")


def test_a_change_that_did_not_touch_the_file_takes_nothing_from_it(tmp_path: Path) -> None:
    assert undone(tmp_path, PAGE, PAGE, FIRST) is None


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    assert undone(tmp_path / "site", PAGE, FIRST) == PAGE
    page, outside = tmp_path / "site" / "page.html", tmp_path / "outside"
    outside.write_text("as it was")
    page.unlink()
    page.symlink_to(outside)
    git = Git(tmp_path / "site" / ".git", "w-1", tmp_path / "site")
    assert not take_out_added_lines(git, git("rev-parse", "HEAD").strip(), ["page.html"])
    assert outside.read_text() == "as it was"
