"""Processes on one machine wake each other by Unix datagrams: no polling, nothing to lose but time."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

MAX_DATAGRAM = 512
MAX_DRAINED = 256
_LONGEST_ADDRESS = 100  # sun_path holds 108 bytes on Linux, 104 on macOS


class WakeBus:
    """A folder of sockets, one per listener, named `topic` or `topic-name`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._closing = contextlib.ExitStack()
        self._prefix = _short_prefix(folder, self._closing)
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setblocking(False)
        self._closing.callback(self._sender.close)

    def close(self) -> None:
        """Send no more; listeners are closed by whoever listens."""
        self._closing.close()

    def listen(self, name: str) -> Listener:
        """Hear what is sent to `name` and to the topic before its first dash."""
        address = f"{self._prefix}/{name}"
        with contextlib.suppress(FileNotFoundError):
            (self._folder / name).unlink()  # left by a killed process
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.bind(address)
        sock.setblocking(False)
        return Listener(sock, self._folder / name)

    def notify(self, topic: str, message: str = "") -> None:
        """Wake every listener of `topic`, or the one of that very name. Never waits, never fails."""
        with os.scandir(self._folder) as entries:
            names = [entry.name for entry in entries]
        for name in names:
            if name == topic or name.startswith(f"{topic}-"):
                self.send(name, message)

    def send(self, name: str, message: str = "") -> None:
        """Wake the one listener of that name, if there is one. Never waits, never fails."""
        try:
            self._sender.sendto(message.encode()[:MAX_DATAGRAM], f"{self._prefix}/{name}")
        except ConnectionRefusedError:  # its process is gone
            if "-" in name:  # else the next one takes the same name, perhaps just now, and would be deaf
                (self._folder / name).unlink(missing_ok=True)
        except OSError:
            return  # its buffer is full, so it will wake anyway; or it left just now


class Listener:
    """One process's ear. `wait` may be called by one thread, `poke` by any."""

    def __init__(self, sock: socket.socket, path: Path) -> None:
        self._sock, self._path = sock, path
        self._inside, self._outside = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._inside.setblocking(False)
        self._outside.setblocking(False)
        self._closed = threading.Event()

    def wait(self, seconds: float | None, also: Sequence[int] = ()) -> tuple[list[str], list[int]]:
        """Sleep until woken: the messages heard, and which of the descriptors `also` became readable."""
        poll = select.poll()
        for descriptor in (self._sock.fileno(), self._inside.fileno(), *also):
            poll.register(descriptor, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(None if seconds is None else max(0.0, seconds) * 1000)}
        heard = _drain(self._sock) if self._sock.fileno() in ready else []
        if self._inside.fileno() in ready:
            heard += _drain(self._inside)
        return heard, [fd for fd in also if fd in ready]

    def poke(self, message: str = "") -> None:
        """Wake this listener from another thread of its own process."""
        with contextlib.suppress(OSError):
            self._outside.send(message.encode()[:MAX_DATAGRAM])

    def close(self) -> None:
        """Stop listening and take the name away."""
        if self._closed.is_set():
            return
        self._closed.set()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        for sock in (self._sock, self._inside, self._outside):
            sock.close()


def _drain(sock: socket.socket) -> list[str]:
    heard: list[str] = []
    with contextlib.suppress(BlockingIOError):
        while len(heard) < MAX_DRAINED:
            heard.append(sock.recv(MAX_DATAGRAM).decode(errors="replace"))
    return heard


def _short_prefix(folder: Path, closing: contextlib.ExitStack) -> str:
    """A way to name the folder in a socket address, however deep it lies; good until `closing` is closed."""
    if len(os.fsencode(folder)) + 60 <= _LONGEST_ADDRESS:
        return str(folder)
    if hasattr(os, "O_PATH"):  # Linux
        descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        closing.callback(os.close, descriptor)
        return f"/proc/self/fd/{descriptor}"
    link = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="wo-"))) / "w"
    link.symlink_to(folder.resolve())
    return str(link)
