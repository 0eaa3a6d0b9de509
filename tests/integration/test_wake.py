"""Processes wake each other by datagrams: quickly when all is well, never at the price of waiting or failing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from webordinary.adapters.files.liveness import DeathWatch, LockFiles
from webordinary.adapters.files.wake import MAX_DRAINED, Listener, SocketNotifier, WakeBus, WorkerWakeups, listener_name
from webordinary.model.claims import Claim, ClaimStatus
from webordinary.model.jobs import Job, NewJob
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser

AMELIA_SCOTT, BAKERY_ANN = ProjectUser("amelia", "scott"), ProjectUser("bakery", "ann")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
LONG = 60.0  # nobody waits for so long unless something is broken

TELL = "import sys; from pathlib import Path; from webordinary.adapters.files.wake import WakeBus;"
TELL += "WakeBus(Path(sys.argv[1])).notify(sys.argv[2], sys.argv[3])"
LISTEN = "import sys; from pathlib import Path; from webordinary.adapters.files.wake import WakeBus;"
LISTEN += "ear = WakeBus(Path(sys.argv[1])).listen(sys.argv[2]); print('listens', flush=True); ear.wait(None)"


@pytest.fixture(params=["short", "deep"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A socket's address holds about 100 bytes, a data folder may lie deeper than that."""
    if request.param == "short":
        return tmp_path / "wake"
    deep = tmp_path.joinpath(*["a-folder-with-a-long-name"] * 6)
    assert len(os.fsencode(deep)) > 150
    return deep


@pytest.fixture
def bus(folder: Path) -> Iterator[WakeBus]:
    bus = WakeBus(folder)
    yield bus
    bus.close()


@pytest.fixture
def listen(bus: WakeBus) -> Iterator[Callable[[str], Listener]]:
    with ExitStack() as closing:

        def listen(name: str) -> Listener:
            listener = bus.listen(name)
            closing.callback(listener.close)
            return listener

        yield listen


@pytest.fixture
def ear(listen: Callable[[str], Listener]) -> Listener:
    return listen("worker-1")


def test_a_listener_hears_its_topic_its_name_and_nothing_else(bus: WakeBus, ear: Listener) -> None:
    bus.notify("engine", "not for you")
    bus.notify("worker-10", "nor this")
    bus.notify("worker", "for all")
    bus.send("worker-1", "for you")
    assert ear.wait(LONG) == (["for all", "for you"], [])


def test_every_listener_of_a_topic_hears_it(bus: WakeBus, ear: Listener, listen: Callable[[str], Listener]) -> None:
    other = listen("worker-2")
    bus.notify("worker", "unclaimed")
    assert [listener.wait(LONG)[0] for listener in (ear, other)] == [["unclaimed"], ["unclaimed"]]


def test_another_process_is_heard(folder: Path, ear: Listener) -> None:
    subprocess.run([sys.executable, "-c", TELL, str(folder), "worker", "hello"], check=True)
    assert ear.wait(LONG)[0] == ["hello"]


def test_a_word_that_came_before_the_wait_is_not_lost(bus: WakeBus, ear: Listener) -> None:
    bus.notify("worker", "early")
    assert ear.wait(0)[0] == ["early"]
    assert ear.wait(0)[0] == []


def test_telling_nobody_is_fine(bus: WakeBus) -> None:
    bus.notify("worker", "anybody?")
    bus.send("worker-9", "you?")


def test_a_listener_that_does_not_listen_holds_nobody_up(bus: WakeBus, ear: Listener) -> None:
    for number in range(5000):
        bus.notify("worker", f"{number}")
    heard = ear.wait(LONG)[0]
    assert 0 < len(heard) <= MAX_DRAINED
    assert heard[0] == "0"


def test_a_killed_process_leaves_a_name_that_the_next_word_clears(bus: WakeBus, folder: Path) -> None:
    killed = subprocess.Popen(
        [sys.executable, "-c", LISTEN, str(folder), "worker-2"], stdout=subprocess.PIPE, text=True
    )
    assert killed.stdout
    assert killed.stdout.readline() == "listens\n"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    assert (folder / "worker-2").exists()
    bus.notify("worker", "hello")
    assert not (folder / "worker-2").exists()


def test_a_name_that_the_next_process_takes_again_is_left_to_it(bus: WakeBus, folder: Path) -> None:
    """It may be listening already when the teller, who met the dead one, comes to clear it away."""
    with subprocess.Popen(
        [sys.executable, "-c", LISTEN, str(folder), "engine"], stdout=subprocess.PIPE, text=True
    ) as killed:
        assert killed.stdout
        assert killed.stdout.readline() == "listens\n"
        killed.kill()
    bus.notify("engine", "hello")
    assert (folder / "engine").exists()


def test_a_name_left_by_a_killed_process_can_be_taken_again(
    bus: WakeBus, listen: Callable[[str], Listener], folder: Path
) -> None:
    listen("engine")  # not closed before the next, like a killed process's
    again = listen("engine")
    bus.notify("engine", "hello")
    assert again.wait(LONG)[0] == ["hello"]
    again.close()
    assert not (folder / "engine").exists()


def test_a_poke_from_another_thread_ends_the_wait(ear: Listener) -> None:
    thread = threading.Thread(target=ear.poke)
    thread.start()
    assert ear.wait(LONG)[0] == [""]
    thread.join()


def test_a_closed_listener_may_be_poked_and_closed_again(ear: Listener) -> None:
    ear.close()
    ear.poke()
    ear.close()


def test_a_ticket_reaches_the_owner_and_a_claim_request_every_worker(
    bus: WakeBus, listen: Callable[[str], Listener], tmp_path: Path
) -> None:
    watch = DeathWatch(LockFiles(tmp_path / "locks"))
    owner, other = (WorkerWakeups(listen(listener_name(name)), watch) for name in ("c1", "c2"))
    held = Claim(AMELIA_SCOTT, "c1", 1, 0, ClaimStatus.HELD, NOON, NOON, NOON)
    tickets = SocketNotifier(bus, {AMELIA_SCOTT: held}.get)
    tickets.notify_owner(_job(AMELIA_SCOTT))
    tickets.notify_owner(_job(BAKERY_ANN))
    tickets.notify_unclaimed()
    assert owner.wait(LONG, {}, 1) == ["ticket amelia#scott", "unclaimed"]
    assert other.wait(LONG, {}, 1) == ["unclaimed"]


def _job(key: ProjectUser) -> Job:
    return NewJob("job-1", key, "thread", "mail", Command.EDIT).recorded(1, NOON, ready=True)
