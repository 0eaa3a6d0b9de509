"""`webordinary pool`: release a claim, let a worker end when its work is done."""

from __future__ import annotations

import argparse

from webordinary.compose.backends import open_container
from webordinary.entrypoints.cli.exit_codes import CommandFailed, Exit
from webordinary.entrypoints.cli.options import Commands, add_command, given, load_existing
from webordinary.entrypoints.cli.output import print_json
from webordinary.model.errors import InvalidName
from webordinary.model.names import ProjectUser
from webordinary.operations.mails import BY_OPERATOR
from webordinary.operations.pool import drain_worker, release_claim


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("pool", help="release a claim, let a worker end", description="The pool of workers.")
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    claim = add_command(parts, "release", run_release, "take a key from a worker that is idle or dead")
    claim.add_argument("key", type=given, help="a site and its user, as `webordinary claims` shows it: amelia#scott")
    worker = add_command(parts, "drain", run_drain, "let a worker end once its running jobs are done")
    worker.add_argument("worker", type=given, help="its name, as `webordinary status` shows it")


def run_release(args: argparse.Namespace) -> int:
    """The next worker that takes the key gets a higher fence."""
    try:
        key = ProjectUser.parse(args.key)
    except InvalidName as problem:
        raise CommandFailed(f"{args.key[:80]!r} is no key", "write it as amelia#scott", Exit.USAGE) from problem
    with open_container(load_existing(args)) as services:
        release_claim(services, key, BY_OPERATOR)
    if args.json:
        print_json({"key": str(key)})
    else:
        print(f"{key} is released")
    return Exit.OK


def run_drain(args: argparse.Namespace) -> int:
    """Its supervisor, if it has one, starts it again."""
    with open_container(load_existing(args)) as services:
        worker = drain_worker(services, args.worker, BY_OPERATOR)
    if args.json:
        print_json({"worker": worker.worker, "name": worker.name, "pid": worker.pid})
    else:
        print(f"{worker.name} takes no more jobs and ends when its running ones are done")
    return Exit.OK
