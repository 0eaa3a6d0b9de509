"""`webordinary queues`: what waits for whom, how long, and who owns it; and the unclaimed queue."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from webordinary.app.backends import open_services
from webordinary.entrypoints.cli.exits import Exit
from webordinary.entrypoints.cli.options import Commands, add_command, load_existing
from webordinary.entrypoints.cli.output import print_json, table
from webordinary.entrypoints.dashboard.formats import duration
from webordinary.model.overview import QueueSummary

MAX_QUEUES = 1000
HEAD = ("key", "preparing", "queued", "running", "oldest waits", "owner")


def add_to(commands: Commands) -> None:
    """Declare the command."""
    add_command(commands, "queues", run, "show what waits, for how long, and who owns it")


def run(args: argparse.Namespace) -> int:
    """Look once and print it."""
    now = datetime.now(UTC)
    with open_services(load_existing(args)) as services:
        pool = services.overview.pool(now, MAX_QUEUES)
    unclaimed = pool.unclaimed
    if args.json:
        waiting = {"depth": unclaimed.depth, "oldest_age_seconds": _seconds(unclaimed.oldest_since, now)}
        print_json({"queues": [_plain(queue, now) for queue in pool.queues], "unclaimed": waiting})
        return Exit.OK
    print(table(HEAD, [_row(queue, now) for queue in pool.queues]))
    oldest = f", the oldest for {_age(unclaimed.oldest_since, now)}" if unclaimed.depth else ""
    print(f"\nunclaimed: {unclaimed.depth} waiting{oldest}")
    return Exit.OK


def _row(queue: QueueSummary, now: datetime) -> tuple[object, ...]:
    waits = _age(queue.waiting_since, now)
    return queue.key, queue.preparing, queue.queued, queue.running, waits, queue.owner or "nobody"


def _plain(queue: QueueSummary, now: datetime) -> dict[str, object]:
    return {
        "key": str(queue.key),
        "preparing": queue.preparing,
        "queued": queue.queued,
        "running": queue.running,
        "oldest_age_seconds": _seconds(queue.waiting_since, now),
        "owner": queue.owner,
        "unowned_seconds": _seconds(queue.unowned_since, now),
    }


def _age(since: datetime | None, now: datetime) -> str:
    return duration(now - since) if since else "-"


def _seconds(since: datetime | None, now: datetime) -> float | None:
    return round(max(0.0, (now - since).total_seconds()), 3) if since else None
