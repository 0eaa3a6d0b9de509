"""`webordinary worker`: one generic worker on a data folder; any number may run side by side."""

from __future__ import annotations

import argparse
import os
import sys
import threading

from webordinary.app.backends import AWS, run_worker
from webordinary.config import Config
from webordinary.entrypoints import patience
from webordinary.entrypoints.cli import health
from webordinary.entrypoints.cli.exits import CommandFailed, Exit
from webordinary.entrypoints.cli.options import FLAGS, Commands, add_command, add_settings, given, load_existing
from webordinary.entrypoints.cli.output import print_json
from webordinary.entrypoints.lifecycle import run_until_told
from webordinary.model.errors import NameTaken

NOT_OURS = (
    "data",
    "host",
    "port",
    "preview_port",
    "smtp_port",
    "operator",
    "workers",
    "trusted_peers",
    "max_mail_bytes",
)


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = add_command(commands, "worker", run, "run one more worker, until Ctrl-C or SIGTERM")
    parser.add_argument("--name", type=given, help="what the page calls it (worker and its process id if not given)")
    parser.add_argument("--supervised", action="store_true", help=argparse.SUPPRESS)
    add_settings(parser, (name for name in FLAGS if name not in NOT_OURS))
    health.add_to(parser.add_subparsers(title="commands", metavar="COMMAND"))


def _served(config: Config) -> str:
    if config.backend != AWS:
        return str(config.data)
    return f"the emulator of AWS at {config.aws_endpoint}" if config.aws_endpoint else f"AWS in {config.aws_region}"


def run(args: argparse.Namespace) -> int:
    """Work until told to stop; then finish or save within the grace."""
    config = load_existing(args)
    name = args.name or f"worker {os.getpid()}"

    def began(trouble: str) -> None:
        if args.json:
            more = {"trouble": trouble} if trouble else {}
            print_json({"worker": name, "pid": os.getpid(), "slots": config.slots} | more)
        elif trouble:
            print(f"{name} waits: {trouble}; it goes on trying, Ctrl-C stops it", file=sys.stderr, flush=True)
        elif not args.supervised:
            print(f"{name} serves {_served(config)} with {config.slots} slots; Ctrl-C stops it", flush=True)

    def work(stop: threading.Event) -> None:
        # A supervised one follows on another of its name, which may still be saving its work.
        run_worker(config, name, config.slots, stop, sole=bool(args.name) and not args.supervised, began=began)

    try:
        run_until_told(
            work,
            patience_seconds=patience.of_worker(config),
            parent=sys.stdin.fileno() if args.supervised else None,
        )
    except NameTaken as problem:
        raise CommandFailed(str(problem), "give this one another --name", Exit.IN_USE) from problem
    return Exit.OK
