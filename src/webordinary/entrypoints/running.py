"""Who runs `up` on a data folder and where it listens: a lock that ends with its process, and a note."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from webordinary.config import Config
from webordinary.model.errors import Permanent

LOCK_SECONDS = 0.5  # somebody who only looks holds the lock for an instant


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where a running system answers."""

    pid: int
    host: str
    port: int
    preview_port: int
    smtp_port: int

    @property
    def page(self) -> str:
        """The address to open in a browser."""
        return f"http://{_bracketed(self.host)}:{self.port}/"

    @property
    def preview(self) -> str:
        """The sites, for browsers that do not know *.localhost."""
        return f"http://{_bracketed(self.host)}:{self.preview_port}/"

    @property
    def smtp(self) -> str:
        """The mail intake as host:port."""
        return f"{_bracketed(self.host)}:{self.smtp_port}"


class AlreadyRunning(Permanent):
    """Another `up` works on this data folder."""

    def __init__(self, data: Path, pid: str) -> None:
        super().__init__(f"{data} is in use by another `webordinary up` (process {pid})")


@contextmanager
def hold(data: Path) -> Iterator[None]:
    """Be the only `up` of this folder until the block, or this process, ends."""
    (data / "run").mkdir(parents=True, exist_ok=True)
    with (data / "run" / "up.lock").open("a+") as lock:
        deadline = time.monotonic() + LOCK_SECONDS
        while not _locked(lock.fileno(), fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                lock.seek(0)
                raise AlreadyRunning(data, lock.read(20).strip() or "unknown")
            time.sleep(0.02)
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        try:
            yield
        finally:
            _note(data).unlink(missing_ok=True)
            lock.truncate(0)


def announce(data: Path, endpoints: Endpoints) -> None:
    """Leave word where the ports are; they may have been chosen by flags or at random."""
    draft = _note(data).with_suffix(".tmp")
    draft.write_text(json.dumps(asdict(endpoints)))
    draft.rename(_note(data))


def running(data: Path) -> Endpoints | None:
    """Where the `up` of this folder answers; None if there is none, or it is not ready yet."""
    try:
        with (data / "run" / "up.lock").open() as lock:
            if _locked(lock.fileno(), fcntl.LOCK_SH):
                return None
        return Endpoints(**json.loads(_note(data).read_text()))
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
        return None


def as_it_runs(config: Config) -> Config:
    """The settings with the ports of the `up` of their folder, if one runs: they may be others than the file's."""
    ends = running(config.data)
    if ends is None:
        return config
    return replace(config, host=ends.host, port=ends.port, preview_port=ends.preview_port, smtp_port=ends.smtp_port)


def _note(data: Path) -> Path:
    return data / "run" / "up.json"


def _locked(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
