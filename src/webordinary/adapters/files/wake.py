"""Processes on one machine wake each other by Unix datagrams: no polling, nothing to lose but time."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from webordinary.adapters.files.liveness import DeathWatch
from webordinary.asl.ports import TaskTokens, send_task_failure, send_task_heartbeat, send_task_success
from webordinary.model.jobs import Job
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import QUEUED, ClaimRequestQueue, Claims

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
        """Close the sending socket; listeners close their own."""
        self._closing.close()

    def listen(self, name: str) -> Listener:
        """A listener for messages to `name` and to the topic before its first dash."""
        address = f"{self._prefix}/{name}"
        with contextlib.suppress(FileNotFoundError):
            (self._folder / name).unlink()  # left by a killed process
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.bind(address)
        sock.setblocking(False)
        return Listener(sock, self._folder / name)

    def listeners(self, topic: str) -> list[str]:
        """The names that hear `topic`, of living processes and of killed ones."""
        with os.scandir(self._folder) as entries:
            names = [entry.name for entry in entries]
        return [name for name in names if name == topic or name.startswith(f"{topic}-")]

    def notify(self, topic: str, message: str = "") -> None:
        """Wake every listener of `topic`, or the one of that very name. Never waits, never fails."""
        for name in self.listeners(topic):
            self.send(name, message)

    def send(self, name: str, message: str = "") -> bool:
        """Wake the one listener of that name; False if there is none. Never waits, never fails."""
        try:
            self._sender.sendto(message.encode()[:MAX_DATAGRAM], f"{self._prefix}/{name}")
        except ConnectionRefusedError:  # its process is gone
            if "-" in name:  # else the next one takes the same name, perhaps just now, and would be deaf
                (self._folder / name).unlink(missing_ok=True)
            return False
        except OSError:
            return False  # its buffer is full, so it will wake anyway; or it left just now
        return True


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
        ready = dict(poll.poll(None if seconds is None else max(0.0, seconds) * 1000))
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


WORKERS = "worker"
ENGINE = "engine"
ENGINE_LOOK_SECONDS = 20.0
OFFER_SECONDS = 0.1
"""How long a key is left to the worker that it was offered to."""


def listener_name(worker: str) -> str:
    """The name under which a worker listens."""
    return f"{WORKERS}-{worker}"


class Bus(Protocol):
    """The part of WakeBus that carries wake-ups to workers."""

    def listeners(self, topic: str) -> list[str]: ...
    def notify(self, topic: str, message: str = "") -> None: ...
    def send(self, name: str, message: str = "") -> bool: ...


class SocketNotifier:
    """Wake-ups as datagrams: a lost one costs time, never work.

    A key that waits alone is offered to one idle worker: if all woke, all but one would lose the race for its claim.
    That worker may be frozen, so `offered` is called, upon which a Loop runs this service.
    """

    name = "offers"

    def __init__(
        self,
        bus: Bus,
        claims: Claims,
        hints: ClaimRequestQueue,
        offered: Callable[[], None] = lambda: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._bus, self._claims, self._hints, self._offered, self._sleep = bus, claims, hints, offered, sleep

    def notify_owner(self, job: Job, news: str = QUEUED) -> None:
        if owner := self._claims.look(job.key):
            self._bus.send(listener_name(owner.worker), f"ticket {job.key}")

    def notify_unclaimed(self, key: ProjectUser | None = None) -> None:
        """Wake an idle worker to poll the unclaimed queue: all of them, unless `key` is the only one that waits."""
        if key is None or not self._offer(key):
            self._bus.notify(WORKERS, "unclaimed")

    def run_once(self, now: datetime) -> int:
        """A moment after an offer: wake all workers if a key still waits."""
        self._sleep(OFFER_SECONDS)
        if waiting := self._hints.receive(now, (), 1):
            self._bus.notify(WORKERS, "unclaimed")
        return len(waiting)

    def _offer(self, key: ProjectUser) -> bool:
        """Wake one idle worker, for the same key the same one: it may have the checkout. False if there is none."""
        names = self._bus.listeners(WORKERS)
        if len(names) < 2 or self._hints.receive(datetime.now(UTC), (key,), 1):
            return False
        for name in sorted(names, key=lambda name: zlib.crc32(f"{key} {name}".encode())):
            if not self._claims.busy(name.removeprefix(f"{WORKERS}-")) and self._bus.send(name, "unclaimed"):
                self._offered()
                return True
        return False


class WorkerWakeups:
    """Sleeps until a datagram comes, one of the worker's own threads pokes it, or another worker dies."""

    def __init__(self, listener: Listener, deaths: DeathWatch, beat: Callable[[], None] = lambda: None) -> None:
        self._listener, self._deaths, self._beat = listener, deaths, beat
        self._deaths.refresh()

    def wait(self, seconds: float, held: Mapping[ProjectUser, Job | None], free: int) -> Sequence[str]:
        """Returns all messages, also those not asked for. Every call is a heartbeat of the worker's loop."""
        self._beat()
        heard, readable = self._listener.wait(seconds, self._deaths.descriptors)
        if readable:
            heard += [f"died {worker}" for worker in self._deaths.died(readable)]
        if readable or "peer" in heard:
            self._deaths.refresh()
        return heard

    def poke(self) -> None:
        self._listener.poke()

    def keys_changed(self) -> None:
        """Does nothing: this worker hears of every key."""


class EngineWakeups:
    """Waits for wake-ups of the workflow engine."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def wait(self, seconds: float | None) -> None:
        """Return when woken or when the time is over; now and then anyway: a worker may die before it wakes us."""
        self._listener.wait(ENGINE_LOOK_SECONDS if seconds is None else min(seconds, ENGINE_LOOK_SECONDS))

    def wake(self) -> None:
        """Wake the engine from inside its own process."""
        self._listener.poke()


class EngineCallbacks:
    """Task tokens as the pool knows them."""

    def __init__(self, tokens: TaskTokens, wake_engine: Callable[[], None], now: Callable[[], datetime]) -> None:
        self._tokens, self._wake_engine, self._now = tokens, wake_engine, now

    def succeed(self, token: str, output: dict[str, str]) -> bool:
        return self._woken(send_task_success(self._tokens, token, dict(output)))

    def fail(self, token: str, error: str, cause: str) -> bool:
        return self._woken(send_task_failure(self._tokens, token, error, cause))

    def heartbeat(self, token: str) -> bool:
        return send_task_heartbeat(self._tokens, token, self._now())

    def _woken(self, accepted: bool) -> bool:
        if accepted:
            self._wake_engine()
        return accepted
