"""A mail on another thread interrupts; nothing that was asked for is dropped. Real processes, a watched agent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.chaos import ChaosCustomer, ChaosHarness, answer, lives, opened, page, until, written

GRACE_SECONDS = 3.0  # a deaf agent has to write down in it that it was asked
JOB_LIMIT_SECONDS = 15.0  # one agent has to reach its gate in it, another to come to its end


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChaosHarness]:
    """A server and one worker. The tests use it one after another, each with notes of its own."""
    with opened(ChaosHarness(tmp_path_factory.mktemp("interrupts") / "house")) as harness:
        yield harness
        assert harness.close() == [0, 0]
        assert not harness.journal("overlapped")


def answered_in_order(harness: ChaosHarness) -> list[str]:
    """The Message-IDs that were answered, in the order in which the answers left."""
    paths = sorted((harness.data / "outbox" / "new").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    lines = [line for path in paths for line in path.read_text().splitlines() if line.startswith("In-Reply-To:")]
    return [line.split(":", 1)[1].strip() for line in lines]


def queued(harness: ChaosHarness) -> int:
    """How many mails have reached their key's queue so far."""
    return len({logged.event.job_id for logged in harness.events("JobQueued")})


def test_a_mail_on_another_thread_interrupts_and_the_interrupted_work_goes_on_from_where_it_was(
    home: ChaosHarness,
) -> None:
    scott = ChaosCustomer(home)
    first = scott.note("a", steps=5, gate=1)
    [waiting] = home.await_journal("waits", "a")
    second = scott.note("b")
    assert answer(home, second)
    [told] = home.journal("interrupted", "a")
    # The reconciler looks each 20 s: the interrupt came by itself, long before.
    queued_at = next(e.at.timestamp() for e in home.events("JobQueued") if e.at.timestamp() > waiting["at"])
    assert told["at"] - queued_at < 10.0
    home.await_journal("waits", "a", times=2)
    assert page(home, "a", saved_branch(home)) == written("a", range(1, 5), 5)
    home.open_gate("a")
    assert answer(home, first)
    assert answered_in_order(home)[-2:] == [second, first]
    assert page(home, "a") == written("a", range(1, 6), 5)
    assert page(home, "b") == written("b", range(1, 3), 2)
    assert [line["found"] for line in home.journal("started", "a")] == [0, 4]
    assert "Saved-For" not in home.git("amelia", "log", "--format=%B", "main")


def saved_branch(harness: ChaosHarness) -> str:
    """The one thread's branch whose newest commit is unfinished work."""
    names = harness.git("amelia", "for-each-ref", "--format=%(refname)", "refs/heads/thread-*").split()
    [name] = [name for name in names if "\nSaved-For: " in harness.git("amelia", "log", "-1", "--format=%B", name)]
    return name


def test_a_mail_on_the_same_thread_waits_its_turn(home: ChaosHarness) -> None:
    scott, before = ChaosCustomer(home), queued(home)
    first = scott.note("c", gate=1)
    home.await_journal("waits", "c")
    second = scott.note("d", first)
    until(lambda: queued(home) == before + 2, "the second mail to be queued")
    said = answer(home, scott.write("status", "status"))  # answered at once, while the job runs
    assert "Note c: in work now" in said
    assert "Note d: waits its turn" in said
    home.open_gate("c")
    assert answer(home, first)
    assert answer(home, second)
    [ended] = home.journal("ended", "c")
    assert ended["at"] < home.journal("started", "d")[0]["at"]
    assert not home.journal("interrupted", "c")


def test_after_three_interruptions_a_job_runs_to_its_end(home: ChaosHarness) -> None:
    scott, before = ChaosCustomer(home), queued(home)
    first = scott.note("e", steps=3, gate=1)
    for times in range(1, 4):
        home.await_journal("waits", "e", times)
        assert answer(home, scott.note(f"e{times}"))
        home.await_journal("interrupted", "e", times)
    home.await_journal("waits", "e", 4)
    last = scott.note("f")
    until(lambda: queued(home) == before + 5, "the last mail to be queued")
    assert "Note e: in work now" in answer(home, scott.write("status", "status"))
    home.open_gate("e")
    assert answer(home, first)
    assert answer(home, last)
    [ended] = home.journal("ended", "e")
    assert ended["at"] < home.journal("started", "f")[0]["at"]
    assert len(home.journal("interrupted", "e")) == 3
    assert page(home, "e") == written("e", range(1, 4), 3)


def test_stop_ends_its_threads_jobs_for_good(home: ChaosHarness) -> None:
    scott, before = ChaosCustomer(home), queued(home)
    running = scott.note("g", gate=1)
    home.await_journal("waits", "g")
    waiting = scott.note("h", running)
    until(lambda: queued(home) == before + 2, "the second mail to be queued")
    stop = scott.write("stop", "Re: Note g", running)
    assert "Stopped" in answer(home, stop)
    assert "Stopped" in answer(home, running)
    assert "Stopped" in answer(home, waiting)
    home.await_journal("interrupted", "g")
    assert "Wrote note i" in answer(home, scott.note("i"))  # the key goes on
    assert not home.journal("started", "h")
    assert len(home.journal("started", "g")) == 1
    assert "note=g" not in home.git("amelia", "log", "--format=%B", "main")


def test_stop_on_another_thread_ends_nothing_here(home: ChaosHarness) -> None:
    scott = ChaosCustomer(home)
    first = scott.note("j", gate=1)
    home.await_journal("waits", "j")
    assert "Nothing to stop" in answer(home, scott.write("stop", "something else"))
    home.open_gate("j")
    assert "Wrote note j" in answer(home, first)
    assert not home.journal("interrupted", "j")


def test_an_agent_that_ignores_the_interrupt_is_killed_after_the_grace_and_its_work_kept(tmp_path: Path) -> None:
    with opened(ChaosHarness(tmp_path / "house", {"interrupt_grace_seconds": GRACE_SECONDS})) as home:
        scott = ChaosCustomer(home)
        first = scott.note("a", steps=3, gate=1, deaf=1)
        [waiting] = home.await_journal("waits", "a")
        assert answer(home, scott.note("b"))
        assert len(home.journal("interrupted", "a")) == 1
        assert not lives(waiting["pid"])
        home.await_journal("waits", "a", times=2)
        home.open_gate("a")
        assert answer(home, first)
        assert page(home, "a") == written("a", range(1, 4), 3)
        assert [line["found"] for line in home.journal("started", "a")] == [0, 2]


def test_a_job_that_takes_too_long_is_ended_and_its_customer_told(tmp_path: Path) -> None:
    settings = {"job_limit_seconds": JOB_LIMIT_SECONDS, "interrupt_grace_seconds": GRACE_SECONDS}
    with opened(ChaosHarness(tmp_path / "house", settings)) as home:
        scott = ChaosCustomer(home)
        endless = scott.note("a", gate=1, deaf=1)
        [waiting] = home.await_journal("waits", "a")
        assert "too long" in answer(home, endless)
        assert home.journal("interrupted", "a")
        assert not lives(waiting["pid"])
        assert "note=a" not in home.git("amelia", "log", "--format=%B", "main")
        assert "Wrote note b" in answer(home, scott.note("b"))
