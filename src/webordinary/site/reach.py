"""What an outside program may touch: everything that is not named here is out of its sight."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

HTTPS_PORT = 443


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One request as it is about to leave; `headers` are those that a signature may cover."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


Sign: TypeAlias = Callable[[Outgoing], Mapping[str, str]]
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
    """Where a program may connect to. `upstreams` by a short name, see `Cell.url`; `hosts` through the proxy.

    A host is an exact name, meaning its port 443, or `name:port`.
    """

    upstreams: Mapping[str, Upstream] = field(default_factory=dict)
    hosts: frozenset[str] = frozenset()
    bytes: int = 2_000_000_000
    """Both ways together, for one run."""

    @property
    def allowed(self) -> frozenset[str]:
        """The hosts, each with its port."""
        return frozenset(name if ":" in name else f"{name}:{HTTPS_PORT}" for name in self.hosts)

    def __bool__(self) -> bool:
        return bool(self.upstreams or self.hosts)


@dataclass(frozen=True, slots=True)
class Reach:
    """What a program may touch beside the folder it works in, and beside the machine's own programs."""

    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    network: Network = field(default_factory=Network)


NOTHING_ELSE = Reach()
