"""The real `webordinary up`: what it says, what it refuses, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import Up
from tests.integration.test_smtp_intake import letter
from tests.processes import children_of, wait_gone
from webordinary.adapters.files import transports
from webordinary.entrypoints.cli.up import require_writable
from webordinary.operations.sample import make_origin

StartUp = Callable[..., Up]
FREE_PORTS = ("--port", "0", "--smtp-port", "0", "--preview-port", "0")


def webordinary(*args: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "webordinary", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=env)


def is_worker(pid: int) -> bool:
    """Whether it is a worker, not a parser process."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return b"\0worker\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def workers_of(up: Up, count: int) -> list[int]:
    """Its workers' processes, once there are as many: it is ready before they are."""
    deadline = time.monotonic() + 60
    while len(pids := [pid for pid in children_of(up.process.pid) if is_worker(pid)]) != count:
        assert time.monotonic() < deadline, f"it has {len(pids)} workers"
    return pids


def test_it_answers_when_it_says_ready_and_ends_with_0(start_up: StartUp) -> None:
    up = start_up("--no-sample")
    with urllib.request.urlopen(up.page, timeout=30) as page:
        assert page.status == 200
    with socket.create_connection((up.smtp_host, up.smtp_port), timeout=30) as intake:
        assert intake.recv(100).startswith(b"220")
    assert up.stop() == 0


def test_the_first_start_brings_the_sample_and_the_second_goes_on(start_up: StartUp) -> None:
    up = start_up()
    assert "amelia" in webordinary("project", "list", "--data", up.data).stdout
    assert 'trusted_peers = ["127.0.0.1", "::1"]' in (up.data / "webordinary.toml").read_text()
    assert up.stop() == 0
    again = start_up()
    assert webordinary("project", "list", "--data", up.data).stdout.count("scott@example.com") == 1
    assert again.stop() == 0


def test_trusted_peers_beside_a_real_domain_do_not_start_and_it_says_why(tmp_path: Path) -> None:
    (tmp_path / "webordinary.toml").write_text('trusted_peers = ["127.0.0.1"]\n')
    done = webordinary("up", "--data", tmp_path, "--mailbox", "edit@pottery.example", *FREE_PORTS)
    assert done.returncode != 0
    assert "counts as written by the person in its From" in done.stderr
    assert "Remove trusted_peers" in done.stderr
    assert not (tmp_path / "webordinary.db").exists()


def test_a_first_start_with_a_real_domain_trusts_nothing(start_up: StartUp) -> None:
    up = start_up("--mailbox", "edit@pottery.example", "--domain", "pottery.example", "--workers", "0")
    assert not (up.data / "webordinary.toml").exists()
    assert up.stop() == 0


def test_trust_beside_a_site_of_ones_own_is_warned_of(tmp_path: Path, start_up: StartUp) -> None:
    origin = tmp_path / "shop.git"
    make_origin(origin, {"index.html": b"<h1>Shop</h1>"})
    data = tmp_path / "data"
    added = webordinary(
        "project", "add", "shop", "--repo", origin, "--user", "ann", "--sender", "ann@example.org", "--data", data
    )
    assert added.returncode == 0, added.stderr
    up = start_up("--trusted-peers", "127.0.0.1", "--no-sample", "--workers", "0")
    assert "trusted_peers lets every program" in "".join(up.lines)
    assert (
        "write as any customer of shop" in webordinary("doctor", "--data", data, "--trusted-peers", "127.0.0.1").stdout
    )
    assert up.stop() == 0


def others_may_read(folder: Path) -> list[Path]:
    paths = [folder, *folder.rglob("*")]
    return [path for path in paths if not path.is_symlink() and path.stat().st_mode & 0o077]


def test_nothing_in_the_data_folder_is_readable_by_other_users(start_up: StartUp) -> None:
    up = start_up("--workers", "1", umask=0o022)
    sent = letter("change the title to Spring Sale")
    transports.send(sent, "scott@example.com", "edit@localhost", up.smtp_host, up.smtp_port)
    workers_of(up, 1)
    assert others_may_read(up.data) == []
    assert up.stop() == 0


def test_a_data_folder_that_others_may_read_is_closed_at_the_start(start_up: StartUp) -> None:
    up = start_up("--no-sample", "--workers", "0")
    assert up.stop() == 0
    settings = up.data / "webordinary.toml"
    settings.write_text('relay_password = "secret"\n')
    up.data.chmod(0o755)
    settings.chmod(0o644)
    assert "other users" in webordinary("doctor", "--data", up.data).stdout
    again = start_up("--no-sample", "--workers", "0")
    assert (up.data.stat().st_mode & 0o777, settings.stat().st_mode & 0o777) == (0o700, 0o600)
    assert again.stop() == 0


def test_a_folder_with_other_peoples_files_is_not_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "theirs").touch()
    require_writable(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_without_the_sample_nothing_is_trusted_and_no_site_is_there(start_up: StartUp) -> None:
    up = start_up("--no-sample")
    assert json.loads(webordinary("project", "list", "--json", "--data", up.data).stdout) == []
    assert not (up.data / "webordinary.toml").exists()


def test_a_second_up_on_the_same_data_is_refused_with_the_pid_of_the_first(start_up: StartUp) -> None:
    up = start_up("--no-sample")
    second = webordinary("up", "--data", up.data, *FREE_PORTS)
    assert second.returncode == 4
    assert f"in use by another `webordinary up` (process {up.process.pid})" in second.stderr
    assert "--data" in second.stderr


def test_status_knows_whether_it_runs_and_where(start_up: StartUp) -> None:
    up = start_up("--no-sample")
    status = json.loads(webordinary("status", "--json", "--data", up.data).stdout)
    assert status["running"] is True
    assert status["endpoints"]["smtp_port"] == up.smtp_port
    up.stop()
    status = json.loads(webordinary("status", "--json", "--data", up.data).stdout)
    assert (status["running"], status["endpoints"]) == (False, None)


@pytest.mark.parametrize("flag", ["--port", "--smtp-port", "--preview-port"])
def test_a_port_in_use_is_named_with_what_to_change(tmp_path: Path, flag: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = webordinary("up", "--data", tmp_path / "data", *FREE_PORTS, flag, port)
    assert done.returncode == 4
    name = flag[2:].replace("-", "_")
    assert f"{name} {port} on 127.0.0.1 is in use; stop what uses it, or choose another with {flag}" in done.stderr
    assert f"WEBORDINARY_{name.upper()}" in done.stderr


def test_a_data_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = webordinary("up", "--data", tmp_path / "file" / "data", *FREE_PORTS)
    assert done.returncode == 1
    assert f"the data folder {tmp_path}/file/data cannot be written" in done.stderr


def test_a_missing_git_is_told_before_anything_is_made(tmp_path: Path) -> None:
    done = webordinary("up", "--data", tmp_path / "data", env=os.environ | {"PATH": str(tmp_path)})
    assert done.returncode == 1
    assert "git is not installed; install it" in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_broken_config_is_told_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("workers = 1000\n")
    done = webordinary("up", "--data", tmp_path / "data", "--config", tmp_path / "own.toml")
    assert done.returncode == 2
    assert f"workers ({tmp_path}/own.toml): 1000 is not possible" in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_database_of_a_newer_version_is_refused_in_words(tmp_path: Path) -> None:
    import sqlite3

    (tmp_path / "data").mkdir()
    with sqlite3.connect(tmp_path / "data" / "webordinary.db") as conn:
        conn.execute("PRAGMA user_version = 9999")
    conn.close()
    done = webordinary("up", "--data", tmp_path / "data", *FREE_PORTS)
    assert done.returncode == 1
    assert "schema version 9999" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_killed_up_takes_its_workers_along(start_up: StartUp) -> None:
    up = start_up("--no-sample")
    workers = workers_of(up, 2)
    up.process.kill()
    for worker in workers:
        wait_gone(worker)


def test_ctrl_c_ends_the_workers_too(start_up: StartUp) -> None:
    up = start_up("--no-sample", "--workers", "1")
    [worker] = workers_of(up, 1)
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(timeout=60) == 0
    wait_gone(worker)


def test_a_worker_started_by_hand_has_its_name_for_itself_and_ends_on_sigterm_with_0(start_up: StartUp) -> None:
    up = start_up("--no-sample", "--workers", "0")
    worker = subprocess.Popen(
        [sys.executable, "-m", "webordinary", "worker", "--data", str(up.data), "--name", "by hand", "--slots", "2"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout
    assert "by hand serves" in worker.stdout.readline()
    second = [sys.executable, "-m", "webordinary", "worker", "--data", str(up.data), "--name", "by hand"]
    refused = subprocess.run(second, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 4
    assert refused.stderr == (
        f"webordinary: a worker named 'by hand' runs already, as process {worker.pid}; give this one another --name\n"
    )
    assert refused.stdout == ""
    worker.terminate()
    worker.communicate(timeout=60)
    assert worker.returncode == 0
