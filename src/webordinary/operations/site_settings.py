"""What an operator changes of a site that is there: settings, roles of its people, domains of its own, its webhook."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from webordinary.compose.container import Container
from webordinary.config import Config
from webordinary.mail.ports import Directory, change_project
from webordinary.model.errors import Permanent
from webordinary.model.events import Event, EventKind
from webordinary.model.mail import Command
from webordinary.model.projects import (
    MOST_WISHES,
    WISH_CHARACTERS,
    DomainFinding,
    Project,
    SenderRole,
    time_zone,
)
from webordinary.operations.access import hash_password
from webordinary.operations.mails import agents_of
from webordinary.operations.onboarding import project_of, resume_jobs
from webordinary.operations.ports import OwnDomains

MOST_INSTRUCTION = 1000
NAMED = ("agent", "daily_cap_usd", "default_instruction", "approver", "wishes", "output", "time_zone")
"""Settings that are replaced as they are given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteChanges:
    """New values of settings; None leaves one as it is."""

    agent: str | None = None
    daily_cap_usd: float | None = None
    default_instruction: str | None = None
    approver: str | None = None
    wishes: tuple[str, ...] | None = None
    output: bool | None = None
    time_zone: str | None = None
    edit_password: str | None = None
    """As visitors type it; empty removes it."""
    seen: str = ""
    """`seen_of` the settings that these replace; empty: whatever they are."""
    allow_hosts: tuple[str, ...] = ()
    refuse_hosts: tuple[str, ...] = ()


def change_site(services: Container, project_id: str, new: SiteChanges, by: str = "operator") -> Project:
    """Change what is given; mails that wait look again at once. Raises Permanent in words."""
    given = {name: getattr(new, name) for name in NAMED if getattr(new, name) is not None}
    if new.edit_password is not None:
        given["edit_password"] = hash_password(new.edit_password) if new.edit_password else ""

    def change(project: Project) -> Project:
        if new.seen and new.seen != seen_of(project):
            raise Permanent(
                f"the settings of {project_id} were changed while you wrote: compare yours with them, and save again "
                "to replace them"
            )
        hosts = {host.lower() for host in (*project.allowed_hosts, *new.allow_hosts)}
        hosts -= {host.lower() for host in new.refuse_hosts}
        changed = replace(project, **given, allowed_hosts=tuple(sorted(hosts)))
        _check(services, project, changed)
        return changed

    project_of(services, project_id)
    changed = change_project(services.directory, project_id, change)
    if new.output:
        for key in {one.key for one in services.directory.senders() if one.key.project_id == project_id}:
            services.provision(key)
    _tell(services, project_id, by)
    resume_jobs(services, project_id)
    return changed


def seen_of(project: Project) -> str:
    """What a form of the settings shows, digested: it changes whenever one of them does."""
    shown = [getattr(project, name) for name in (*NAMED, "edit_password")]
    return hashlib.sha256(repr(shown).encode()).hexdigest()[:16]


WISH_LIMITS = f"a site has at most {MOST_WISHES} wishes of {WISH_CHARACTERS} characters"


def are_few(wishes: Sequence[str]) -> bool:
    """Whether a site may have these standing wishes."""
    return len(wishes) <= MOST_WISHES and all(len(one) <= WISH_CHARACTERS for one in wishes)


def _check(services: Container, old: Project, new: Project) -> None:
    if not are_few(new.wishes):
        raise Permanent(f"{WISH_LIMITS}: give fewer or shorter ones")
    if len(new.default_instruction) > MOST_INSTRUCTION:
        raise Permanent(f"what a mail without words asks for has at most {MOST_INSTRUCTION} characters: shorten it")
    if new.agent != old.agent and new.agent not in agents_of(services):
        raise Permanent(f"there is no agent {new.agent!r} here; there are: {', '.join(agents_of(services))}")
    if time_zone(new.time_zone) is None:
        raise Permanent(f"{new.time_zone[:80]!r} is no time zone known here: write it like Europe/Berlin")
    may = (one for one in services.directory.entries(new.approver or "") if one.role.may(Command.PUBLISH))
    if new.approver != old.approver and new.approver and new.project_id not in {one.key.project_id for one in may}:
        command = f"`webordinary project role {new.project_id} {new.approver} publisher`"
        raise Permanent(f"{new.approver} may not publish {new.project_id}; add that person first, then {command}")


def set_role(services: Container, project_id: str, address: str, role: SenderRole, by: str = "operator") -> None:
    """What a person may do from now on, also with changes under way. Raises Permanent for a stranger."""
    project_of(services, project_id)
    if not services.directory.set_role(address, project_id, role):
        add = f"add the person with `webordinary project add {project_id} --user NAME --sender {address}`"
        raise Permanent(f"{address} may change nothing of {project_id}; {add}")
    _tell(services, project_id, by)


def lacks_publisher(services: Container, project_id: str) -> bool:
    """Whether a site has people, and none of them may publish it: its changes never become public by mail."""
    people = [one for one in services.directory.senders() if one.key.project_id == project_id]
    return bool(people) and not any(one.role.may(Command.PUBLISH) for one in people)


def _tell(services: Container, project_id: str, by: str) -> None:
    services.events.emit(Event(EventKind.SITE_CHANGED, data={"project": project_id, "by": by}))


def new_hook(services: Container, project_id: str, by: str = "operator") -> str:
    """Give a site a webhook, or a new secret for it; returns the secret, which signs each call."""
    secret = secrets.token_urlsafe(32)
    change_project(services.directory, project_id, lambda one: replace(one, hook_secret=secret))
    _tell(services, project_id, by)
    return secret


def remove_hook(services: Container, project_id: str, by: str = "operator") -> None:
    """Remove the webhook of a site. Idempotent."""
    change_project(services.directory, project_id, lambda one: replace(one, hook_secret=""))
    _tell(services, project_id, by)


def hook_address(public_url: str, port: int, project_id: str) -> str:
    """Where the repository's host calls the webhook of a site."""
    return f"{(public_url or f'http://127.0.0.1:{port}').rstrip('/')}/hooks/{project_id}"


def hook_doubts(config: Config, project: Project) -> list[str]:
    """Why no one may call the webhook of a site, in words."""
    doubts = []
    if not config.public_url:
        doubts.append("No one outside this machine reaches this address: set `public_url` first (docs/server.md).")
    if Path(project.repo).is_absolute():
        doubts.append(
            f"Its repository is a folder of this machine, which calls no webhook by itself: after a push run "
            f"`webordinary release rebuild {project.project_id}`."
        )
    return doubts


MOST_DOMAINS = 20
_PUBLIC_NAME = re.compile(r"\.(?:[a-z]{2,63}|xn--[a-z0-9-]+)\Z")
"""The end of a domain below a top-level domain; neither one word nor an IP address."""
Resolve = Callable[[str], frozenset[str]]
"""The addresses of a host name; empty if it has none."""


def add_domain(services: Container, project_id: str, domain: str, by: str = "operator") -> DomainFinding:
    """Show a site under a domain of its own, as far as possible now; a second call continues. Returns DNS records."""
    project, ours = project_of(services, project_id), _ours(services.config)
    if edge := services.own_domains:
        found = show_domain(services.directory, edge, project, domain, ours)
    else:
        change_project(services.directory, project_id, lambda one: _with_domain(services.directory, one, domain, ours))
        found = check_domain(domain, _site_name(services, project_id), services.addresses_of)
    _tell(services, project_id, by)
    return found


def look_at_domain(services: Container, project_id: str, domain: str) -> DomainFinding:
    """Whether a domain leads to a site; changes nothing. Raises Permanent for a domain that was not added."""
    project = project_of(services, project_id)
    if edge := services.own_domains:
        return edge.look(project_id, domain)
    if domain not in project.domains:
        add = f"`webordinary project domain add {project_id} {domain}`"
        raise Permanent(f"{domain} is no domain of {project_id}: add it with {add}")
    return check_domain(domain, _site_name(services, project_id), services.addresses_of)


def remove_domain(services: Container, project_id: str, domain: str, by: str = "operator") -> str:
    """Remove a domain from a site; returns in words what remains to be done. Idempotent."""
    project_of(services, project_id)
    left = edge.hide(project_id, domain) if (edge := services.own_domains) else ""
    change_project(
        services.directory,
        project_id,
        lambda one: replace(one, domains=tuple(known for known in one.domains if known != domain)),
    )
    _tell(services, project_id, by)
    return left


def _ours(config: Config) -> list[str]:
    return [config.domain, *filter(None, [urlsplit(config.public_url).hostname])]


def _site_name(services: Container, project_id: str) -> str:
    return f"{project_id}.{services.config.domain}"


def show_domain(
    directory: Directory, edge: OwnDomains, project: Project, domain: str, ours: Sequence[str]
) -> DomainFinding:
    """On a cloud's edge: the domain is stored, and named in replies, once it leads to the site."""
    _with_domain(directory, project, domain, ours)  # refused before anything is made
    found = edge.show(project.project_id, domain)
    if found.points_here:
        change_project(directory, project.project_id, lambda one: _with_domain(directory, one, domain, ours))
    return found


def _with_domain(directory: Directory, project: Project, domain: str, ours: Sequence[str]) -> Project:
    if not _PUBLIC_NAME.search(domain):
        raise Permanent(f"{domain} is no domain that visitors can reach: write it like www.example.com")
    for name in ours:
        if domain == name or domain.endswith(f".{name}"):
            raise Permanent(f"{domain} is a name of this server: sites below {name} have their names already")
    for other in directory.projects():
        if domain in other.domains and other.project_id != project.project_id:
            raise Permanent(f"the domain {domain} shows {other.project_id} already: remove it there first")
    domains = (*(known for known in project.domains if known != domain), domain)
    if len(domains) > MOST_DOMAINS:
        raise Permanent(f"a site has at most {MOST_DOMAINS} domains: remove one first")
    return replace(project, domains=domains)


def dns_records(domain: str, site_name: str) -> list[str]:
    """The DNS records that make a domain lead to a site, as an operator sends them to a customer."""
    if domain.count(".") == 1:
        return [
            f"{domain}.  ALIAS (or ANAME)  {site_name}.",
            f"or, if your DNS has no such record: {domain}.  A  and  AAAA  with the addresses of {site_name}",
        ]
    return [f"{domain}.  CNAME  {site_name}."]


def check_domain(domain: str, site_name: str, resolve: Resolve) -> DomainFinding:
    """Compare the addresses of a domain with those of the site's own name: all of them must be the server's."""
    records = tuple(dns_records(domain, site_name))
    if site_name.endswith(".localhost"):
        words = (
            f"{domain} cannot lead here while this server is called localhost: first set `domain` to the server's own "
            f"name (docs/server.md); its DNS then names that instead of {site_name}"
        )
        return DomainFinding(domain, False, words, records)
    found, expected = resolve(domain), resolve(site_name)
    if found and found <= expected:
        return DomainFinding(domain, True, f"{domain} leads here", records)
    if not expected:
        words = f"{domain} cannot be compared: the server's own name has no address in DNS yet"
        return DomainFinding(domain, False, words, records, compared=False)
    leads = ", ".join(sorted(found)) or "no address"
    words = f"{domain} leads to {leads}, not to {', '.join(sorted(expected))}: correct its DNS record"
    return DomainFinding(domain, False, words, records)
