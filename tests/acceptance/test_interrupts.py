"""A mail on another thread interrupts; nothing that was asked for is dropped. Real processes, a watched agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.acceptance.chaos_house import House, Writer, opened, until
from tests.acceptance.world import replies, text_of

Opened = Callable[..., House]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Opened]:
    """A house with a server and one worker, with such settings."""
    with ExitStack() as closing:
        yield lambda **settings: closing.enter_context(opened(House(tmp_path / "house", settings)))


def answer(house: House, message_id: str) -> str:
    """The one answer to a mail, once it is there."""
    until(lambda: message_id in replies(house.data), f"an answer to {message_id}")
    [reply] = replies(house.data)[message_id]
    return text_of(reply)


def answered_in_order(house: House) -> list[str]:
    """The Message-IDs that were answered, in the order in which the answers left."""
    paths = sorted((house.data / "outbox" / "new").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    by_path = {path: next(line for line in path.read_text().splitlines() if line.startswith("In-Reply-To")) for path in paths}
    return [by_path[path].split(":", 1)[1].strip() for path in paths]


def page(house: House, mark: str, revision: str = "main") -> list[str]:
    """The steps of a note as they stand in the origin."""
    return house.git("amelia", "show", f"{revision}:notes/{mark}.html").splitlines()


def written(mark: str, steps: range, of: int) -> list[str]:
    return [f"<p>note {mark} step {step} of {of}</p>" for step in steps]


def test_a_mail_on_another_thread_interrupts_and_the_interrupted_work_goes_on_from_where_it_was(house: Opened) -> None:
    home = house()
    scott = Writer(home)
    first = scott.note("a", steps=5, gate=1)
    home.told("waits", "a")
    second = scott.note("b")
    assert answer(home, second)
    [told] = home.journal("interrupted", "a")
    # The reconciler looks each 20 s: the interrupt came by itself, long before.
    queued_at = next(e.at for e in home.events("JobQueued") if e.at.timestamp() > home.journal("waits", "a")[0]["at"])
    assert told["at"] - queued_at.timestamp() < 5.0
    home.told("started", "a", times=2)
    branch = home.git("amelia", "for-each-ref", "--format=%(refname)", "--contains=main^", "refs/heads/thread-*").split()
    saved = next(name for name in branch if "Saved-For:" in home.git("amelia", "log", "-1", "--format=%B", name))
    assert page(home, "a", saved) == written("a", range(1, 5), 5)
    home.open_gate("a")
    assert answer(home, first)
    assert answered_in_order(home) == [second, first]
    assert page(home, "a") == written("a", range(1, 6), 5)
    assert page(home, "b") == written("b", range(1, 3), 2)
    assert [line["found"] for line in home.journal("started", "a")] == [0, 4]
    assert "Saved-For" not in home.git("amelia", "log", "--format=%B", "main")
    assert not home.journal("overlapped")
    assert home.close() == [0, 0]


def test_a_mail_on_the_same_thread_waits_its_turn(house: Opened) -> None:
    home = house()
    scott = Writer(home)
    first = scott.note("a", gate=1)
    home.told("waits", "a")
    second = scott.note("b", first)
    until(lambda: len(home.events("JobQueued")) == 2, "the second mail to be queued")
    status = scott.write("status", "status")
    said = answer(home, status)  # answered at once, while the job runs
    assert "Note a: in work now" in said
    assert "Note b: waits its turn" in said
    home.open_gate("a")
    assert answer(home, first)
    assert answer(home, second)
    assert answered_in_order(home) == [status, first, second]
    assert not home.journal("interrupted")


def test_after_three_interruptions_a_job_runs_to_its_end(house: Opened) -> None:
    home = house()
    scott = Writer(home)
    first = scott.note("a", steps=3, gate=1)
    for times in range(1, 4):
        home.told("waits", "a", times)
        assert answer(home, scott.note(f"b{times}"))
        home.told("interrupted", "a", times)
    home.told("waits", "a", 4)
    last = scott.note("c")
    until(lambda: len(home.events("JobQueued")) >= 5, "the last mail to be queued")
    assert answer(home, scott.write("status", "status")).count("in work now") == 1
    home.open_gate("a")
    assert answer(home, first)
    assert answer(home, last)
    order = answered_in_order(home)
    assert order.index(first) < order.index(last)
    assert len(home.journal("interrupted", "a")) == 3
    assert page(home, "a") == written("a", range(1, 4), 3)


def test_stop_ends_its_threads_running_job_for_good(house: Opened) -> None:
    home = house()
    scott = Writer(home)
    running = scott.note("a", gate=1)
    home.told("waits", "a")
    waiting = scott.note("b", running)
    until(lambda: len(home.events("JobQueued")) == 2, "the second mail to be queued")
    stop = scott.write("stop", "Re: Note a", running)
    assert "Stopped" in answer(home, stop)
    assert "Stopped" in answer(home, running)
    assert "Stopped" in answer(home, waiting)
    home.told("interrupted", "a")
    assert answer(home, scott.note("c"))  # the key goes on
    assert not home.journal("started", "b")
    assert len(home.journal("started", "a")) == 1
    assert "note=a" not in home.git("amelia", "log", "--format=%B", "main")


def test_stop_on_another_thread_ends_nothing_here(house: Opened) -> None:
    home = house()
    scott = Writer(home)
    first = scott.note("a", gate=1)
    home.told("waits", "a")
    assert "Nothing to stop" in answer(home, scott.write("stop", "something else"))
    home.open_gate("a")
    assert "Wrote note a" in answer(home, first)
    assert not home.journal("interrupted")


def test_an_agent_that_ignores_the_interrupt_is_killed_after_the_grace_and_its_work_kept(house: Opened) -> None:
    home = house(interrupt_grace_seconds=0.5)
    scott = Writer(home)
    first = scott.note("a", steps=3, gate=1, deaf=1)
    [waiting] = home.told("waits", "a")
    second = scott.note("b")
    assert answer(home, second)
    home.told("interrupted", "a")
    assert home.journal("waits", "a")[0]["pid"] == waiting["pid"]
    home.told("started", "a", times=2)
    home.open_gate("a")
    assert answer(home, first)
    assert page(home, "a") == written("a", range(1, 4), 3)
    assert [line["found"] for line in home.journal("started", "a")] == [0, 2]


def test_a_job_that_takes_too_long_is_ended_and_its_customer_told(house: Opened) -> None:
    home = house(job_limit_seconds=1.0, interrupt_grace_seconds=0.5)
    scott = Writer(home)
    endless = scott.note("a", gate=1, deaf=1)
    assert "too long" in answer(home, endless)
    [waiting] = home.told("waits", "a")
    assert home.journal("interrupted", "a")
    assert not Path(f"/proc/{waiting['pid']}").exists()
    assert "note=a" not in home.git("amelia", "log", "--format=%B", "main")
    assert "Wrote note b" in answer(home, scott.note("b"))
