"""Routes by host name: the page, a customer's site, or the port for browsers without *.localhost.

The three are apart: a site's scripts share neither origin nor routes nor cookies with the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from webordinary.jobs.site_files import Stage, site_host

# Only these names reach the page: a stranger's name that was made to resolve to 127.0.0.1 does not (DNS
# rebinding). The port is not compared, so that a tunnel from another port works; no browser can forge it.
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_HOST = re.compile(r"(?P<name>\[[0-9a-f:]{2,39}\]|[a-z0-9.-]{1,253}?)\.?(?::(?P<port>[0-9]{1,5}))?")
_PROJECT = re.compile(r"[a-z0-9-]{1,32}")


@dataclass(frozen=True, slots=True)
class SiteHost:
    """A customer's site at one stage."""

    project_id: str
    stage: Stage

    def __str__(self) -> str:
        return f"{self.stage}.{self.project_id}"


@dataclass(frozen=True, slots=True)
class DashboardHost:
    """The operator's page."""


@dataclass(frozen=True, slots=True)
class SitePort:
    """The second port: one site at a time, chosen by the visitor."""


Destination = DashboardHost | SitePort | SiteHost


@dataclass(frozen=True, slots=True)
class Hosts:
    """Tells the destinations apart by host name and by the port that the request arrived at.

    With `page_host` (the page is on the net) each port serves its own kind only: a proxy that sends every name to
    one port can then not show the page under a customer's name.
    """

    domain: str
    preview_port: int
    page_host: str = ""

    def destination(
        self, host_header: str, local_port: int, own_domains: Mapping[str, str] | None = None
    ) -> Destination | None:
        """Where a request belongs; None for a name that is not ours. `own_domains` maps a domain to its project."""
        name, _ = split_host(host_header)
        at_sites = local_port == self.preview_port
        if self.page_host:
            if at_sites:
                return self.site(name, own_domains or {})
            return DashboardHost() if name == self.page_host or name in LOOPBACK else None
        if name in LOOPBACK:
            return SitePort() if at_sites else DashboardHost()
        return self.site(name, own_domains or {})

    def site(self, name: str, own_domains: Mapping[str, str]) -> SiteHost | None:
        """The site that has this name: below our domain, or a domain of its own."""
        if project := own_domains.get(name):
            return SiteHost(project, Stage.PUBLIC)
        return site_of(name.removesuffix(f".{self.domain}")) if name.endswith(f".{self.domain}") else None


def split_host(host_header: str) -> tuple[str, str]:
    """The name and the port (empty where left out) of a Host header; empty names for nonsense."""
    match = _HOST.fullmatch(host_header.strip().lower())
    return (match["name"], match["port"] or "") if match else ("", "")


def site_of(name: str) -> SiteHost | None:
    """Read `edit.amelia` (the edit site), `t-0123456789abcdef.edit.amelia` (a preview) or `amelia` (the public one)."""
    stage, _, project_id = name.rpartition(".")
    if not _PROJECT.fullmatch(project_id):
        return None
    try:
        return SiteHost(project_id, Stage(stage.removesuffix(f".{Stage.EDIT}") or Stage.PUBLIC))
    except ValueError:
        return None


def site_address(site: SiteHost, domain: str, port: str) -> str:
    """The web address of a site on this machine, under its own host name."""
    return f"http://{site_host(site.project_id, site.stage)}.{domain}{':' + port if port else ''}/"
