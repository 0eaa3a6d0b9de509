"""After a power cut all that was answered is there: commits, releases, raw mails, replies.

Judged by git, release folders and Maildir alone, on a disk that loses all that was not synced.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.forgetful_disk import PROGRAMS, ForgetfulDisk, forgetful_disk
from tests.acceptance.killing import kill_tree
from tests.acceptance.waiting import Customer, in_flight, replies, wait_until
from tests.conftest import Up

CUTS = int(os.environ.get("POWER_CUTS", "3"))
MAILS_PER_LIFE = 4
PROJECTS = ("amelia", "bakery")
CUSTOMERS = (Customer("scott@example.com"), Customer("ann@example.com"))

pytestmark = [pytest.mark.needs(*PROGRAMS), pytest.mark.timeout(900)]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[ForgetfulDisk]:
    with forgetful_disk(tmp_path) as disk:
        yield disk


def test_what_was_answered_before_a_power_cut_is_whole_after_it(
    start_up: Callable[..., Up], disk: ForgetfulDisk, tmp_path: Path
) -> None:
    data = disk.path / "data"
    up = start_up(data=data, prefix=disk.as_booted())
    _onboard_bakery(data, tmp_path)
    marks: dict[str, str] = {}
    for life in range(CUTS + 1):
        for number in range(MAILS_PER_LIFE):
            mark = f"{life}-{number}"
            marks[_write(up, CUSTOMERS[number % 2], mark)] = mark
        wait_until(data, lambda: marks.keys() <= replies(data).keys(), "all answers")
        if life < CUTS:
            disk.cut_power(partial(_kill, up))
            _judge(data, marks)
            up = start_up(data=data, prefix=disk.as_booted())
    wait_until(data, lambda: in_flight(up) == 0, "the last mail")
    _judge(data, marks)
    assert up.stop() == 0


def test_mails_accepted_before_a_power_cut_are_answered_after_it(
    start_up: Callable[..., Up], disk: ForgetfulDisk, tmp_path: Path
) -> None:
    data = disk.path / "data"
    up = start_up(data=data, prefix=disk.as_booted())
    _onboard_bakery(data, tmp_path)
    marks: dict[str, str] = {}
    for life in range(CUTS):
        marks |= {_write(up, CUSTOMERS[number % 2], f"{life}-{number}"): f"{life}-{number}" for number in range(6)}
        wait_until(data, lambda: len(marks.keys() & replies(data).keys()) > len(marks) - 5, "an answer")  # noqa: B023
        answered = {message_id: marks[message_id] for message_id in marks.keys() & replies(data).keys()}
        disk.cut_power(partial(_kill, up))
        _judge(data, answered)
        up = start_up(data=data, prefix=disk.as_booted())
    wait_until(data, lambda: marks.keys() <= replies(data).keys() and in_flight(up) == 0, "all answers")
    _judge(data, marks)
    assert up.stop() == 0


def _onboard_bakery(data: Path, tmp_path: Path) -> None:
    """A site whose repository is made here from a folder."""
    site = tmp_path / "bakery"
    site.mkdir()
    (site / "index.html").write_text("<!doctype html><title>Bakery</title><main><h1>Bakery</h1><p>Bread.</p></main>")
    args = ("project", "add", "bakery", "--repo", str(site), "--user", "ann", "--sender", "ann@example.com")
    command = [sys.executable, "-m", "webordinary", *args, "--data", str(data)]
    subprocess.run(command, check=True, capture_output=True)


def _write(up: Up, customer: Customer, mark: str) -> str:
    return customer.write(up, f'Add a paragraph "note {mark}." to the homepage', subject=f"note {mark}")


def _kill(up: Up) -> None:
    kill_tree(up.process.pid)
    up.process.communicate(timeout=60)


def _judge(data: Path, answered: dict[str, str]) -> None:
    found = replies(data)
    assert {message_id: len(found.get(message_id, ())) for message_id in answered} == dict.fromkeys(answered, 1)
    for repository in [*(data / "origins").glob("*.git"), *(data / "mirrors").glob("*.git")]:
        _git(repository, "fsck", "--strict")
    for stage in ("main", "what is shown"):
        history = "".join(_history(data, name, stage) for name in PROJECTS)
        published = Counter(mark for mark in answered.values() for _ in range(history.count(f"note {mark}.")))
        assert published == Counter(answered.values()), stage
    raw = b"".join(path.read_bytes() for path in (data / "mail").rglob("*") if path.is_file())
    assert {mark for mark in answered.values() if b"note %s." % mark.encode() not in raw} == set()


def _history(data: Path, project: str, stage: str) -> str:
    """The subjects of main, or of the release that visitors see, whose pages must be whole."""
    origin = data / "origins" / f"{project}.git"
    if stage == "main":
        return _git(origin, "log", "--format=%s", "main")
    shown = (data / "sites" / project / "edit" / "current").resolve()
    pages = [name for name in _git(origin, "ls-tree", "-r", "--name-only", shown.name).split() if ".html" in name]
    assert {name: (shown / name).read_text() for name in pages} == {
        name: _git(origin, "show", f"{shown.name}:{name}") for name in pages
    }
    return _git(origin, "log", "--format=%s", shown.name)


def _git(repository: Path, *args: str) -> str:
    command = ["git", f"--git-dir={repository}", *args]
    finished = subprocess.run(command, check=False, capture_output=True, text=True)
    assert finished.returncode == 0, f"{repository.name}: {' '.join(args)}: {finished.stdout}{finished.stderr}"
    return finished.stdout
