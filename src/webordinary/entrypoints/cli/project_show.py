"""`webordinary project list` and `show`: which sites there are, and who may change them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict

from webordinary.app import sites
from webordinary.app.backends import open_services
from webordinary.config import Config
from webordinary.entrypoints import running
from webordinary.entrypoints.cli.exits import Exit
from webordinary.entrypoints.cli.known import known_site
from webordinary.entrypoints.cli.options import Commands, add_command, load_existing
from webordinary.entrypoints.cli.output import print_json, table
from webordinary.model.projects import Project, Sender
from webordinary.site.releases import Stage


def add_to(parts: Commands) -> None:
    """Declare the commands."""
    add_command(parts, "list", list_projects, "list the sites")
    show = add_command(parts, "show", show_project, "show one site and who may change it")
    show.add_argument("name")


def list_projects(args: argparse.Namespace) -> int:
    """One line per site."""
    with open_services(load_existing(args)) as services:
        projects, senders = services.directory.projects(), services.directory.senders()
    people = {p.project_id: [s for s in senders if s.key.project_id == p.project_id] for p in projects}
    if args.json:
        print_json([asdict(p) | {"senders": _plain(people[p.project_id])} for p in projects])
        return Exit.OK
    rows = [(p.project_id, p.repo, ", ".join(s.address for s in people[p.project_id])) for p in projects]
    print(table(("site", "repository", "may change it"), rows))
    return Exit.OK


def show_project(args: argparse.Namespace) -> int:
    """Everything about one site."""
    config = running.as_it_runs(load_existing(args))
    with open_services(config) as services:
        project = known_site(services, args.name)
        people = [
            {"address": s.address, "user": s.key.user_id, "mailbox": sites.mailbox_of(services, s.address, args.name)}
            for s in services.directory.senders()
            if s.key.project_id == args.name
        ]
        mailbox, credential = services.config.mailbox, services.credentials.kind(args.name).value
    if args.json:
        print_json(asdict(project) | {"credential": credential, "senders": people, "mailbox": mailbox})
        return Exit.OK
    print(table(("setting", "value"), _settings(project, credential, config)))
    print("\nMay change it:")
    print(table(("address", "user", "by mail to"), [tuple(person.values()) for person in people]))
    return Exit.OK


def _settings(project: Project, credential: str, config: Config) -> list[tuple[str, object]]:
    """In the words of docs/sites.md; `--json` has the names of the records."""
    cap = project.daily_cap_usd or config.daily_cap_usd
    return [
        ("site", project.project_id),
        ("edit site", sites.site_url(config, project.project_id, Stage.EDIT)),
        ("public site", sites.site_url(config, project.project_id, Stage.PUBLIC)),
        ("repository", project.repo),
        ("credential for it", credential),
        ("built by", project.builder or "what fits its files"),
        ("edited by", f"the agent {project.agent}"),
        ("a mail without words asks for", project.default_instruction or "-"),
        ("agents may cost", f"${cap:g} a day" if cap else "without limit"),
        ("paused", "yes; `webordinary resume` ends it" if project.paused else "no"),
        ("output queue", "yes" if project.output else "no"),
    ]


def _plain(senders: Iterable[Sender]) -> list[dict[str, str]]:
    return [{"address": s.address, "user": s.key.user_id} for s in senders]
