from __future__ import annotations

import socket
from pathlib import Path

import pytest

from webordinary.config import Config
from webordinary.entrypoints import running
from webordinary.entrypoints.cli.output import CommandFailed, Exit
from webordinary.entrypoints.cli.up import require_programs, require_writable, with_free_ports
from webordinary.entrypoints.running import AlreadyRunning, Endpoints, bound

ENDS = Endpoints(1, "127.0.0.1", 80, 81, 25)


def test_port_0_becomes_the_number_of_a_free_port() -> None:
    with with_free_ports(Config(port=0, preview_port=0, smtp_port=0)) as config:
        assert len({config.port, config.preview_port, config.smtp_port, 0}) == 4


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = Config(port=0, preview_port=0, smtp_port=port)
        found = pytest.raises(CommandFailed, match=f"smtp_port {port} on 127.0.0.1 is in use")
        with found as caught, with_free_ports(config):
            pass
    assert caught.value.code is Exit.IN_USE


def test_on_aws_nobody_needs_the_smtp_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with with_free_ports(Config(port=0, preview_port=0, smtp_port=port, backend="aws")) as config:
            assert config.smtp_port == 0


def test_a_free_port_is_given_to_nobody_else_before_its_server_listens_there() -> None:
    with with_free_ports(Config(port=0, preview_port=0, smtp_port=0)) as config:
        for port in (config.port, config.preview_port, config.smtp_port):
            with pytest.raises(OSError, match="in use"):
                bound("127.0.0.1", port, again=False)  # as one asks for any free port
            with socket.create_server(("127.0.0.1", port)) as server, pytest.raises(OSError, match="in use"):
                bound("127.0.0.1", server.getsockname()[1])


def test_a_folder_that_can_be_written_is_made(tmp_path: Path) -> None:
    require_writable(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_a_missing_git_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommandFailed, match="git is not installed; install it"):
        require_programs()


def test_a_folder_is_held_by_one_and_its_endpoints_are_known_meanwhile(tmp_path: Path) -> None:
    assert running.running(tmp_path) is None
    with running.lock_data_folder(tmp_path):
        assert running.running(tmp_path) is None, "it is not ready yet"
        running.write_endpoints(tmp_path, ENDS)
        assert running.running(tmp_path) == ENDS
        with pytest.raises(AlreadyRunning, match="in use by another"), running.lock_data_folder(tmp_path):
            pass
        assert running.running(tmp_path) == ENDS, "the one that was refused took nothing away"
    assert running.running(tmp_path) is None


def test_what_a_killed_up_left_behind_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "up.lock").write_text("4242\n")
    running.write_endpoints(tmp_path, ENDS)
    assert running.running(tmp_path) is None
    with running.lock_data_folder(tmp_path):
        pass
