"""Domains of customers' own: which project one shows, what to put into DNS, and whether DNS says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from webordinary.mail.ports import Directory
from webordinary.model.errors import Permanent
from webordinary.model.projects import Project

MOST_DOMAINS = 20
Resolve = Callable[[str], frozenset[str]]
"""The addresses of a host name; empty if it has none."""


@dataclass(frozen=True, slots=True)
class DomainCheck:
    """What DNS says of a domain."""

    domain: str
    found: frozenset[str]
    wanted: frozenset[str]

    @property
    def points_here(self) -> bool:
        """Every address of the domain is one of the server's."""
        return bool(self.found) and self.found <= self.wanted

    @property
    def words(self) -> str:
        """The finding, and what to do."""
        if self.points_here:
            return f"{self.domain} leads here"
        if not self.wanted:
            return f"{self.domain} cannot be compared: the server's own name has no address in DNS yet"
        found = ", ".join(sorted(self.found)) or "no address"
        return f"{self.domain} leads to {found}, not to {', '.join(sorted(self.wanted))}: correct its DNS record"


def add_domain(directory: Directory, project: Project, domain: str, ours: Sequence[str], now: datetime) -> Project:
    """Show a project's public site under a domain too. `ours` are the names that belong to the server itself."""
    for name in ours:
        if domain == name or domain.endswith(f".{name}"):
            raise Permanent(f"{domain} is a name of this server: sites below {name} have their names already")
    for other in directory.projects():
        if domain in other.domains and other.project_id != project.project_id:
            raise Permanent(f"{domain} shows {other.project_id} already: remove it there first")
    domains = (*(known for known in project.domains if known != domain), domain)
    if len(domains) > MOST_DOMAINS:
        raise Permanent(f"a site has at most {MOST_DOMAINS} domains: remove one first")
    changed = replace(project, domains=domains)
    directory.add_project(changed, now)
    return changed


def remove_domain(directory: Directory, project: Project, domain: str, now: datetime) -> Project:
    """Show nothing under this domain any more; again is harmless."""
    changed = replace(project, domains=tuple(known for known in project.domains if known != domain))
    directory.add_project(changed, now)
    return changed


def dns_records(domain: str, site_name: str) -> list[str]:
    """The DNS records that make a domain lead to a site, as an operator sends them to a customer."""
    if domain.count(".") == 1:
        return [
            f"{domain}.  ALIAS (or ANAME)  {site_name}.",
            f"or, if your DNS has no such record: {domain}.  A  and  AAAA  with the addresses of {site_name}",
        ]
    return [f"{domain}.  CNAME  {site_name}."]


def check_domain(domain: str, site_name: str, resolve: Resolve) -> DomainCheck:
    """Compare the addresses of a domain with those of the site's own name."""
    return DomainCheck(domain, resolve(domain), resolve(site_name))
