"""`webordinary send`: give a mail to the running intake, over SMTP like anybody else; on an emulator as SES would."""

from __future__ import annotations

import argparse
import sys
from email import message_from_bytes
from email.message import Message
from email.utils import getaddresses
from pathlib import Path

from webordinary.app.backends import AWS, require_boto3
from webordinary.config import Config
from webordinary.entrypoints import running
from webordinary.entrypoints.cli.exits import CommandFailed, Exit
from webordinary.entrypoints.cli.options import Commands, add_command, add_settings, given, load_config
from webordinary.entrypoints.cli.output import print_json
from webordinary.entrypoints.smtp import client
from webordinary.model.errors import Transient


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = add_command(commands, "send", run, "send a mail file to the running mail intake")
    parser.add_argument("mail", type=given, help="an .eml file; - reads standard input")
    about = "envelope sender; else the From header"
    parser.add_argument("--from", dest="sender", metavar="ADDRESS", type=given, help=about)
    parser.add_argument("--to", metavar="ADDRESS", type=given, help="recipient; else our mailbox")
    add_settings(parser, ("host", "smtp_port", "mailbox"))


def run(args: argparse.Namespace) -> int:
    """Read, send, say what the intake answered."""
    config = load_config(args)
    raw = _read(args.mail, config.max_mail_bytes)
    mail = message_from_bytes(raw)
    sender, recipient = args.sender or _sender(mail), args.to or _recipient(mail, config.mailbox)
    if config.backend == AWS:
        return _report(args, _post(config, raw, sender, recipient), sender, recipient)
    host, port = _intake(config, chosen=args.smtp_port is not None)
    try:
        answer = client.send(raw, sender, recipient, host, port)
    except Transient as problem:
        if isinstance(problem.__cause__, ConnectionError | TimeoutError):
            raise CommandFailed(
                f"no mail intake answers at {host}:{port}",
                "start it with `webordinary up`, or name the right --data or --smtp-port",
                Exit.NOT_RUNNING,
            ) from problem
        raise
    return _report(args, answer, sender, recipient)


def _post(config: Config, raw: bytes, sender: str, recipient: str) -> str:
    require_boto3()
    from webordinary.app.cloud import open_cloud  # noqa: PLC0415 - an extra, and slow to import
    from webordinary.app.cloud_operating import post_mail  # noqa: PLC0415

    with open_cloud(config) as services:
        began = services.clock.now()
        email_id = post_mail(services, raw, sender, recipient)
        known = services.overview.mail(email_id)
    if known and known.summary.received_at < began:
        return f"accepted as {email_id}, {client.HERE_ALREADY}"
    return f"taken as mail {email_id}"


def _report(args: argparse.Namespace, answer: str, sender: str, recipient: str) -> int:
    known = client.HERE_ALREADY in answer
    if args.json:
        print_json({"accepted": True, "new": not known, "answer": answer, "from": sender, "to": recipient})
    elif known:
        print(f"this mail from {sender} to {recipient} was here already, as {client.email_id_in(answer)}")
        print("nothing is done twice; to ask once more, give it another Message-ID")
    else:
        print(f"accepted from {sender} to {recipient}: {answer}")
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


def _intake(config: Config, *, chosen: bool) -> tuple[str, int]:
    """Where the `up` of this data folder listens, unless a port was named."""
    ends = None if chosen else running.running(config.data)
    return (ends.host, ends.smtp_port) if ends else (config.host, config.smtp_port)
