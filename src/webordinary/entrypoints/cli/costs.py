"""`webordinary costs`: what agents cost, by day, site and conversation."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

from webordinary.app.backends import open_services
from webordinary.entrypoints.cli.exits import Exit
from webordinary.entrypoints.cli.known import known_site
from webordinary.entrypoints.cli.options import Commands, add_command, given, load_existing, whole
from webordinary.entrypoints.cli.output import print_json, table

MOST_DAYS = 3650
HEAD = ("day", "site", "conversation", "jobs", "cost")


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = add_command(commands, "costs", run, "show what agents cost")
    parser.add_argument("project", nargs="?", type=given, help="one site (all of them if not given)")
    parser.add_argument(
        "--days", type=whole(1, MOST_DAYS), default=30, metavar="N", help="the last N days, with today (30)"
    )


def run(args: argparse.Namespace) -> int:
    """Look once and print it."""
    since = datetime.now(UTC).date() - timedelta(days=args.days - 1)
    with open_services(load_existing(args)) as services:
        if args.project:
            known_site(services, args.project)
        spent = services.ledger.listing(args.project, since)
    if args.json:
        print_json([asdict(row) for row in spent])
        return Exit.OK
    rows = [(row.day, row.project_id, row.thread_id, row.jobs, f"${row.usd:.2f}") for row in spent]
    print(table(HEAD, rows))
    print(f"\nin all: ${sum(row.usd for row in spent):.2f} since {since}")
    return Exit.OK
