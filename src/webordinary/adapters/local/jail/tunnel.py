"""Bytes both ways between two sockets, until one side has said all."""

from __future__ import annotations

import select
import socket

from webordinary.adapters.local.jail.allowance import Allowance

_CHUNK = 65_536


def tunnel(inside: socket.socket, outside: socket.socket, allowance: Allowance, idle_seconds: float) -> None:
    """Both ways; an end on one side is told to the other, two ends or a long silence end it."""
    for side in (inside, outside):
        side.settimeout(idle_seconds)
    other = {inside: outside, outside: inside}
    speaking = [inside, outside]
    while speaking:
        ready, _, _ = select.select(speaking, [], [], idle_seconds)
        if not ready:
            return
        for side in ready:
            chunk = side.recv(_CHUNK)
            if chunk:
                allowance.spend(len(chunk))
                other[side].sendall(chunk)
            else:
                speaking.remove(side)
                other[side].shutdown(socket.SHUT_WR)
