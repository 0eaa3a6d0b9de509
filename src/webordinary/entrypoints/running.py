"""The running `up` of a data folder: its lock, its endpoints, and free ports for it to listen on."""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from webordinary.compose.backends import FileLock, is_locked
from webordinary.config import Config
from webordinary.model.errors import Permanent

LOCK_SECONDS = 0.5  # a reader (`running`) holds the lock for an instant


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where a running system answers."""

    pid: int
    host: str
    port: int
    preview_port: int
    smtp_port: int
    sites_host: str = "127.0.0.1"
    smtp_host: str = "127.0.0.1"

    @property
    def page(self) -> str:
        """The address to open in a browser on this machine."""
        return f"http://{_reachable(self.host)}:{self.port}/"

    @property
    def preview(self) -> str:
        """The sites, for browsers that do not know *.localhost."""
        return f"http://{_reachable(self.sites_host)}:{self.preview_port}/"

    @property
    def smtp(self) -> str:
        """The mail intake as host:port."""
        return f"{_bracketed(self.smtp_host)}:{self.smtp_port}"


class AlreadyRunning(Permanent):
    """Another `up` works on this data folder."""

    def __init__(self, data: Path, pid: str) -> None:
        super().__init__(f"{data} is in use by another `webordinary up` (process {pid})")


@contextmanager
def lock_data_folder(data: Path) -> Iterator[None]:
    """Be the only `up` of this folder until the block, or this process, ends."""
    (data / "run").mkdir(parents=True, exist_ok=True)
    lock, deadline = FileLock(_lock_file(data)), time.monotonic() + LOCK_SECONDS
    while not lock.acquire():
        if time.monotonic() > deadline:
            raise AlreadyRunning(data, lock.path.read_text()[:20].strip() or "unknown")
        time.sleep(0.02)
    try:
        lock.path.write_text(f"{os.getpid()}\n")
        yield
    finally:
        _note(data).unlink(missing_ok=True)
        lock.path.write_text("")
        lock.release()


def write_endpoints(data: Path, endpoints: Endpoints) -> None:
    """Write the endpoints file; the ports may have been chosen by flags or at random."""
    draft = _note(data).with_suffix(".tmp")
    draft.write_text(json.dumps(asdict(endpoints)))
    draft.rename(_note(data))


def running(data: Path) -> Endpoints | None:
    """Where the `up` of this folder answers; None if there is none, or it is not ready yet."""
    try:
        if not is_locked(_lock_file(data)):
            return None
        return Endpoints(**json.loads(_note(data).read_text()))
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
        return None


def as_it_runs(config: Config) -> Config:
    """The settings with the ports of the running `up`, if there is one: flags may have changed them."""
    ends = running(config.data)
    if ends is None:
        return config
    config = replace(config, smtp_port=ends.smtp_port, smtp_host=ends.smtp_host)
    config = replace(config, host=ends.host, port=ends.port)
    return replace(config, sites_host=ends.sites_host, preview_port=ends.preview_port)


def _note(data: Path) -> Path:
    return data / "run" / "up.json"


def _lock_file(data: Path) -> Path:
    return data / "run" / "up.lock"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _reachable(host: str) -> str:
    """An address of this machine for a server that listens on all of them."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, _bracketed(host))  # noqa: S104 - compared, not bound


_PORT_TRIES = 100


_PORTS = range(20_000, 32_000)
"""Most systems take the near ends of outgoing connections from above: what a port 0 yields, the next of those may."""


def bound(host: str, port: int, *, again: bool = True) -> socket.socket:
    """A socket bound to this address that does not listen yet; OSError if the address cannot be bound.

    `again` sets SO_REUSEADDR: connections in TIME_WAIT and other bound, silent sockets do not prevent it.
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
    """Whether a server could listen there now."""
    try:
        bound(host, port).close()
    except OSError:
        return False
    return True


def bound_anywhere(host: str) -> socket.socket:
    """A socket bound to a random port that no other socket has.

    While it is open, a server may listen there; processes that ask for any free port do not get this one.
    """
    found = _bound_anywhere(host)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, True)
    return found


def _bound_anywhere(host: str) -> socket.socket:
    for _ in range(_PORT_TRIES):
        try:
            return bound(host, secrets.choice(_PORTS), again=False)
        except OSError:
            continue
    return bound(host, 0, again=False)


_HELD: deque[socket.socket] = deque()
_MOST_HELD = 100


def free_port(host: str) -> int:
    """A port number for a server that starts in a moment. This process keeps it from others until it ends."""
    if len(_HELD) == _MOST_HELD:
        _HELD.popleft().close()
    _HELD.append(bound_anywhere(host))
    return int(_HELD[-1].getsockname()[1])


MODEL_VARIABLES = (
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX",
)  # fmt: skip
BUILT_IN = "built-in: it does simple, exact edits (a title, a quoted text, a photo) and asks about the rest."
ATTACH_ANOTHER = (
    "For ordinary mails attach a real one and start again: Claude with ANTHROPIC_API_KEY, Bedrock, Vertex, a gateway "
    "or a local model (ANTHROPIC_BASE_URL), or an ACP agent; docs/agents.md says how."
)


def has_model(config: Config, env: Mapping[str, str]) -> bool:
    """Whether the settings or the environment name an agent with a model; no key is tried."""
    return config.agent not in ("auto", "builtin") or any(env.get(name) for name in MODEL_VARIABLES)
