"""The door of a jail: its first program knocks once, and thereby tells which processes are the jail's."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from webordinary.adapters.local.jail.inside import READY

_INT = struct.calcsize("i")
_ROUNDS = 10
_END_SECONDS = 10.0


@dataclass(slots=True)
class Inmates:
    """The processes of one jail: `leader` is its program, `init` the process without which none of them lives.

    Both are held by descriptors, so that a number which the system gave to another process is never signalled.
    """

    leader: int
    leader_fd: int
    init: int
    init_fd: int

    def interrupt(self) -> None:
        """SIGINT to the program and its group, as from a terminal."""
        try:
            signal.pidfd_send_signal(self.leader_fd, 0)
            os.killpg(self.leader, signal.SIGINT)
        except (ProcessLookupError, PermissionError, OSError):
            return

    def end(self) -> bool:
        """Kill them all; True once they are gone: the kernel lets `init` go last."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.init_fd, signal.SIGKILL)
        return self.gone(_END_SECONDS)

    def gone(self, seconds: float) -> bool:
        """Whether none of them is left, waiting at most so long."""
        poll = select.poll()
        poll.register(self.init_fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def forget(self) -> None:
        """Give the descriptors back."""
        os.close(self.leader_fd)
        os.close(self.init_fd)


class Door:
    """A socket in a folder of ours, shown to one jail."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "door"
        self._listener = socket.socket(socket.AF_UNIX)
        self._bell = os.eventfd(0, os.EFD_CLOEXEC)
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._listener.bind(f"/proc/self/fd/{held}/door")  # a socket's address is short, a data folder's may not be
        finally:
            os.close(held)
        self._listener.listen(1)

    def answer(self) -> tuple[socket.socket, Inmates, socket.socket | None] | None:
        """Wait for the knock: the visitor (who waits for `admit`), the jail's processes, the proxy's listener."""
        readable, _, _ = select.select([self._listener.fileno(), self._bell], [], [])
        if self._bell in readable:
            self._listener.close()  # whoever knocks now is turned away at once
            return None
        visitor, _ = self._listener.accept()
        self._listener.close()  # one knock is all: nobody else in there can pretend to be the first
        with contextlib.ExitStack() as left:  # to close, where it dies on the threshold
            left.enter_context(visitor)
            credentials = visitor.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            leader: int = struct.unpack("3i", credentials)[0]
            _, ancillary, _, _ = visitor.recvmsg(1, socket.CMSG_SPACE(_INT), socket.MSG_CMSG_CLOEXEC)
            given = [data for level, kind, data in ancillary if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)]
            listener = socket.socket(fileno=struct.unpack("i", given[0][:_INT])[0]) if given else None
            if listener is not None:
                left.enter_context(listener)
            leader_fd = os.pidfd_open(leader)
            left.callback(os.close, leader_fd)
            init = _init_above(leader)
            inmates = Inmates(leader, leader_fd, init, os.pidfd_open(init))
            left.pop_all()
        return visitor, inmates, listener

    def admit(self, visitor: socket.socket) -> None:
        """Let the program begin."""
        visitor.sendall(READY)

    def lock(self) -> None:
        """Answer nobody any more; a program that did not get in never begins."""
        os.eventfd_write(self._bell, 1)

    def close(self) -> None:
        """After `answer` has returned."""
        self._listener.close()
        os.close(self._bell)


def _init_above(pid: int) -> int:
    """The first process of the namespace that a process lives in."""
    for _ in range(_ROUNDS):
        status = dict(
            line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
            if ":\t" in line
        )  # fmt: skip
        if status["NSpid"].split()[-1] == "1":
            return pid
        pid = int(status["PPid"])
    raise ProcessLookupError(pid)
