"""Killed at any instant, it loses no accepted mail, answers each once and publishes each change once.

Judged by git history, release folders and Maildir alone, never by our own tables.
"""

from __future__ import annotations

import os
import random
import re
import smtplib
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.killing import kill_tree
from tests.acceptance.waiting import Customer, get, in_flight, replies, wait_for_reply, wait_until
from tests.conftest import Up

ROUNDS = int(os.environ.get("KILL_ROUNDS", "50"))
LIFE_IN_MAILS = 2
"""A life ends, at the latest, when a first mail could have been done so many times: on a slow machine it is longer, so
that some mails get done in it, and no job is cut off more often than an outage excuses."""
SHORTEST_SECONDS, LONGEST_SECONDS = 1.2, 6.0
CUSTOMERS = ("scott@example.com", "bob@example.com", "ann@example.com")
# Two users of one project change different pages: the same lines would be a conflict, which is said in words.
PAGES = dict(zip(CUSTOMERS, ("homepage", "about page", "homepage"), strict=True))
MARK = re.compile(r"note (\d+-\d+) by")


class Load:
    """Customers who write while the system comes and goes; remembers what was promised an answer."""

    def __init__(self) -> None:
        self.pause_seconds = 0.05
        self.accepted: dict[str, str] = {}  # Message-ID → mark
        self._count = 0

    def run(self, up: Up, until: threading.Event, number: int) -> None:
        """Write mail after mail; what is refused or cut off was never promised anything."""
        customer = Customer(CUSTOMERS[number % len(CUSTOMERS)])
        while not until.is_set():
            try:
                self.write(up, customer, number)
            except (OSError, smtplib.SMTPException):
                return
            until.wait(self.pause_seconds)

    def write(self, up: Up, customer: Customer, number: int) -> str:
        """One more note; the Message-ID of what was accepted."""
        self._count += 1
        mark = f"{number}-{self._count}"
        text = f'Add a paragraph "note {mark} by {customer.address}" to the {PAGES[customer.address]}'
        message_id = customer.write(up, text, subject=f"note {mark}")
        self.accepted[message_id] = mark
        return message_id


@pytest.mark.timeout(1500)
def test_killed_at_random_instants_nothing_is_lost_and_nothing_done_twice(
    start_up: Callable[..., Up], tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(10**6)
    rng, load = random.Random(seed), Load()
    up = start_up("--releases-kept", "1000")
    _onboard(up.data, tmp_path)
    longest = _longest_life(up, load)
    load.pause_seconds *= longest / SHORTEST_SECONDS  # not more mails in a longer life
    for number in range(ROUNDS):
        _live_and_die(up, load, number, rng.uniform(0.0, longest))
        up = start_up("--releases-kept", "1000")
    wait_until(up.data, lambda: load.accepted.keys() <= replies(up.data).keys(), f"all answers (seed {seed})", 600)
    wait_until(up.data, lambda: in_flight(up) == 0, f"what was accepted without a promise (seed {seed})", 300)
    answered = replies(up.data)
    assert Counter(len(found) for found in answered.values()).keys() == {1}, f"answered twice (seed {seed})"
    promised = set(load.accepted.values())
    for project in ("amelia", "bakery"):
        _judge(up, project, promised, seed)
    assert up.stop() == 0


def _judge(up: Up, project: str, promised: set[str], seed: int) -> None:
    log = _git(up.data / "origins" / f"{project}.git", "log", "--format=%x00%B", "main")
    jobs = re.findall(r"^Job-Id: (\S+)$", log, re.MULTILINE)
    assert Counter(Counter(jobs).values()).keys() <= {1}, f"{project}: a job was published twice (seed {seed})"
    pages = [get(up, project=project)] + ([get(up, "/about.html")] if project == "amelia" else [])
    shown = Counter(MARK.findall("".join(pages)))
    written = set(MARK.findall(log))
    assert set(shown.values()) <= {1}, f"{project}: a change shows twice (seed {seed})"
    assert written == set(shown), f"{project}: history and site differ (seed {seed})"
    commits = _git(up.data / "origins" / f"{project}.git", "rev-list", "main").split()
    releases = [path.name for path in (up.data / "sites" / project / "edit" / "releases").iterdir()]
    assert all(any(commit.startswith(name) for commit in commits) for name in releases), "a release of no commit"
    missing = {mark for mark in promised if _project_of(mark) == project} - set(shown)
    assert not missing, f"{project}: promised but not published: {missing} (seed {seed})"


def _project_of(mark: str) -> str:
    return "bakery" if int(mark.partition("-")[0]) % len(CUSTOMERS) == 2 else "amelia"


def _longest_life(up: Up, load: Load) -> float:
    began = time.monotonic()
    wait_for_reply(up, load.write(up, Customer(CUSTOMERS[0]), 0))
    return min(LONGEST_SECONDS, max(SHORTEST_SECONDS, LIFE_IN_MAILS * (time.monotonic() - began)))


def _live_and_die(up: Up, load: Load, number: int, seconds: float) -> None:
    over = threading.Event()
    customers = [threading.Thread(target=load.run, args=(up, over, number + shift)) for shift in range(2)]
    for customer in customers:
        customer.start()
    time.sleep(seconds)  # the random instant itself, not a wait for anything
    kill_tree(up.process.pid)
    over.set()
    up.process.communicate(timeout=60)
    for customer in customers:
        customer.join(timeout=60)


def _onboard(data: Path, tmp_path: Path) -> None:
    site = tmp_path / "bakery"
    site.mkdir()
    (site / "index.html").write_text("<!doctype html><title>Bakery</title><main><h1>Bakery</h1><p>Bread.</p></main>")
    for name, repo, user, sender in (
        ("amelia", data / "origins" / "amelia.git", "bob", "bob@example.com"),
        ("bakery", site, "ann", "ann@example.com"),
    ):
        args = ["project", "add", name, "--repo", str(repo), "--user", user, "--sender", sender, "--data", str(data)]
        subprocess.run([sys.executable, "-m", "webordinary", *args], check=True, capture_output=True)


def _git(repo: Path, *args: str) -> str:
    return subprocess.run(["git", f"--git-dir={repo}", *args], check=True, capture_output=True, text=True).stdout
