"""How many bytes a jail may still move through its proxy."""

from __future__ import annotations

import threading


class SpentUp(Exception):
    """The jail has moved all the bytes that one run may."""


class Allowance:
    """Shared by all connections of one jail."""

    def __init__(self, most: int) -> None:
        self._left, self._guard = most, threading.Lock()

    def spend(self, count: int) -> None:
        """Take so many; raises SpentUp when there are not enough left."""
        with self._guard:
            self._left -= count
            if self._left < 0:
                raise SpentUp
