"""`webordinary pause` and `webordinary resume`: mails of a site wait, and go on."""

from __future__ import annotations

import argparse

from webordinary.app import upkeep
from webordinary.app.backends import open_services
from webordinary.entrypoints.cli.exits import Exit
from webordinary.entrypoints.cli.known import known_site
from webordinary.entrypoints.cli.options import Commands, add_command, given, load_existing
from webordinary.entrypoints.cli.output import print_json


def add_to(commands: Commands) -> None:
    """Declare the commands."""
    pausing = add_command(commands, "pause", pause, "do nothing on a site for now; its mails are kept")
    resuming = add_command(commands, "resume", resume, "go on with a site that was paused")
    for parser in (pausing, resuming):
        parser.add_argument("project", nargs="?", type=given, help="the site (all of them if not given)")


def pause(args: argparse.Namespace) -> int:
    """Customers are told that their mail waits; a job that runs is finished."""
    return _each(args, paused=True)


def resume(args: argparse.Namespace) -> int:
    """What waited is done now, in its order."""
    return _each(args, paused=False)


def _each(args: argparse.Namespace, *, paused: bool) -> int:
    with open_services(load_existing(args)) as services:
        names = (
            [known_site(services, args.project).project_id]
            if args.project
            else [project.project_id for project in services.directory.projects()]
        )
        freed = {name: upkeep.pause(services, name, paused=paused) for name in names}
    if args.json:
        print_json([{"project": name, "paused": paused, "keys_set_free": count} for name, count in freed.items()])
        return Exit.OK
    if not freed:
        print("there is no site yet; add one with `webordinary project add`")
    for name in freed:
        print(f"{name} is paused: its mails wait" if paused else f"{name} goes on")
    return Exit.OK
