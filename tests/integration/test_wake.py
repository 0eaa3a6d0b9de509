"""Processes wake each other by datagrams: quickly when all is well, never at the price of waiting or failing."""

from __future__ import annotations

import contextlib
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

from webordinary.adapters.files.wake import MAX_DRAINED, Listener, SocketNotifier, WakeBus, listener_name
from webordinary.adapters.sqlite.claims import SqliteClaims
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.jobs import SqliteClaimRequests, SqliteJobs
from webordinary.model.claims import StartedJob
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


def test_a_ticket_reaches_the_owner_and_a_claim_request_every_worker(offering: Offering) -> None:
    offering.start(AMELIA_SCOTT, "c1")
    offering.notifier.notify_owner(_job(AMELIA_SCOTT))
    offering.notifier.notify_owner(_job(BAKERY_ANN))
    offering.notifier.notify_unclaimed()
    assert offering.heard() == {"c1": ["ticket amelia#scott", "unclaimed"], "c2": ["unclaimed"]}


def test_a_key_that_waits_alone_wakes_the_same_idle_worker_each_time(offering: Offering) -> None:
    offering.wait_for_worker(BAKERY_ANN)
    offering.notifier.notify_unclaimed(BAKERY_ANN)
    first = offering.heard()
    offering.notifier.notify_unclaimed(BAKERY_ANN)
    assert (sorted(first.values()), offering.heard()) == ([[], ["unclaimed"]], first)


@pytest.mark.parametrize("busy", ["c1", "c2"])
def test_a_busy_worker_is_not_offered_a_key_while_another_one_is_idle(offering: Offering, busy: str) -> None:
    offering.start(AMELIA_SCOTT, busy)
    offering.wait_for_worker(BAKERY_ANN)
    offering.notifier.notify_unclaimed(BAKERY_ANN)
    assert offering.heard()[busy] == []


def test_keys_that_wait_together_wake_every_worker(offering: Offering) -> None:
    for key in (AMELIA_SCOTT, BAKERY_ANN):
        offering.wait_for_worker(key)
    offering.notifier.notify_unclaimed(BAKERY_ANN)
    assert offering.heard() == {"c1": ["unclaimed"], "c2": ["unclaimed"]}


@pytest.mark.parametrize("killed", ["c1", "c2"])
def test_a_killed_worker_is_not_offered_a_key(offering: Offering, killed: str) -> None:
    offering.kill(killed)
    offering.wait_for_worker(BAKERY_ANN)
    offering.notifier.notify_unclaimed(BAKERY_ANN)
    assert list(offering.heard().values()) == [["unclaimed"]]


def test_every_worker_is_woken_for_a_key_that_was_offered_and_is_not_taken(offering: Offering) -> None:
    offering.wait_for_worker(BAKERY_ANN)
    offering.notifier.notify_unclaimed(BAKERY_ANN)
    offering.heard()
    assert (offering.looks_due, offering.notifier.run_once(NOON)) == (1, 1)
    assert offering.heard() == {"c1": ["unclaimed"], "c2": ["unclaimed"]}


def test_no_worker_is_woken_after_the_key_was_taken(offering: Offering) -> None:
    offering.wait_for_worker(BAKERY_ANN)
    offering.notifier.notify_unclaimed(BAKERY_ANN)
    offering.heard()
    offering.claims.claim_and_start(BAKERY_ANN, "c1", NOON)
    assert offering.notifier.run_once(NOON) == 0
    assert offering.heard() == {"c1": [], "c2": []}


class Offering:
    """Two workers on one machine, a database and what the workflow wakes them with."""

    def __init__(self, bus: WakeBus, listen: Callable[[str], Listener], folder: Path) -> None:
        self._db = Database(folder / "webordinary.db")
        self._db.migrate()
        self.jobs, self.claims = SqliteJobs(self._db), SqliteClaims(self._db)
        self.looks_due = 0
        hints = SqliteClaimRequests(self._db)
        self.notifier = SocketNotifier(bus, self.claims, hints, self._count, sleep=lambda seconds: None)
        self._ears = {name: listen(listener_name(name)) for name in ("c1", "c2")}

    def _count(self) -> None:
        self.looks_due += 1

    def wait_for_worker(self, key: ProjectUser) -> None:
        self.jobs.record(_new_job(key), NOON, ready=True)

    def start(self, key: ProjectUser, worker: str) -> None:
        self.wait_for_worker(key)
        assert isinstance(self.claims.claim_and_start(key, worker, NOON), StartedJob)

    def kill(self, worker: str) -> None:
        """The file of its socket stays."""
        self._ears.pop(worker)._sock.close()

    def heard(self) -> dict[str, list[str]]:
        return {name: ear.wait(0.0)[0] for name, ear in self._ears.items()}

    def close(self) -> None:
        self._db.close()


@pytest.fixture
def offering(bus: WakeBus, listen: Callable[[str], Listener], tmp_path: Path) -> Iterator[Offering]:
    with contextlib.closing(Offering(bus, listen, tmp_path)) as world:
        yield world


def _job(key: ProjectUser) -> Job:
    return _new_job(key).recorded(1, NOON, ready=True)


def _new_job(key: ProjectUser) -> NewJob:
    return NewJob(f"job-{key}", key, "thread", "mail", Command.EDIT)
