"""`webordinary receive`: a mail server hands a mail in through a pipe.

Exit codes are those of sysexits.h, which mail servers read: 0 = the mail is durable here, 75 = try again later,
65 and 67 = return it to its sender.
"""

from __future__ import annotations

import argparse
import os
import sys

from webordinary.compose.backends import open_container
from webordinary.compose.mailboxes import intake_of
from webordinary.entrypoints.cli.exit_codes import CommandFailed
from webordinary.entrypoints.cli.options import Commands, add_command, given, load_existing
from webordinary.mail.delivered import delivery_of
from webordinary.mail.parsing.headers import with_crlf
from webordinary.model.errors import Permanent, WebOrdinaryError
from webordinary.model.mail import Delivery, TransportKind

BAD_MAIL, NO_SUCH_MAILBOX, TRY_AGAIN = os.EX_DATAERR, os.EX_NOUSER, os.EX_TEMPFAIL


class _Refused(Exception):
    """Ends the command; the mail server reads the code and shows the words."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


def add_to(commands: Commands) -> None:
    about = "take a mail from standard input, as a mail server hands it to a pipe"
    parser = add_command(commands, "receive", run, about)
    parser.add_argument("--from", dest="sender", metavar="ADDRESS", help="envelope sender; else the Return-Path field")
    parser.add_argument("--to", metavar="ADDRESS", type=given, help="envelope recipient; else the fields of the mail")


def run(args: argparse.Namespace) -> int:
    """Accept the mail; no failure but one of the mail itself may make the mail server give it back."""
    try:
        print(f"accepted as {_accepted(args)}")
    except _Refused as refused:
        return _say(refused.code, str(refused))
    except Exception as problem:
        words = str(problem) if isinstance(problem, WebOrdinaryError | OSError) else repr(problem)
        return _say(TRY_AGAIN, words)
    return os.EX_OK


def _accepted(args: argparse.Namespace) -> str:
    config = load_existing(args)
    raw = sys.stdin.buffer.read(config.max_mail_bytes + 1)
    if len(raw) > config.max_mail_bytes:
        raise _Refused(BAD_MAIL, f"this mail is too big: at most {config.max_mail_bytes} bytes are taken")
    if not raw.strip():
        raise CommandFailed("standard input is empty", "pass the mail there")
    with open_container(config) as container:
        mailbox = container.mailroom.mailbox
        if args.to and not mailbox.accepts(args.to):
            raise _Refused(NO_SUCH_MAILBOX, f"no such mailbox here: write to {mailbox.address}")
        lines = with_crlf(_without_from_line(raw))
        noted = delivery_of(lines, TransportKind.PIPE, mailbox, container.clock.now())
        sender = noted.mail_from if args.sender is None else args.sender.strip("<>")
        recipients = (args.to,) if args.to else noted.recipients
        delivery = Delivery(noted.transport, "", sender, recipients, noted.received_at)
        try:
            return intake_of(container).take(lines, delivery)[0].email_id
        except Permanent as problem:
            raise _Refused(BAD_MAIL, f"this mail cannot be accepted: {problem}") from problem


def _without_from_line(raw: bytes) -> bytes:
    """Some pipes put a line `From sender date` before the header, as mbox files have it."""
    return raw.partition(b"\n")[2] if raw.startswith(b"From ") else raw


def _say(code: int, words: str) -> int:
    print(f"webordinary: {words}", file=sys.stderr)
    return code
