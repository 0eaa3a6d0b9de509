"""`webordinary replies`: answers that did not reach their customer; look at them, send them again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from webordinary.compose.backends import open_container
from webordinary.compose.container import profile_of
from webordinary.config import Config
from webordinary.entrypoints import running
from webordinary.entrypoints.cli.exit_codes import CommandFailed, Exit
from webordinary.entrypoints.cli.options import Commands, add_command, load_existing
from webordinary.entrypoints.cli.output import clean, clock, print_json, table
from webordinary.mail.ports import Undelivered

MAX_REPLIES, SHORT_ID, SHORTEST = 1000, 12, 6
HEAD = ("mail", "to", "written", "tries", "stands", "last error")


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("replies", help="list undelivered replies, or send them again", description="Replies.")
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add_command(parts, "list", list_replies, "list the replies that failed and were not sent since, the newest first")
    again = add_command(parts, "send-again", send_again, "send replies again that were given up, or wait for a try")
    again.add_argument("mails", nargs="*", metavar="MAIL", help="beginnings of the ids of the mails they answer")
    again.add_argument("--all", action="store_true", help=f"all of them, {MAX_REPLIES} at a time")


def list_replies(args: argparse.Namespace) -> int:
    """One line per reply."""
    with open_container(load_existing(args)) as services:
        replies = services.undelivered.all(MAX_REPLIES)
    if args.json:
        print_json(replies)
    else:
        print(table(HEAD, [_row(reply) for reply in replies]))
    return Exit.OK


def send_again(args: argparse.Namespace) -> int:
    """Make the replies due; the sender runs each half minute, on AWS each minute."""
    config = load_existing(args)
    with open_container(config) as services:
        chosen = _chosen(args, services.undelivered.all(MAX_REPLIES))
        due = [reply for reply in chosen if services.undelivered.send_again(reply, services.clock.now())]
    if args.json:
        print_json([{"mail": reply.email_id, "kind": reply.kind, "to": reply.recipient} for reply in due])
        return Exit.OK
    when = _when(config)
    for reply in due:
        print(f"the reply to {clean(reply.recipient)} for mail {reply.email_id[:SHORT_ID]} {when}")
    if not due:
        print("no reply waits to be sent again")
    return Exit.OK


def _when(config: Config) -> str:
    if not profile_of(config).runs_engine:
        return "is sent again within two minutes"
    up = running.running(config.data) is not None
    return "is sent again within half a minute" if up else "is sent again as soon as `webordinary up` runs"


def _row(reply: Undelivered) -> tuple[object, ...]:
    stands = f"next try {clock(reply.next_try_at)}" if reply.next_try_at else "given up"
    mail, written = reply.email_id[:SHORT_ID], clock(reply.written_at)
    return mail, reply.recipient[:40], written, reply.attempts, stands, reply.error[:100]


def _chosen(args: argparse.Namespace, replies: Sequence[Undelivered]) -> Sequence[Undelivered]:
    if args.all == bool(args.mails):
        which = "name mails, or say --all; see `webordinary replies list`"
        raise CommandFailed("it is not clear which replies", which, Exit.USAGE)
    if args.all:
        return replies
    return list(dict.fromkeys(reply for start in args.mails for reply in _of(start, replies)))


def _of(start: str, replies: Sequence[Undelivered]) -> list[Undelivered]:
    """Every undelivered reply of the one mail whose id begins so."""
    found = [reply for reply in replies if len(start) >= SHORTEST and reply.email_id.startswith(start)]
    if len({reply.email_id for reply in found}) != 1:
        how_many = "several mails begin" if found else "no undelivered reply is for a mail that begins"
        raise CommandFailed(f"{how_many} with {start!r}", "see `webordinary replies list`")
    return found
