"""A dead worker is seen at once, a living one is never taken for dead, and nothing of a dead one lives on."""

from __future__ import annotations

import os
import secrets
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from webordinary.adapters.files.liveness import DeathWatch, LockFiles
from webordinary.adapters.files.wake import WakeBus, WorkerWakeups, listener_name
from webordinary.adapters.processes import JOB_MARK, WORKER_MARK

LONG = 60.0
WORKER = "import sys; from pathlib import Path; from webordinary.adapters.files.liveness import LockFiles;"
WORKER += "files = LockFiles(Path(sys.argv[1])); files.enter(sys.argv[2]); print('in', flush=True); sys.stdin.read()"
PROGRAM = "print('runs', flush=True); import sys; sys.stdin.read()"

Start = Callable[..., subprocess.Popen[str]]
Worker = Callable[[str], subprocess.Popen[str]]

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="deaths are seen through Linux's pidfd")


@pytest.fixture
def start() -> Iterator[Start]:
    children: list[subprocess.Popen[str]] = []

    def start(program: str, *args: str, **env: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", program, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **env},
        )
        children.append(child)
        assert child.stdout
        assert child.stdout.readline()
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture
def files(tmp_path: Path) -> LockFiles:
    return LockFiles(tmp_path / "locks")


@pytest.fixture
def worker(start: Start, tmp_path: Path) -> Worker:
    return lambda name: start(WORKER, str(tmp_path / "locks"), name)


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[WakeBus]:
    bus = WakeBus(tmp_path / "wake")
    yield bus
    bus.close()


@pytest.fixture
def wakeups(files: LockFiles, bus: WakeBus) -> Iterator[Callable[[], WorkerWakeups]]:
    """A worker's sleep; it watches the peers that live when it is made."""
    listener, watch = bus.listen(listener_name("c2")), DeathWatch(files)
    yield lambda: WorkerWakeups(listener, watch)
    watch.close()
    listener.close()


def kill(child: subprocess.Popen[str]) -> None:
    child.send_signal(signal.SIGKILL)
    child.wait()


def has_ended(child: subprocess.Popen[str]) -> bool:
    return child.poll() is not None


# --- lock files


def test_a_living_worker_is_not_dead_and_a_killed_one_is(files: LockFiles, worker: Worker) -> None:
    process = worker("c1")
    assert not files.is_dead("c1")
    kill(process)
    assert files.is_dead("c1")


def test_a_stopped_worker_is_not_dead(files: LockFiles, worker: Worker) -> None:
    process = worker("c1")
    process.send_signal(signal.SIGSTOP)
    assert not files.is_dead("c1")
    process.send_signal(signal.SIGCONT)


def test_a_worker_nobody_has_seen_is_dead(files: LockFiles) -> None:
    assert files.is_dead("never-was")


def test_a_worker_never_takes_itself_for_dead(files: LockFiles, tmp_path: Path) -> None:
    files.enter("me")
    assert not files.is_dead("me")
    assert not LockFiles(tmp_path / "locks").is_dead("me")  # nor does a look from elsewhere
    files.leave("me")
    assert files.is_dead("me")


def test_looking_at_a_worker_does_not_make_another_look_wrong(files: LockFiles, tmp_path: Path) -> None:
    files.enter("me")
    lookers = [LockFiles(tmp_path / "locks") for _ in range(3)]
    assert not any(looker.is_dead("me") for looker in lookers for _ in range(100))
    files.leave("me")


def test_a_program_that_a_worker_started_does_not_keep_it_alive(files: LockFiles, start: Start, tmp_path: Path) -> None:
    child = "import subprocess, sys; kept = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE);"
    name, program = unique("c"), WORKER.replace("print('in'", child + "print(kept.pid")
    process = start(program, str(tmp_path / "locks"), name, **{WORKER_MARK: name})
    kill(process)
    assert files.is_dead(name)
    files.end_survivors(name)


def test_the_dead_are_no_peers_and_their_files_can_be_cleared(files: LockFiles, worker: Worker, tmp_path: Path) -> None:
    living, dead = worker("living"), worker("dead")
    kill(dead)
    files.enter("me")
    assert files.peers() == {"living": living.pid}
    files.clear_dead("dead")
    files.clear_dead("dead")
    assert sorted(path.name for path in (tmp_path / "locks").iterdir()) == ["living", "me"]
    files.leave("me")


# --- deaths


def test_a_death_wakes_a_sleeping_worker(worker: Worker, wakeups: Callable[[], WorkerWakeups]) -> None:
    process = worker("c1")
    sleep = wakeups()
    assert sleep.wait(0, {}, 1) == []
    kill(process)
    assert sleep.wait(LONG, {}, 1) == ["died c1"]
    assert sleep.wait(0, {}, 1) == []


def test_a_worker_that_came_later_is_watched_once_it_says_so(
    worker: Worker, wakeups: Callable[[], WorkerWakeups], bus: WakeBus
) -> None:
    sleep = wakeups()
    process = worker("c1")
    bus.notify("worker", "peer")
    assert sleep.wait(LONG, {}, 1) == ["peer"]
    kill(process)
    assert sleep.wait(LONG, {}, 1) == ["died c1"]


def test_a_watch_forgets_peers_that_left_and_closes_what_it_opened(files: LockFiles, worker: Worker) -> None:
    process, watch = worker("c1"), DeathWatch(files)
    watch.refresh()
    assert len(watch.descriptors) == 1
    kill(process)
    watch.refresh()
    assert watch.descriptors == []
    watch.close()


# --- survivors


def unique(name: str) -> str:
    """Survivors are looked for on the whole machine, where this test may run twice at once."""
    return f"{name}-{secrets.token_hex(8)}"


def test_what_a_dead_worker_left_running_is_ended_and_nothing_else(files: LockFiles, start: Start) -> None:
    dead = unique("dead")
    left = start(PROGRAM, **{WORKER_MARK: dead})
    others = start(PROGRAM, **{WORKER_MARK: f"{dead}-2"}), start(PROGRAM)
    watch = os.pidfd_open(left.pid)
    files.end_survivors(dead)
    assert select.select([watch], [], [], 0)[0], "it is waited for until it is gone"
    os.close(watch)
    left.wait()
    assert not any(has_ended(other) for other in others)


def test_only_the_programs_of_the_named_jobs_are_ended(files: LockFiles, start: Start) -> None:
    frozen = unique("frozen")
    lost = start(PROGRAM, **{WORKER_MARK: frozen, JOB_MARK: "job-1"})
    kept = start(PROGRAM, **{WORKER_MARK: frozen, JOB_MARK: "job-2"})
    files.end_survivors(frozen, ["job-1"])
    assert lost.wait(LONG) == -signal.SIGKILL
    assert not has_ended(kept)


def test_a_worker_that_left_nothing_has_no_survivors(files: LockFiles) -> None:
    files.end_survivors("dead")


def test_a_note_is_no_beat_and_goes_with_its_worker(files: LockFiles, tmp_path: Path) -> None:
    files.enter("container-1", "scott's")
    os.utime(tmp_path / "locks" / "container-1", (1000, 1000))
    files.note("container-1", "AWS does\n not answer")
    assert files.last_beat("container-1") == 1000
    assert (files.note_of("container-1"), files.name_of("container-1")) == ("AWS does not answer", "scott's")
    files.note("container-1", "")
    assert files.note_of("container-1") == ""
    files.leave("container-1")
    files.note("container-1", "too late")
    assert list((tmp_path / "locks").iterdir()) == []
