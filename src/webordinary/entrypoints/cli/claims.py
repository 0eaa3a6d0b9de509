"""`webordinary claims`: who acts for whom, under which fence, until when."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from webordinary.app.backends import open_services
from webordinary.entrypoints.cli.exits import Exit
from webordinary.entrypoints.cli.options import Commands, add_command, load_existing
from webordinary.entrypoints.cli.output import clock, print_json, table
from webordinary.model.overview import ClaimSummary

MAX_CLAIMS = 1000
HEAD = ("key", "worker", "fence", "status", "since", "lease ends", "does")


def add_to(commands: Commands) -> None:
    """Declare the command."""
    add_command(commands, "claims", run, "show which worker acts for which project and user")


def run(args: argparse.Namespace) -> int:
    """Look once and print it."""
    now = datetime.now(UTC)
    with open_services(load_existing(args)) as services:
        claims = services.overview.pool(now, MAX_CLAIMS).claims
    if args.json:
        print_json([_plain(claim, now) for claim in claims])
        return Exit.OK
    print(table(HEAD, [_row(claim, now) for claim in claims]))
    return Exit.OK


def _row(claim: ClaimSummary, now: datetime) -> tuple[object, ...]:
    lease = clock(claim.lease_expires_at) + ("" if claim.lease_expires_at > now else " (over)")
    does = "busy" if claim.busy else "idle"
    return claim.key, claim.worker, claim.fence, claim.status, clock(claim.claimed_at), lease, does


def _plain(claim: ClaimSummary, now: datetime) -> dict[str, object]:
    return {
        "key": str(claim.key),
        "worker": claim.worker,
        "worker_id": claim.worker_id,
        "fence": claim.fence,
        "status": str(claim.status),
        "claimed_at": claim.claimed_at,
        "lease_expires_at": claim.lease_expires_at,
        "live": claim.lease_expires_at > now,
        "busy": claim.busy,
    }
