"""Where live begins, and what a comparison of the two lines of a site asks git."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import ClassVar

import pytest

from webordinary.adapters.git.command import LOCAL_SECONDS, Git
from webordinary.adapters.git.repository import GitLines, live_start
from webordinary.adapters.processes import Finished
from webordinary.jobs.history import compare

pytestmark = pytest.mark.needs("git")


class CountingGit(Git):
    """Git that counts how often it was asked what."""

    asked: ClassVar[Counter[tuple[str, ...]]] = Counter()

    def attempt(self, *args: str, stdin: bytes = b"", seconds: float = LOCAL_SECONDS) -> Finished:
        self.asked[args] += 1
        return super().attempt(*args, stdin=stdin, seconds=seconds)


def repository(folder: Path, *messages: str) -> tuple[Git, list[str]]:
    """A repository with one commit for each message, and the commits, oldest first."""
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", "init", "-q", folder], check=True)
    for message in messages:
        subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", message], cwd=folder, check=True)
    git = CountingGit(folder / ".git", "w-1", folder)
    return git, git("rev-list", "--reverse", "HEAD").split()


CHANGE = "Change the title\n\nJob-Id: job-1\n"


def test_live_begins_before_the_first_change_that_a_mail_made(tmp_path: Path) -> None:
    git, commits = repository(tmp_path, "A site", "By hand", CHANGE, "By hand again", CHANGE)
    assert live_start(git, commits[-1], "") == commits[1]
    assert live_start(git, commits[1], "") == commits[1], "no mail has changed anything yet"


def test_live_of_a_site_in_a_folder_begins_before_the_first_mail_that_changed_this_folder(tmp_path: Path) -> None:
    git, [*_, neighbour] = repository(tmp_path, "Sites", CHANGE)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "index.html").write_text("tea")
    subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
    git, [*_, own] = repository(tmp_path, CHANGE)
    assert live_start(git, own, "", "live-shop", "shop") == neighbour
    assert live_start(git, own, "", "live-web", "web") == own


def test_live_begins_with_main_where_a_mail_made_the_first_commit(tmp_path: Path) -> None:
    git, commits = repository(tmp_path, CHANGE, "By hand", CHANGE)
    assert live_start(git, commits[-1], "") == commits[-1]


def test_a_comparison_on_one_line_starts_no_git(tmp_path: Path) -> None:
    git, commits = repository(tmp_path, "A site", CHANGE, CHANGE)
    CountingGit.asked.clear()
    state = compare(GitLines(git), commits[-1], live_start(git, commits[-1], ""), "job-9", begun=False)
    assert [one.commit for one in state.waiting] == commits[1:]
    assert not CountingGit.asked


def test_a_comparison_after_a_merge_asks_git_nothing_twice(tmp_path: Path) -> None:
    git, [_, first] = repository(tmp_path, "A site", CHANGE)
    tree = git("rev-parse", "HEAD^{tree}").strip()
    beside = git("commit-tree", tree, "-p", f"{first}^", "-m", "By hand").strip()
    merge = git("commit-tree", tree, "-p", first, "-p", beside, "-m", "Merged by hand").strip()
    CountingGit.asked.clear()
    state = compare(GitLines(git), merge, live_start(git, merge, ""), "job-9", begun=False)
    assert [one.commit for one in state.waiting] == [first]
    assert max(CountingGit.asked.values()) == 1, CountingGit.asked
