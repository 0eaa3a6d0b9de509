"""`webordinary project remove`: a customer leaves; all that onboarding made goes, the repository stays."""

from __future__ import annotations

import argparse
import sys

from webordinary.app.backends import AWS, open_services
from webordinary.app.leaving import Leaving, look_at_leaving, remove
from webordinary.config import Config
from webordinary.entrypoints.cli.exits import CommandFailed, Exit
from webordinary.entrypoints.cli.options import Commands, add_command, load_existing
from webordinary.entrypoints.cli.output import print_json
from webordinary.entrypoints.cli.progress import progress


def add_to(parts: Commands) -> None:
    """Declare the command."""
    parser = add_command(parts, "remove", run, "remove a site and what was made for it; its git repository stays")
    parser.add_argument("name")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--force", action="store_true", help="also while jobs are open: they are given up")


def run(args: argparse.Namespace) -> int:
    """Look, ask, undo; again is harmless."""
    with open_services(load_existing(args)) as services:
        if services.directory.project(args.name) is None:
            raise CommandFailed(f"there is no site {args.name!r}", "see `webordinary project list`")
        leaving = look_at_leaving(services, args.name)
        if not args.yes:
            _confirm(leaving)
        with progress(f"removing {args.name}") as report:
            remove(services, leaving, report, force=args.force)
        config = services.config
    if args.json:
        senders = [sender.address for sender in leaving.senders]
        print_json({"removed": args.name, "senders": senders, "repository": leaving.project.repo})
        return Exit.OK
    print(f"{args.name} is removed; its repository {leaving.project.repo} stays as it is.")
    for line in _rest(config, args.name):
        print(f"  {line}")
    return Exit.OK


def _confirm(leaving: Leaving) -> None:
    if not sys.stdin.isatty():
        raise CommandFailed("nobody can be asked here", "say --yes if you mean it", Exit.USAGE)
    people = ", ".join(sender.address for sender in leaving.senders) or "nobody"
    name = leaving.project.project_id
    print(f"{name}: its sites with all releases, its queues, and the right of {people} to change it will be gone.")
    if input(f"Remove {name}? [y/N] ").strip().lower() not in ("y", "yes"):
        raise CommandFailed("nothing was removed", "answer y if you mean it")


def _rest(config: Config, project_id: str) -> list[str]:
    if config.backend != AWS or config.aws_endpoint:
        return []
    return [
        f"its CloudFront distributions go with `webordinary aws destroy --site {project_id}`;",
        "leave it out of the projects of your next deployment",
    ]
