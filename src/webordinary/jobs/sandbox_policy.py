"""What an outside program may touch: everything that is not named here is out of its sight."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket
from typing import TypeAlias

HTTPS_PORT = 443


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """One request as it is about to leave; `headers` are those that a signature may cover."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


Sign: TypeAlias = Callable[[OutgoingRequest], Mapping[str, str]]
"""What must be added to a request, found anew for each one; raises Transient or Permanent when there is no key now."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """One service that a program may call without knowing its key: the proxy adds `headers` to each request.

    Keys that do not last, and signatures, come from `sign`. `paths` are what may be asked for there; one that ends in
    a slash, with all that lies below it.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    methods: frozenset[str] = frozenset({"GET", "HEAD", "POST"})
    paths: tuple[str, ...] = ("/",)
    sign: Sign | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Network:
    """Where a program may connect to. `upstreams` by a short name, see `SandboxRun.url`; `hosts` through the proxy.

    A host is an exact name, meaning its port 443, or `name:port`.
    """

    upstreams: Mapping[str, Upstream] = field(default_factory=dict)
    hosts: frozenset[str] = frozenset()
    bytes: int = 2_000_000_000
    """Both ways together, for one run."""
    serve: Callable[[socket], None] | None = field(default=None, repr=False)
    """Answers on the sandbox's own 127.0.0.1 in place of the proxy; gets its listening socket, must not block."""

    @property
    def allowed(self) -> frozenset[str]:
        """The hosts, each with its port."""
        return frozenset(name if ":" in name else f"{name}:{HTTPS_PORT}" for name in self.hosts)

    def __bool__(self) -> bool:
        return bool(self.upstreams or self.hosts or self.serve)


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """What a program may touch beside the folder it works in, and beside the machine's own programs."""

    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    network: Network = field(default_factory=Network)


NO_ACCESS = SandboxPolicy()


_KEY_NAMES = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".pypirc",
    ".config/gh", ".config/gcloud", ".local/share/keyrings", "secrets",
)  # fmt: skip


def private_part(folder: Path, private: Iterable[Path] = ()) -> Path | None:
    """Return the first private place that `folder` holds or lies in; None if it may be shown.

    A folder may lie inside `private` and inside a home, but not inside the key folders of a home.
    """
    shown = folder.resolve()
    homes = tuple(_homes())
    for place in (*homes, *(path.resolve() for path in private)):
        if place.is_relative_to(shown):
            return place
    keys = (home / name for home in homes for name in _KEY_NAMES)
    return next((key for key in keys if shown.is_relative_to(key)), None) or _key_in(shown)


def _key_in(shown: Path) -> Path | None:
    """Return what looks like keys directly below a folder, such as in the home of another user."""
    return next((shown / name for name in _KEY_NAMES if (shown / name).exists()), None)


def _homes() -> Iterator[Path]:
    """HOME and the home of the account; a service often has only the second."""
    yield Path(os.path.expanduser("~")).resolve()  # noqa: PTH111  Path.home() raises where there is none
    try:
        yield Path(pwd.getpwuid(os.geteuid()).pw_dir).resolve()
    except KeyError:
        return
