"""Ports that are free, and stay so until whoever is told of one has opened it."""

from __future__ import annotations

import secrets
import socket
from contextlib import closing

_TRIED = 100
_BELOW_OUTGOING = range(20_000, 32_000)
"""No system takes the near end of an outgoing connection from here: what any port 0 yields, the next one may."""


def bound(host: str, port: int) -> socket.socket:
    """A socket that has this address, without listening there; OSError where it cannot be had."""
    trial = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of one that has ended do no harm
    try:
        trial.bind((host, port))
    except OSError:
        trial.close()
        raise
    return trial


def is_free(host: str, port: int) -> bool:
    """Whether somebody could listen there now."""
    try:
        bound(host, port).close()
    except OSError:
        return False
    return True


def bound_anywhere(host: str) -> socket.socket:
    """The same at a port that nobody has."""
    for _ in range(_TRIED):
        try:
            return bound(host, secrets.choice(_BELOW_OUTGOING))
        except OSError:
            continue
    return bound(host, 0)


def free_port(host: str) -> int:
    """The number of one."""
    with closing(bound_anywhere(host)) as trial:
        number: int = trial.getsockname()[1]
        return number
