"""`webordinary release`: what a site shows and showed, and going back to it."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from textwrap import shorten

from webordinary.app import releases as app_releases
from webordinary.app.backends import open_services
from webordinary.entrypoints.cli.exits import CommandFailed, Exit
from webordinary.entrypoints.cli.known import known_site
from webordinary.entrypoints.cli.options import Commands, add_command, given, load_existing
from webordinary.entrypoints.cli.output import clock, print_json, table
from webordinary.site.releases import Stage

HEAD = ("release", "made", "files", "shown", "change")
_CHANGE = 60


def add_to(commands: Commands) -> None:
    """Declare the commands."""
    parser = commands.add_parser("release", help="list releases of a site, or go back to one", description="Releases.")
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = add_command(parts, "list", list_releases, "list the releases that are kept, the newest first")
    back = add_command(
        parts, "rollback", roll_back, "show an earlier release again, at once, and let the source follow"
    )
    for command in (listing, back):
        command.add_argument("project", help="name of the site")
        command.add_argument(
            "--stage", choices=[stage.value for stage in Stage], default=Stage.EDIT.value, help="which site (edit)"
        )
    back.add_argument(
        "release",
        nargs="?",
        type=given,
        help="beginning of its name; the one before the shown one if not given",
    )


def list_releases(args: argparse.Namespace) -> int:
    """One line per release."""
    with open_services(load_existing(args)) as services:
        known_site(services, args.project)
        kept = app_releases.releases_of(services, args.project, Stage(args.stage))
    if args.json:
        print_json([asdict(one) for one in kept])
        return Exit.OK
    print(table(HEAD, [_row(one) for one in kept]))
    return Exit.OK


def _row(one: app_releases.KeptRelease) -> tuple[object, ...]:
    shown, change = "now" if one.shown else "", shorten(one.change, _CHANGE, placeholder="…")
    return one.release, clock(one.made_at), one.files or "-", shown, change or "-"


def roll_back(args: argparse.Namespace) -> int:
    """Flip, then let main follow."""
    with open_services(load_existing(args)) as services:
        known_site(services, args.project)
        done = app_releases.roll_back(services, args.project, Stage(args.stage), args.release or "")
    if args.json:
        print_json({
            "project": args.project, "stage": args.stage, "release": done.release.name, "changed": done.flipped,
            "commit": done.commit, "problem": done.problem,
        })  # fmt: skip
    elif done.flipped:
        print(f"The {args.stage} site of {args.project} shows {done.release.name} again.")
    else:
        print(f"The {args.stage} site of {args.project} shows {done.release.name} already.")
    if done.commit and not args.json:
        print(f"Its source is back there too, by commit {done.commit[:12]}: the next change starts from what is shown.")
    if done.problem:
        raise CommandFailed(
            f"its source did not follow: {done.problem}",
            "run it again when that is over; until then the next change would show it all again",
        )
    return Exit.OK
