"""What an operator changes of a site that is there: its settings, and what its people may do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from webordinary.compose.container import Container
from webordinary.model.errors import Permanent
from webordinary.model.events import Event, EventKind
from webordinary.model.mail import Command
from webordinary.model.projects import MOST_WISHES, WISH_CHARACTERS, Project, SenderRole, time_zone
from webordinary.operations.access import hash_password
from webordinary.operations.mails import agents_of
from webordinary.operations.onboarding import project_of, resume_jobs

MOST_INSTRUCTION = 1000


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
    allow_hosts: tuple[str, ...] = ()
    refuse_hosts: tuple[str, ...] = ()


def change_site(services: Container, project_id: str, new: SiteChanges, by: str = "operator") -> Project:
    """Change what is given; mails that wait look again at once. Raises Permanent in words."""
    project = project_of(services, project_id)
    named = ("agent", "daily_cap_usd", "default_instruction", "approver", "wishes", "output", "time_zone")
    given = {name: getattr(new, name) for name in named if getattr(new, name) is not None}
    if new.edit_password is not None:
        given["edit_password"] = hash_password(new.edit_password) if new.edit_password else ""
    hosts = {host.lower() for host in (*project.allowed_hosts, *new.allow_hosts)}
    hosts -= {host.lower() for host in new.refuse_hosts}
    changed = replace(project, **given, allowed_hosts=tuple(sorted(hosts)))
    _check(services, project, changed)
    if new.output:
        for key in {one.key for one in services.directory.senders() if one.key.project_id == project_id}:
            services.provision(key)
    services.directory.add_project(changed, services.clock.now())
    _tell(services, project_id, by)
    resume_jobs(services, project_id)
    return changed


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


def _tell(services: Container, project_id: str, by: str) -> None:
    services.events.emit(Event(EventKind.SITE_CHANGED, data={"project": project_id, "by": by}))
