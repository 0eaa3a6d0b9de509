"""Ports that are free, and ports that are not."""

from __future__ import annotations

import socket
import sys

import pytest

from webordinary.entrypoints.running import bound, bound_anywhere, free_port, is_free

HOST = "127.0.0.1"


def test_a_port_that_somebody_listens_on_is_not_free() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        assert not is_free(HOST, port)
        with pytest.raises(OSError, match="in use"):
            bound(HOST, port)


@pytest.mark.skipif(sys.platform != "linux", reason="a silent socket keeps others out on Linux only")
def test_a_port_that_was_chosen_is_nobody_elses_before_its_server_listens() -> None:
    port = free_port(HOST)
    with pytest.raises(OSError, match="in use"):
        bound(HOST, port, again=False)  # as another process does that looks for a port
    with socket.create_server((HOST, port)):
        assert not is_free(HOST, port)


def test_a_free_port_is_free_and_differs_from_those_in_hand() -> None:
    held = [bound_anywhere(HOST) for _ in range(20)]
    ports = [sock.getsockname()[1] for sock in held]
    assert len(set(ports)) == len(ports)
    for sock in held:
        sock.close()
    assert any(is_free(HOST, free_port(HOST)) for _ in range(3)), "one may be taken at once by another process"
