"""Do the sites' host names lead anywhere? Replies link to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import dns.resolver

from webordinary.adapters.aws.setup.checks.dns_records import ask
from webordinary.model.findings import Check, Finding, doubtful, good

NO_DOMAIN = "localhost"
_POINT_IT = "deploy with `-c hosted_zone=…`, or point it at the site's distribution yourself: docs/aws.md, Settings"


def site_name_checks(
    hosts: Sequence[str], domain: str, resolver: dns.resolver.Resolver | None = None
) -> Iterator[Check]:
    """One per host name, or a single one where no domain is set."""
    if domain == NO_DOMAIN:
        yield Check("site names", _no_domain)
        return
    resolver = resolver or dns.resolver.Resolver()
    for host in hosts:
        yield Check(f"site name {host}", partial(_site_name, resolver, host))


def _no_domain() -> Finding:
    return doubtful(
        f"no domain is set, so links in replies lead to {NO_DOMAIN}",
        "set domain, or WEBORDINARY_DOMAIN, to what was deployed with `-c domain=…`",
    )


def _site_name(resolver: dns.resolver.Resolver, host: str) -> Finding:
    if not any(ask(resolver, host, kind) for kind in ("A", "AAAA")):
        return doubtful(f"{host} has no address, so links in replies lead nowhere", _POINT_IT)
    return good(f"{host} has an address")
