"""`webordinary project set`: what a site may cost, and what a mail without words asks for."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from webordinary import config_rules
from webordinary.app import upkeep
from webordinary.app.backends import open_services
from webordinary.config import setting_of
from webordinary.entrypoints.cli.exits import CommandFailed, Exit
from webordinary.entrypoints.cli.known import known_site
from webordinary.entrypoints.cli.options import Commands, add_command, load_existing
from webordinary.entrypoints.cli.output import print_json

_CAP = "what its agents may cost on one day; 0: what the setting daily_cap_usd says"
_INSTRUCTION = "what a mail without words asks for; empty: nothing, its sender is asked"
_SHOWN = 80


def add_to(parts: Commands) -> None:
    """Declare the command."""
    about = "change what a site may cost on one day, or what a mail without words asks for"
    command = add_command(parts, "set", set_project, about)
    command.add_argument("name")
    command.add_argument("--daily-cap", metavar="USD", type=_as(setting_of("daily_cap_usd").rule), help=_CAP)
    command.add_argument("--default-instruction", metavar="TEXT", type=_as(config_rules.text()), help=_INSTRUCTION)


def set_project(args: argparse.Namespace) -> int:
    """Change what is given; mails that are held look again at once."""
    given = {"daily_cap_usd": args.daily_cap, "default_instruction": args.default_instruction}
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        raise CommandFailed("nothing to set", "say --daily-cap or --default-instruction", Exit.USAGE)
    with open_services(load_existing(args)) as services:
        project = replace(known_site(services, args.name), **given)
        services.directory.add_project(project, services.clock.now())
        upkeep.let_go(services, project.project_id)
    if args.json:
        print_json(asdict(project))
    else:
        print(f"{project.project_id} is changed: see `webordinary project show {project.project_id}`")
    return Exit.OK


def _as(rule: config_rules.Rule) -> Callable[[str], Any]:
    """Read an argument by the rule of a setting."""

    def read(text: str) -> object:
        try:
            return rule.read(text.strip())
        except ValueError as problem:
            raise argparse.ArgumentTypeError(f"{text[:_SHOWN]!r} is not {rule.allowed}") from problem

    return read
