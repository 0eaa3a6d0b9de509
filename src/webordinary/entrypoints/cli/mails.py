"""`webordinary mails`: find mails, look at one, release or drop held ones, run one again on copies."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import cast

from webordinary.compose.backends import open_container
from webordinary.compose.container import Container
from webordinary.entrypoints.cli.exit_codes import Exit
from webordinary.entrypoints.cli.options import Commands, add_command, find_mail, given, load_existing, whole
from webordinary.entrypoints.cli.output import clean, clock, line_for, print_json, table
from webordinary.entrypoints.cli.release import add_replay
from webordinary.model.events import Event, EventKind
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import MailDetail, MailSummary
from webordinary.operations.mails import (
    STATES,
    MailFilter,
    answer_mail,
    drop_mail,
    find_mails,
    mails_for_a_person,
    release_mail,
    state_of,
)

MAX_LISTED, SHORT_ID, HEAD_CHARACTERS = 1000, 12, 2000
HEAD = ("mail", "received", "state", "from", "subject")
BY = "operator"
_AGO = re.compile(r"(\d{1,4})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("mails", help="list, show, release, drop or replay mails", description="Mails.")
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    found = add_command(parts, "list", list_mails, "list mails, the newest first")
    found.add_argument("--state", choices=STATES, default="", help="only mails in this state")
    found.add_argument("--sender", metavar="TEXT", default="", help="only mails whose sender contains this")
    found.add_argument("--project", metavar="ID", default="", help="only mails to this site")
    found.add_argument("--since", type=_since, metavar="WHEN", help="only later ones: 30m, 12h, 7d or 2026-05-01")
    found.add_argument("--limit", type=whole(1, MAX_LISTED), default=50, help="at most so many; 50 if not given")
    found.add_argument("--needs-person", action="store_true", help="only mails that no agent understood, unanswered")
    show = add_command(parts, "show", show_mail, "show a mail, what happened to it and why")
    show.add_argument("mail", type=given, help="a mail's id, or its beginning")
    answer = add_command(parts, "answer", answer_customer, "write to the customer in the conversation of a mail")
    answer.add_argument("mail", type=given, help="a mail's id, or its beginning")
    answer.add_argument("text", type=given, help="what to write")
    release = add_command(parts, "release", release_mails, "do held mails although nothing proves their sender")
    drop = add_command(parts, "drop", drop_mails, "never do held mails")
    for command in (release, drop):
        command.add_argument("mails", nargs="+", type=given, metavar="MAIL", help="ids of mails, or their beginnings")
    add_replay(parts)


def _since(text: str) -> datetime:
    if ago := _AGO.fullmatch(text):
        return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        at = datetime.fromisoformat(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write 30m, 12h, 7d or 2026-05-01") from problem
    return at if at.tzinfo else at.astimezone()


def list_mails(args: argparse.Namespace) -> int:
    """One line per mail."""
    wanted = MailFilter(args.state, args.sender, args.project, args.since)
    with open_container(load_existing(args)) as services:
        mails = (
            mails_for_a_person(services, args.limit) if args.needs_person else find_mails(services, wanted, args.limit)
        )
    if args.json:
        print_json([_plain(mail) for mail in mails])
    else:
        print(table(HEAD, [_row(mail) for mail in mails]))
    return Exit.OK


def show_mail(args: argparse.Namespace) -> int:
    """The mail's head, its state and its timeline."""
    with open_container(load_existing(args)) as services:
        detail = services.overview.mail(find_mail(services, args.mail))
    assert detail, "find_mail has seen it"
    if args.json:
        timeline = [asdict(entry) for entry in detail.timeline]
        text = detail.text.text[:HEAD_CHARACTERS] if detail.text else None
        print_json(_plain(detail.summary) | {"text": text, "timeline": timeline})
    else:
        print("\n".join(_lines(detail)))
    return Exit.OK


def answer_customer(args: argparse.Namespace) -> int:
    """The reply goes out with the others."""
    with open_container(load_existing(args)) as services:
        email_id = find_mail(services, args.mail)
        answer_mail(services, email_id, args.text, BY)
    if args.json:
        print_json({"mail": email_id})
    else:
        print(f"the answer to mail {email_id[:SHORT_ID]} is on its way")
    return Exit.OK


def release_mails(args: argparse.Namespace) -> int:
    """Start each mail's execution; the engine's process, if there is one, goes on with it."""
    return _each(args, release_mail, "is released and will be done")


def drop_mails(args: argparse.Namespace) -> int:
    """Each mail stays where it is until it is forgotten."""
    return _each(args, drop_mail, "is dropped: it will not be done")


def _each(args: argparse.Namespace, act: Callable[[Container, str, str], None], words: str) -> int:
    with open_container(load_existing(args)) as services:
        chosen = list(dict.fromkeys(find_mail(services, name) for name in args.mails))
        for email_id in chosen:
            act(services, email_id, BY)
    if args.json:
        print_json([{"mail": email_id} for email_id in chosen])
    else:
        print("\n".join(f"mail {email_id[:SHORT_ID]} {words}" for email_id in chosen))
    return Exit.OK


def _row(mail: MailSummary) -> tuple[object, ...]:
    subject = clean(mail.subject or "(not read)")[:60]
    return (mail.email_id[:SHORT_ID], clock(mail.received_at), state_of(mail), clean(mail.sender)[:50], subject)


def _plain(mail: MailSummary) -> dict[str, object]:
    return {
        "mail": mail.email_id,
        "received_at": mail.received_at,
        "state": state_of(mail),
        "sender": mail.sender,
        "recipient": mail.recipient,
        "subject": mail.subject,
        "key": str(mail.job.key) if mail.job else None,
        "answered_at": mail.answered_at,
        "reason": mail.dead_reason or mail.stopped_because,
    }


def _lines(detail: MailDetail) -> Iterator[str]:
    mail = detail.summary
    yield f"mail {mail.email_id}: {state_of(mail)}"
    yield f"  from     {clean(mail.sender)}"
    yield f"  to       {clean(mail.recipient)}"
    yield f"  subject  {clean(mail.subject or '(not read)')}"
    yield f"  received {clock(mail.received_at)}"
    for reply in detail.replies:
        stands = f"sent {clock(reply.sent_at)}" if reply.sent_at else reply.last_error or "waits to be sent"
        yield f"  {reply.kind:<8} to {clean(reply.recipient)}: {clean(stands)}"
    yield "\nwhat happened"
    for entry in detail.timeline:
        key = ProjectUser.parse(entry.key) if entry.key else None
        event = Event(cast("EventKind", entry.kind), None, None, key, entry.worker, entry.data)
        yield "  " + line_for(entry.seq, entry.at, event, {})
    if state_of(mail) == "held":
        yield f"\nif its sender wrote it: webordinary mails release {mail.email_id[:SHORT_ID]}"
