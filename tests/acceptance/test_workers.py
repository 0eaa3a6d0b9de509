"""Workers that are killed, frozen, stopped or let down by their agents. Real processes, a watched agent.

Judged by git history, Maildir and the agents' own journal.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from tests.acceptance.waiting import replies
from tests.harness.chaos import ChaosCustomer, ChaosHarness, agents, answer, lives, opened, page, until, written

Opened = Callable[..., ChaosHarness]
SHORT_LEASE = {"lease_seconds": 5.0, "renew_seconds": 1.0}
NO_END_OF_LEASE = {"lease_seconds": 3600.0}
GAVE_UP = "We could not do this"
WAITING_GIT = """\
#!{python} -IS
# Waits before it first moves the main of an origin, and moves it only when told to: a push from the past.
import os, pathlib, subprocess, sys, time
folder = pathlib.Path({folder!r})
if "update-ref" in sys.argv:
    moves = sys.stdin.buffer.read()
    is_first = b" refs/heads/main " in moves and not (folder / "waits").exists()
    if is_first:
        (folder / "waits").touch()
        while not (folder / "go").exists():
            time.sleep(0.02)
    code = subprocess.run([{git!r}, *sys.argv[1:]], input=moves).returncode
    if is_first:
        (folder / "pushed").write_text(str(code))
    sys.exit(code)
os.execv({git!r}, sys.argv)
"""


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Opened]:
    """Opens a data folder with a server and some workers, with such settings."""
    with ExitStack() as closing:

        def open_harness(workers: int = 1, **settings: object) -> ChaosHarness:
            return closing.enter_context(opened(ChaosHarness(tmp_path / "house", settings), workers))

        yield open_harness


def jobs_on_main(harness: ChaosHarness, mark: str) -> int:
    """How many commits of main carry out this note."""
    log = harness.git("amelia", "log", "--format=%x00%B", "main")
    return sum(1 for message in log.split("\0") if f"note={mark} " in message and "\nJob-Id: " in message)


def dead_letter(harness: ChaosHarness) -> str:
    """Why the one mail was given up."""
    until(lambda: harness.events("DeadLettered"), "the dead letter")
    [letter] = harness.events("DeadLettered")
    return str(letter.event.data["reason"])


def test_what_a_killed_worker_left_running_is_ended_before_its_job_runs_again(harness: Opened) -> None:
    home = harness(workers=2, **NO_END_OF_LEASE)
    mail = ChaosCustomer(home).note("a", steps=3, gate=1)
    [orphan] = home.await_journal("waits", "a")
    home.hand_of(orphan["worker"]).kill()
    home.await_journal("started", "a", times=2)
    assert not lives(orphan["pid"])
    home.open_gate("a")
    assert "Wrote note a" in answer(home, mail)
    assert not home.journal("overlapped")
    assert home.journal("started", "a")[1]["worker"] != orphan["worker"]
    assert page(home, "a") == written("a", range(1, 4), 3)
    assert jobs_on_main(home, "a") == 1


def test_a_frozen_worker_loses_its_key_and_does_nothing_when_it_wakes(harness: Opened) -> None:
    home = harness(workers=2, **SHORT_LEASE)
    mail = ChaosCustomer(home).note("a", steps=3, gate=1)
    [first] = home.await_journal("waits", "a")
    frozen = home.hand_of(first["worker"])
    home.freeze(frozen)
    [_, second] = home.await_journal("started", "a", times=2)
    assert second["worker"] != first["worker"]
    assert not lives(first["pid"]), "two agents work for one key"
    home.open_gate("a")
    assert "Wrote note a" in answer(home, mail)
    history = home.git("amelia", "rev-parse", "main")
    frozen.signal(signal.SIGCONT)
    until(lambda: [e for e in home.events("ClaimLost") if e.event.worker == first["worker"]], "it to stand down")
    assert "Wrote note b" in answer(home, ChaosCustomer(home).note("b"))
    assert home.git("amelia", "rev-parse", "main~1") == history
    assert len(replies(home.data)[mail]) == 1
    assert not home.journal("overlapped")
    assert home.close() == [0, 0, 0]


@pytest.mark.needs("bwrap")
def test_a_frozen_workers_jailed_agent_is_ended_too(harness: Opened, tmp_path: Path) -> None:
    diary = str(tmp_path / "house" / "diary")
    home = harness(workers=0, **SHORT_LEASE, jail_readable=[sys.prefix, str(Path(__file__).parent), diary])
    for _ in range(2):
        home.hire(env={"PATH": os.environ["PATH"]})
    mail = ChaosCustomer(home).note("a", gate=1)
    until(lambda: agents(home), "the agent")
    [(pid, worker)] = agents(home).items()
    home.freeze(home.hand_of(worker))
    until(lambda: set(agents(home).values()) - {worker}, "the takeover")
    assert pid not in agents(home), "two agents work for one key"
    home.open_gate("a")
    assert "Wrote note a" in answer(home, mail)


def test_a_push_from_the_past_is_refused_by_the_origin(harness: Opened, tmp_path: Path) -> None:
    home = harness(workers=0, **SHORT_LEASE)
    waiting = tmp_path / "bin" / "git"
    waiting.parent.mkdir()
    script = WAITING_GIT.format(python=sys.executable, folder=str(tmp_path), git=str(home.path / "git"))
    waiting.write_text(script)
    waiting.chmod(0o755)
    frozen = home.hire(env={"PATH": str(waiting.parent)})
    mail = ChaosCustomer(home).note("a")
    until((tmp_path / "waits").exists, "the worker to push")
    home.freeze(frozen)
    home.hire()
    assert "Wrote note a" in answer(home, mail)
    history = home.git("amelia", "rev-parse", "main")
    (tmp_path / "go").touch()
    until((tmp_path / "pushed").exists, "the old push")
    assert (tmp_path / "pushed").read_text() != "0"
    frozen.signal(signal.SIGCONT)
    stale = home.journal("started", "a")[0]["worker"]
    until(lambda: [e for e in home.events("ClaimLost") if e.event.worker == stale], "it to stand down")
    assert home.git("amelia", "rev-parse", "main") == history
    assert jobs_on_main(home, "a") == 1
    assert len(replies(home.data)[mail]) == 1


def test_a_worker_told_to_stop_saves_its_job_and_another_goes_on_from_there(harness: Opened) -> None:
    home = harness(interrupt_grace_seconds=2.0)
    mail = ChaosCustomer(home).note("a", steps=4, gate=1)
    home.await_journal("waits", "a")
    [leaving] = home.hands
    home.hire()
    assert leaving.stop() == 0
    home.await_journal("started", "a", times=2)
    home.open_gate("a")
    assert "Wrote note a" in answer(home, mail)
    assert [line["found"] for line in home.journal("started", "a")] == [0, 3]
    assert page(home, "a") == written("a", range(1, 5), 4)
    assert jobs_on_main(home, "a") == 1


def test_all_of_it_told_to_stop_saves_its_jobs_and_goes_on_with_them_when_it_is_started_again(tmp_path: Path) -> None:
    home = ChaosHarness(tmp_path / "house")
    try:
        stopped = home.open(workers=1)
        mail = ChaosCustomer(home).note("a", steps=4, gate=1)
        home.await_journal("waits", "a")
        assert stopped.stop() == 0
        assert home.journal("interrupted", "a"), "it was ended, and not asked"
        home.open_gate("a")
        home.open(workers=1)
        assert "Wrote note a" in answer(home, mail)
        assert [line["found"] for line in home.journal("started", "a")] == [0, 3]
        assert [e.event.data["attempt"] for e in home.events("JobStarted")] == [1, 1]
        assert [e.event.data["why"] for e in home.events("JobRequeued")] == ["stopped"]
        assert not home.events("OutageExcused")
    finally:
        home.raze()


def test_a_worker_told_to_stop_saves_even_what_a_deaf_agent_did(harness: Opened) -> None:
    home = harness(interrupt_grace_seconds=1.0)
    mail = ChaosCustomer(home).note("a", steps=4, gate=1, deaf=1)
    [orphan] = home.await_journal("waits", "a")
    [leaving] = home.hands
    assert leaving.stop() == 0
    assert not lives(orphan["pid"])
    home.hire()
    home.await_journal("started", "a", times=2)
    home.open_gate("a")
    assert "Wrote note a" in answer(home, mail)
    assert [line["found"] for line in home.journal("started", "a")] == [0, 3]


def test_a_worker_told_to_stop_lets_a_quick_job_finish(harness: Opened) -> None:
    home = harness()
    mail = ChaosCustomer(home).note("a", gate=1)
    home.await_journal("waits", "a")
    [leaving] = home.hands
    home.hire()  # for a machine so busy that even this is not quick
    told = time.time()
    leaving.signal(signal.SIGTERM)
    home.open_gate("a")
    assert "Wrote note a" in answer(home, mail)
    assert leaving.process.wait(timeout=120) == 0
    assert all(line["at"] - told > 2.0 for line in home.journal("interrupted")), "so long it may take"


def test_a_job_whose_origin_is_away_is_tried_again_until_it_is_back(harness: Opened) -> None:
    home = harness()
    origin = home.data / "origins" / "amelia.git"
    origin.rename(origin.with_suffix(".away"))
    mail = ChaosCustomer(home).note("a")
    until(lambda: home.events("JobRequeued"), "the first try to fail")
    assert "does not answer" in str(home.events("JobRequeued")[0].event.data["reason"])
    origin.with_suffix(".away").rename(origin)
    assert "Wrote note a" in answer(home, mail)
    assert jobs_on_main(home, "a") == 1
    until(lambda: home.events("JobSettled"), "the end to be told")
    attempts = [e.event.data["attempt"] for e in home.events("JobStarted")]
    assert attempts == list(range(1, len(attempts) + 1))


def test_a_job_that_always_fails_is_given_up_with_one_honest_answer(harness: Opened) -> None:
    home = harness()
    origin = home.data / "origins" / "amelia.git"
    origin.rename(origin.with_suffix(".away"))
    scott = ChaosCustomer(home)
    mail = scott.note("a")
    assert GAVE_UP in answer(home, mail)
    until(lambda: home.events("JobSettled"), "the end to be told")
    started = [e.at for e in home.events("JobStarted")]
    assert len(started) == 3
    assert started[2] - started[1] >= timedelta(seconds=3), "the second pause is 3 s or more, the first 0.2 s or less"
    assert "does not answer" in dead_letter(home)
    origin.with_suffix(".away").rename(origin)
    assert "Wrote note b" in answer(home, scott.note("b", mail))  # its thread goes on
    assert len(replies(home.data)[mail]) == 1


def test_an_agent_that_says_no_is_not_asked_again(harness: Opened) -> None:
    home = harness()
    scott = ChaosCustomer(home)
    mail = scott.note("a", code=3)
    assert GAVE_UP in answer(home, mail)
    assert len(home.journal("failed", "a")) == 1
    assert "ended with 3: the test said so" in dead_letter(home)
    assert "Wrote note b" in answer(home, scott.note("b"))
    assert len(replies(home.data)[mail]) == 1


def test_a_job_that_takes_its_workers_down_with_it_is_given_up_after_three(harness: Opened) -> None:
    home = harness()
    scott = ChaosCustomer(home)
    mail = scott.note("a", gate=1)
    for times in range(1, 4):
        home.await_journal("waits", "a", times)
        victim = home.hands[-1]
        home.hire()
        victim.kill()
    assert GAVE_UP in answer(home, mail)
    assert len(home.journal("started", "a")) == 3
    assert not any(lives(line["pid"]) for line in home.journal("started", "a"))
    assert "started 3 times" in dead_letter(home)
    assert "Wrote note b" in answer(home, scott.note("b"))
    assert len(replies(home.data)[mail]) == 1
    assert not home.journal("overlapped")
