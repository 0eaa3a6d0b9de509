"""`webordinary claims`, `queues` and `worker health`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.harness.chaos import until
from tests.harness.embedded import WORKER, EmbeddedHarness, open_harness
from tests.processes import stop_between_writes
from webordinary.entrypoints.cli import main
from webordinary.model.jobs import Requeue, RequeueReason
from webordinary.model.names import job_id_of
from webordinary.model.snapshot import WorkerEntry
from webordinary.pool.reconciler import deliver_pending_callbacks


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path / "data") as harness:
        yield harness


def plain(harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str], *command: str) -> Any:  # noqa: ANN401
    assert main([*command, "--json", "--data", str(harness.services.config.data)]) == 0
    return json.loads(capsys.readouterr().out)


def test_queues_show_what_waits_and_that_nobody_owns_it(
    harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    harness.receive()
    harness.receive()
    look = plain(harness, capsys, "queues")
    assert isinstance(look, dict)
    [queue] = look["queues"]
    assert {name: queue[name] for name in ("key", "preparing", "queued", "running", "owner")} == {
        "key": "amelia#scott",
        "preparing": 0,
        "queued": 2,
        "running": 0,
        "owner": None,
    }
    assert queue["oldest_age_seconds"] >= queue["unowned_seconds"] >= 0
    assert look["unclaimed"]["depth"] == 1
    assert look["unclaimed"]["oldest_age_seconds"] >= 0
    assert main(["queues", "--data", str(harness.services.config.data)]) == 0
    out = capsys.readouterr().out
    assert "no worker" in out
    assert "unclaimed: 1 waiting, the oldest for" in out


def test_the_claim_of_a_dead_worker_is_neither_live_nor_busy_and_its_queue_has_no_owner(
    harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    harness.receive()
    harness.start_job()
    harness.services.workers.leave(WORKER)
    [shown] = plain(harness, capsys, "claims")
    assert (shown["live"], shown["busy"]) == (False, False)
    look = plain(harness, capsys, "queues")
    assert isinstance(look, dict)
    assert look["queues"][0]["owner"] is None
    assert main(["claims", "--data", str(harness.services.config.data)]) == 0
    assert "its worker is dead" in capsys.readouterr().out


def test_interruptions_tell_which_thread_a_job_made_way_for(
    harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    email_id = harness.receive()
    started = harness.start_job()
    newcomer = harness.services.jobs.get(job_id_of(harness.receive("Change the title to Autumn")))
    assert newcomer
    services, now = harness.services, harness.services.clock.now()
    services.pool.claims.end_and_take_next(started, Requeue(RequeueReason.INTERRUPTED), now, more=True)
    deliver_pending_callbacks(services.pool)
    harness.engine.run_ready()
    [told] = plain(harness, capsys, "interruptions", email_id)
    assert (told["email_id"], told["new_thread_id"]) == (email_id, newcomer.thread_id)
    assert main(["interruptions", "--data", str(services.config.data)]) == 0
    assert newcomer.thread_id in capsys.readouterr().out


def test_a_claim_is_shown_with_its_worker_fence_and_lease_and_the_queue_with_its_owner(
    harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    harness.receive()
    started = harness.start_job()
    [shown] = plain(harness, capsys, "claims")
    assert (shown["key"], shown["worker"], shown["worker_id"]) == ("amelia#scott", "worker 7", WORKER)
    assert (shown["fence"], shown["status"], shown["live"], shown["busy"]) == (started.claim.fence, "held", True, True)
    look = plain(harness, capsys, "queues")
    assert isinstance(look, dict)
    assert (look["queues"][0]["owner"], look["unclaimed"]["depth"]) == ("worker 7", 0)
    assert main(["claims", "--data", str(harness.services.config.data)]) == 0
    assert "busy" in capsys.readouterr().out


def test_a_claim_whose_lease_ran_out_is_told_and_owns_nothing(
    harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    harness.receive()
    started = harness.start_job()
    services = harness.services
    long_ago = services.clock.now() - timedelta(seconds=services.config.lease_seconds + 5)
    services.pool.claims.renew([started.claim], long_ago)
    assert main(["claims", "--data", str(services.config.data)]) == 0
    assert "(over)" in capsys.readouterr().out
    look = plain(harness, capsys, "queues")
    assert isinstance(look, dict)
    assert look["queues"][0]["owner"] is None


def test_a_worker_that_died_without_goodbye_is_shown_nowhere_as_alive(harness: EmbeddedHarness) -> None:
    services = harness.services
    services.worker_rows.enter(WorkerEntry("container-gone", "worker 1", 1, 4), services.clock.now())
    assert services.overview.pool(services.clock.now()).workers == ()
    assert [entry.worker for entry in services.workers.present()] == ["container-gone"]


def health(data: Path, *flags: str) -> int:
    return main(["worker", "health", *flags, "--data", str(data), "--lease-seconds", "1", "--renew-seconds", "0.3"])


@contextmanager
def worker(data: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    flags = ["--data", str(data), "--name", name, "--lease-seconds", "1", "--renew-seconds", "0.3"]
    process = subprocess.Popen(
        [sys.executable, "-m", "webordinary", "worker", *flags],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert f"{name} serves" in process.stdout.readline()
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


def wait_for_health(data: Path, wanted: int, *flags: str) -> None:
    """Also of one that is well all the time: on a busy machine its loop may be late by more than a second."""
    until(lambda: health(data, *flags) == wanted, f"worker health to be {wanted}", pause_seconds=0.2)


def test_health_tells_a_live_a_hung_and_a_dead_worker_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    with open_harness(data):
        pass
    assert health(data) == 3
    assert "there is no worker; start one with `webordinary worker`" in capsys.readouterr().err
    with worker(data, "w1") as first, worker(data, "w2"):
        wait_for_health(data, 0, "--name", "w1")
        wait_for_health(data, 0, "--name", "w2")
        stop_between_writes(first.pid, data / "webordinary.db")
        wait_for_health(data, 1, "--name", "w1")
        assert "hangs: its loop has not gone round" in capsys.readouterr().out
        assert health(data) == 1
        wait_for_health(data, 0, "--name", "w2")
        first.send_signal(signal.SIGCONT)
        wait_for_health(data, 0)
        first.kill()
        first.wait(timeout=60)
        assert health(data, "--name", "w1") == 3
        assert "is dead; start one" in capsys.readouterr().out
        wait_for_health(data, 0, "--name", "w2")
        assert health(data, "--id", "nobody") == 3
