"""Ports that are free now, chosen so that nobody else is likely to take them before they are opened."""

from __future__ import annotations

import secrets
import socket
from contextlib import closing

_TRIED = 100
_BELOW_OUTGOING = range(20_000, 32_000)
"""Most systems take the near ends of outgoing connections from above: what a port 0 yields, the next of those may."""


def bound(host: str, port: int, *, again: bool = True) -> socket.socket:
    """A socket that has this address, without listening there; OSError where it cannot be had.

    `again`: also where one that has ended left connections behind, or somebody has it bound and does not listen.
    """
    trial = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, again)
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
    """The same at a port that nobody has, not even bound."""
    for _ in range(_TRIED):
        try:
            return bound(host, secrets.choice(_BELOW_OUTGOING), again=False)
        except OSError:
            continue
    return bound(host, 0, again=False)


def free_port(host: str) -> int:
    """The number of one."""
    with closing(bound_anywhere(host)) as trial:
        number: int = trial.getsockname()[1]
        return number
