"""The DNS by dnspython: answers are cached, every lookup has a deadline, and few run at once."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

import dns.exception
import dns.nameserver
import dns.resolver

from webordinary.mail.dmarc import DnsFailed

LOOKUP_SECONDS = 5.0
MAX_CACHED = 1000
MAX_AT_ONCE = 8
MAX_RECORDS = 20
_SHORTEST, _LONGEST = 60.0, 3600.0
_PORT = 53


class DnsResolver:
    """See Dns. `servers` are addresses, `127.0.0.1` or `127.0.0.1:5353`; without any, those of this machine.

    Thread-safe. Failures are not cached.
    """

    def __init__(
        self,
        servers: Sequence[str] = (),
        seconds: float = LOOKUP_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._servers, self._seconds, self._monotonic = servers, seconds, monotonic
        self._cached: OrderedDict[str, tuple[float, tuple[bytes, ...]]] = OrderedDict()
        self._guard = threading.Lock()
        self._at_once = threading.Semaphore(MAX_AT_ONCE)
        self._resolver: dns.resolver.Resolver | None = None

    def txt(self, name: str) -> tuple[bytes, ...]:
        with self._guard:
            until, known = self._cached.get(name, (0.0, ()))
        if self._monotonic() < until:
            return known
        if not self._at_once.acquire(timeout=self._seconds):
            raise DnsFailed(f"{name}: too many lookups at once")
        try:
            records, lifetime = self._look_up(name)
        finally:
            self._at_once.release()
        self._keep(name, records, lifetime)
        return records

    def _look_up(self, name: str) -> tuple[tuple[bytes, ...], float]:
        try:
            answer = self._made().resolve(name, "TXT", lifetime=self._seconds, search=False)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return (), _SHORTEST
        except (dns.exception.DNSException, OSError) as problem:
            raise DnsFailed(f"{name}: {type(problem).__name__}") from problem
        records = tuple(b"".join(record.strings) for record in answer)[:MAX_RECORDS]
        return records, min(max(float(answer.rrset.ttl if answer.rrset else 0), _SHORTEST), _LONGEST)

    def _made(self) -> dns.resolver.Resolver:
        if self._resolver is None:
            resolver = dns.resolver.Resolver(configure=not self._servers)
            if self._servers:
                resolver.nameservers = [_server(one) for one in self._servers]
            self._resolver = resolver
        return self._resolver

    def _keep(self, name: str, records: tuple[bytes, ...], lifetime: float) -> None:
        with self._guard:
            self._cached[name] = (self._monotonic() + lifetime, records)
            while len(self._cached) > MAX_CACHED:
                self._cached.popitem(last=False)


def _server(address: str) -> dns.nameserver.Nameserver:
    host, port = address, ""
    if address.startswith("[") or address.count(":") == 1:
        host, _, port = address.rpartition(":")
    return dns.nameserver.Do53Nameserver(host.strip("[]"), int(port or _PORT))
