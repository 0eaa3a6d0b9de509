"""`webordinary send`: puts a mail into the running intake, by SMTP or on an emulator as SES does; the first mail.

`webordinary receive`: a mail server hands a mail in through a pipe. Its exit codes are those of sysexits.h, which mail
servers read: 0 = the mail is durable here, 75 = try again later, 65 and 67 = return it to its sender.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from dataclasses import replace
from email import message_from_bytes
from email.message import Message
from email.utils import getaddresses
from pathlib import Path

from webordinary.compose.backends import open_container, send_mail
from webordinary.compose.container import Container, profile_of, site_url
from webordinary.compose.mailboxes import intake_of
from webordinary.config import Config
from webordinary.entrypoints import running
from webordinary.entrypoints.cli.options import Commands, add_command, add_settings, given, load_config, load_existing
from webordinary.entrypoints.cli.output import CommandFailed, Exit, print_json
from webordinary.jobs.site_files import Stage
from webordinary.mail.intake import delivery_of
from webordinary.mail.parsing.headers import with_crlf
from webordinary.mail.write import CustomerMail, write_mail
from webordinary.model.errors import Permanent, Transient, WebOrdinaryError
from webordinary.model.mail import Delivery, TransportKind


def add_to(commands: Commands) -> None:
    parser = add_command(commands, "send", run, "send a mail file to the running mail intake")
    parser.add_argument("mail", type=given, help="an .eml file; - reads standard input")
    about = "envelope sender; else the From header"
    parser.add_argument("--from", dest="sender", metavar="ADDRESS", type=given, help=about)
    parser.add_argument("--to", metavar="ADDRESS", type=given, help="recipient; else our mailbox")
    add_settings(parser, ("host", "smtp_host", "smtp_port", "mailbox"))


def run(args: argparse.Namespace) -> int:
    """Send the mail and print the answer of the intake."""
    config = load_config(args)
    raw = _read(args.mail, config.max_mail_bytes)
    mail = message_from_bytes(raw)
    sender, recipient = args.sender or _sender(mail), args.to or _recipient(mail, config.mailbox)
    if args.smtp_port is None:
        config = running.as_it_runs(config)
    if args.host and not args.smtp_host:
        config = replace(config, smtp_host=args.host)
    try:
        accepted = send_mail(config, raw, sender, recipient)
    except Transient as problem:
        if isinstance(problem.__cause__, ConnectionError | TimeoutError):
            raise CommandFailed(
                f"no mail intake answers at {config.smtp_reachable}:{config.smtp_port}",
                "start it with `webordinary up`, or name the right --data or --smtp-port",
                Exit.NOT_RUNNING,
            ) from problem
        raise
    if args.json:
        answer = {"accepted": True, "new": accepted.new, "answer": accepted.answer}
        print_json(answer | {"from": sender, "to": recipient})
    elif accepted.new:
        print(f"accepted from {sender} to {recipient}: {accepted.answer}")
        if not accepted.email_id:
            print("another mail server took it; `webordinary status` shows it once it arrives here")
    else:
        print(f"this mail from {sender} to {recipient} was here already, as {accepted.email_id}")
        print("nothing is done twice; to ask once more, give it another Message-ID")
    return Exit.OK


def _read(name: str, max_bytes: int) -> bytes:
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(max_bytes + 1)
        else:
            with Path(name).open("rb") as file:
                raw = file.read(max_bytes + 1)
    except OSError as problem:
        raise CommandFailed(
            f"{name} cannot be read ({problem.strerror})", "name a mail file, or - for standard input"
        ) from problem
    if not raw.strip():
        raise CommandFailed(f"{name} is empty", "name a mail file, or - for standard input")
    if len(raw) > max_bytes:
        raise CommandFailed(f"{name} is larger than {max_bytes:,} bytes", "raise max_mail_bytes on both sides")
    return raw


def _sender(mail: Message) -> str:
    for _, address in getaddresses([str(value) for value in mail.get_all("From", [])]):
        if "@" in address:
            return address
    raise CommandFailed("the mail has no From header with an address", "write one: it says whose it is", Exit.USAGE)


def _recipient(mail: Message, mailbox: str) -> str:
    """Our mailbox, with the token after a plus if the mail answers one of ours."""
    local, _, domain = mailbox.partition("@")
    for _, address in getaddresses([str(value) for value in mail.get_all("To", [])]):
        name, _, host = address.lower().rpartition("@")
        if name.partition("+")[0] == local and host == domain:
            return address
    return mailbox


SUBJECT, TEXT = "A first mail", "What can I ask you to change on my site?"
"""A question that every agent answers: it passes the whole workflow and changes nothing."""


def add_sample_mail_flag(parser: argparse.ArgumentParser) -> None:
    """Add --sample-mail."""
    about = (
        "send a first mail, which changes nothing, to the running system (on an emulator of AWS also if not asked for)"
    )
    parser.add_argument("--sample-mail", action=argparse.BooleanOptionalAction, default=None, help=about)


def require_intake(config: Config, *, requested: bool | None) -> None:
    """Refuse a sample mail that could not be posted, before anything is added."""
    profile = profile_of(config)
    if requested and profile.is_public:
        raise CommandFailed(
            "on AWS a mail comes through SES only", f"write one to {config.mailbox} after the site is added", Exit.USAGE
        )
    if requested and profile.runs_engine and running.running(config.data) is None:
        raise CommandFailed("a sample mail needs a running system", "start `webordinary up` first", Exit.NOT_RUNNING)


def send_first_mail(services: Container, sender: str, mailbox: str, *, requested: bool | None, new: bool) -> str | None:
    """Post it where it can be posted; the name that it goes by. A site that is there already gets one if it is wanted.

    One more person's first mail is their own: an answer to what they never wrote would only puzzle them.
    """
    if not (services.profile.accepts_sample_mail and new if requested is None else requested):
        return None
    letter = CustomerMail(sender, mailbox, SUBJECT, TEXT, message_id=f"<{secrets.token_hex(16)}@example.com>")
    return services.send_mail(write_mail(letter, services.clock.now()), sender, mailbox).email_id


def next_steps(
    config: Config, project_id: str, sender: str, mailbox: str, email_id: str | None, *, new: bool
) -> list[str]:
    """The lines that tell an operator the next steps for a new site."""
    if email_id:
        return [
            f"a first mail is on its way as {email_id[:12]}, and changes nothing: {TEXT}",
            "`webordinary status` shows what becomes of it",
        ]
    if not (new and profile_of(config).is_public):
        return []
    return [
        f"visitors reach it at {site_url(config, project_id, Stage.EDIT)} at once",
        f"write from {sender} to {mailbox}: {TEXT}",
        "it changes nothing, goes the whole way, and `webordinary status --backend aws` shows what becomes of it",
    ]


BAD_MAIL, NO_SUCH_MAILBOX, TRY_AGAIN = os.EX_DATAERR, os.EX_NOUSER, os.EX_TEMPFAIL


class _Refused(Exception):
    """Ends the command; the mail server reads the code and shows the words."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


def add_receive(commands: Commands) -> None:
    about = "take a mail from standard input, as a mail server hands it to a pipe"
    parser = add_command(commands, "receive", run_receive, about)
    parser.add_argument("--from", dest="sender", metavar="ADDRESS", help="envelope sender; else the Return-Path field")
    parser.add_argument("--to", metavar="ADDRESS", type=given, help="envelope recipient; else the fields of the mail")


def run_receive(args: argparse.Namespace) -> int:
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
        mailbox = container.mail_deps.mailbox
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
