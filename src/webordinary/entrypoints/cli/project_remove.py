"""`webordinary project remove`: a customer leaves; all that onboarding made goes, the repository stays.

With `--sender`, one person leaves the site, and only their right to change it goes.
"""

from __future__ import annotations

import argparse
import sys

from webordinary.compose.backends import open_container
from webordinary.entrypoints.cli.exit_codes import CommandFailed, Exit
from webordinary.entrypoints.cli.options import Commands, add_command, find_site, load_existing, mail_address
from webordinary.entrypoints.cli.output import print_json, progress
from webordinary.operations.offboarding import (
    ProjectRemoval,
    SenderRemoval,
    plan_project_removal,
    plan_sender_removal,
    remove,
    remove_person,
)


def add_to(parts: Commands) -> None:
    about = "remove a site and what was made for it, or one person from a site; its git repository stays"
    parser = add_command(parts, "remove", run, about)
    parser.add_argument("name")
    parser.add_argument("--sender", metavar="MAIL", help="remove only this person, by their mail address")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--force", action="store_true", help="also while jobs are open: they are given up")


def run(args: argparse.Namespace) -> int:
    """Look, ask, undo; again is harmless."""
    return _remove_site(args) if args.sender is None else _remove_person(args)


def _remove_site(args: argparse.Namespace) -> int:
    with open_container(load_existing(args)) as services:
        find_site(services, args.name)
        leaving = plan_project_removal(services, args.name)
        if not args.yes:
            _confirm(_about_site(leaving), f"Remove {args.name}?")
        with progress(f"removing {args.name}") as report:
            remove(services, leaving, report, force=args.force)
    if args.json:
        senders = [sender.address for sender in leaving.senders]
        print_json({"removed": args.name, "senders": senders, "repository": leaving.project.repo})
        return Exit.OK
    print(f"{args.name} is removed; its repository {leaving.project.repo} stays as it is.")
    return Exit.OK


def _remove_person(args: argparse.Namespace) -> int:
    address = mail_address(args.sender)
    with open_container(load_existing(args)) as services:
        find_site(services, args.name)
        leaving = plan_sender_removal(services, args.name, address)
        asked = leaving.entry or leaving.jobs
        if asked and not args.yes:
            _confirm(_about_person(leaving), f"Remove {address} from {args.name}?")
        stopped = len(remove_person(services, leaving, force=args.force)) if asked else 0
    if args.json:
        others = [sender.address for sender in leaving.others]
        removed = [address] if leaving.entry else []
        print_json({"project": args.name, "removed": removed, "stopped": stopped, "may_change_it": others})
        return Exit.OK
    if leaving.entry:
        print(f"{address} is removed from {args.name}: mail from there changes nothing of it any more.")
    else:
        print(f"{address} may not change {args.name}; nobody was removed.")
    if stopped:
        print(f"  what was under way for it is stopped, and answered so: {stopped}")
    print(f"  {_who_is_left(leaving)}")
    return Exit.OK


def _confirm(about: str, question: str) -> None:
    if not sys.stdin.isatty():
        raise CommandFailed("nobody can be asked here", "say --yes if you mean it", Exit.USAGE)
    print(about)
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise CommandFailed("nothing was removed", "answer y if you mean it")


def _about_site(leaving: ProjectRemoval) -> str:
    people = ", ".join(sender.address for sender in leaving.senders) or "nobody"
    name = leaving.project.project_id
    return f"{name}: its sites with all releases, its queues, and the right of {people} to change it will be gone."


def _about_person(leaving: SenderRemoval) -> str:
    gone = f"{leaving.project_id}: mail from {leaving.address} will be treated as a stranger's."
    return f"{gone} What it changed so far stays. Then, {_who_is_left(leaving)}"


def _who_is_left(leaving: SenderRemoval) -> str:
    name = leaving.project_id
    if leaving.others:
        people = (f"{sender.address} ({sender.key.user_id})" for sender in leaving.others)
        return f"{', '.join(people)} may change {name}."
    return (
        f"nobody may change {name}. It is still shown, with its releases and repository: `webordinary project add "
        f"{name}` lets somebody change it again, `webordinary project remove {name}` removes the site."
    )
