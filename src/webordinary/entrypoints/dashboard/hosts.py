"""Routes by host name: the page, a customer's site, or the port for browsers without *.localhost.

The three are apart: a site's scripts share neither origin nor routes nor cookies with the page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from webordinary.jobs.site_files import Stage

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


Door = DashboardHost | SitePort | SiteHost


@dataclass(frozen=True, slots=True)
class Hosts:
    """Tells the doors apart by host name and by the port that the request arrived at."""

    domain: str
    preview_port: int

    def door(self, host_header: str, local_port: int) -> Door | None:
        """Where a request belongs; None for a name that is not ours."""
        name, _ = split_host(host_header)
        if name in LOOPBACK:
            return SitePort() if local_port == self.preview_port else DashboardHost()
        return site_of(name.removesuffix(f".{self.domain}")) if name.endswith(f".{self.domain}") else None


def split_host(host_header: str) -> tuple[str, str]:
    """The name and the port (empty where left out) of a Host header; empty names for nonsense."""
    match = _HOST.fullmatch(host_header.strip().lower())
    return (match["name"], match["port"] or "") if match else ("", "")


def site_of(name: str) -> SiteHost | None:
    """Read `edit.amelia` (the edit site) or `amelia` (the public one)."""
    stage, _, project_id = name.rpartition(".")
    if not _PROJECT.fullmatch(project_id) or stage not in ("", Stage.EDIT, Stage.PUBLIC):
        return None
    return SiteHost(project_id, Stage(stage or Stage.PUBLIC))


def site_address(site: SiteHost, domain: str, port: str) -> str:
    """The web address of a site under its own host name."""
    prefix = "edit." if site.stage is Stage.EDIT else ""
    return f"http://{prefix}{site.project_id}.{domain}{':' + port if port else ''}/"
