"""`webordinary mails`: find mails, look at one, release or drop held ones. `replies`: those that were not delivered."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial

from webordinary.compose.backends import open_container
from webordinary.compose.container import Container, profile_of
from webordinary.config import Config
from webordinary.entrypoints import running
from webordinary.entrypoints.cli.options import Commands, add_command, add_group, find_mail, given, load_existing, whole
from webordinary.entrypoints.cli.output import SHORT_ID, CommandFailed, Exit, clean, clock, line_of, print_json, table
from webordinary.entrypoints.cli.release import add_replay
from webordinary.mail.ports import Undelivered
from webordinary.model.errors import InvalidName
from webordinary.model.events import EventKind
from webordinary.model.names import ProjectUser
from webordinary.model.projects import AGENTS
from webordinary.model.snapshot import MailDetail, MailFilter, MailState, MailSummary, state_of
from webordinary.operations.mails import (
    STATES,
    answer_mail,
    close_mail,
    drop_mail,
    export_mails,
    let_in,
    release_mail,
    retry_mail,
)
from webordinary.operations.pool import cancel_job, interrupt_job

MAX_LISTED, HEAD_CHARACTERS = 1000, 2000
HEAD = ("mail", "received", "state", "from", "subject")
BY = "operator"
_AGO = re.compile(r"(\d{1,4})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def add_to(commands: Commands) -> None:
    parts = add_group(commands, "mails", "list, show, release, drop or replay mails", "Mails.")
    found = add_command(parts, "list", list_mails, "list mails, the newest first, and count them")
    found.add_argument("--limit", type=whole(1, MAX_LISTED), default=50, help="at most so many; 50 if not given")
    found.add_argument("--page", type=whole(1, 100_000), default=1, help="the next so many: 2, 3 and so on")
    found.add_argument("--needs-person", action="store_true", help="only mails that no agent understood, unanswered")
    export = add_command(parts, "export", print_export, "print mails as CSV or as lines of JSON, the newest first")
    export.add_argument("--csv", action="store_true", help="as CSV; else each line is JSON")
    for command in (found, export):
        command.add_argument("--text", metavar="WORDS", default="", help="only mails with these words")
        command.add_argument("--state", choices=STATES, default="", help="only mails in this state")
        command.add_argument("--sender", metavar="TEXT", default="", help="only senders whose address has these words")
        command.add_argument("--project", metavar="ID", default="", help="only mails to this site")
        command.add_argument("--user", metavar="ID", default="", help="only mails of this person of a site")
        command.add_argument("--since", type=_since, metavar="WHEN", help="only later ones: 30m, 12h, 7d or 2026-05-01")
        command.add_argument("--until", type=_since, metavar="WHEN", help="only earlier ones")
    show = add_command(parts, "show", show_mail, "show a mail, what happened to it and why")
    show.add_argument("mail", type=given, help="a mail's id, or its beginning")
    answer = add_command(parts, "answer", answer_customer, "write to the customer in the conversation of a mail")
    answer.add_argument("mail", type=given, help="a mail's id, or its beginning")
    answer.add_argument("text", type=given, help="what to write")
    release = add_command(parts, "release", release_mails, "do held mails although nothing proves their sender")
    drop = add_command(parts, "drop", drop_mails, "never do held mails")
    about = "do mails once more that failed or were not understood; with a second reply"
    retry = add_command(parts, "retry", retry_mails, about)
    close = add_command(parts, "close", close_mails, "say that nothing is to be done about mails that need a person")
    cancel = add_command(parts, "cancel", cancel_mails, "end the jobs of mails for good; the site stays as it is")
    interrupt = add_command(parts, "interrupt", interrupt_mails, "have running jobs make way; they go on later")
    about = "let the author of a refused mail change a site, and try the mail"
    letting_in = add_command(parts, "let-in", let_authors_in, about, former="admit")
    letting_in.add_argument("key", type=_key, metavar="SITE#PERSON", help="as whom, such as amelia#scott")
    # Not `agent`: that is the setting, which an argument of this name would replace.
    other = "edit their sites by this agent from now on"
    retry.add_argument("--agent", dest="new_agent", choices=AGENTS, default="", help=other)
    for command in (release, drop, retry, letting_in, close, cancel, interrupt):
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
    mail_filter = _filter_of(args)
    with open_container(load_existing(args)) as services:
        page = services.mail_index.find(mail_filter, args.limit, (args.page - 1) * args.limit)
        reach = services.mail_index.reach
    if args.json:
        print_json([_plain(mail) for mail in page.mails])
    else:
        print(table(HEAD, [_row(mail) for mail in page.mails]))
        print(f"{len(page.mails)} of {page.total}{'' if page.counted else ' or more'} mails. {reach}".rstrip())
    return Exit.OK


def print_export(args: argparse.Namespace) -> int:
    """Rows as they are read, so that a long export needs little memory."""
    with open_container(load_existing(args)) as services:
        for rows in export_mails(services.mail_index, _filter_of(args), as_csv=args.csv):
            print(rows, end="")
    return Exit.OK


def _filter_of(args: argparse.Namespace) -> MailFilter:
    state = MailState.NOT_UNDERSTOOD.value if getattr(args, "needs_person", False) else args.state
    return MailFilter(state, args.sender, args.project, args.since, args.until, args.text, args.user)


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
        number = answer_mail(services, email_id, args.text, BY)
    if args.json:
        print_json({"mail": email_id, "answers": number})
    else:
        print(f"the answer to mail {email_id[:SHORT_ID]} is on its way")
        if number > 1:
            print(f"  it is answer {number} to this mail: the customer gets all of them")
    return Exit.OK


def release_mails(args: argparse.Namespace) -> int:
    """Start each mail's execution; the engine's process, if there is one, goes on with it."""
    return _each(args, release_mail, "is released, and tried now: `mails show` says how it ends")


def drop_mails(args: argparse.Namespace) -> int:
    """Each mail stays where it is until it is forgotten."""
    return _each(args, drop_mail, "is dropped: it will not be done")


def retry_mails(args: argparse.Namespace) -> int:
    """Start each mail's next execution."""
    return _each(
        args, partial(retry_mail, agent=args.new_agent), "is tried once more; its customer gets a second reply"
    )


def let_authors_in(args: argparse.Namespace) -> int:
    """Each author is entitled; a mail without proof of its sender is then held."""
    words = f"is tried now, and its author may change {args.key.project_id}: `mails show` says how it ends"
    return _each(args, lambda services, email_id, by: let_in(services, email_id, args.key, by), words)


def _key(text: str) -> ProjectUser:
    try:
        return ProjectUser.parse(text)
    except InvalidName as problem:
        raise argparse.ArgumentTypeError(str(problem)) from problem


def close_mails(args: argparse.Namespace) -> int:
    """Each mail leaves the list of what needs a person."""
    return _each(args, close_mail, "is closed")


def cancel_mails(args: argparse.Namespace) -> int:
    """A job that waits ends at once, one that runs in a moment; the customer is told."""
    return _each(args, cancel_job, "is being stopped")


def interrupt_mails(args: argparse.Namespace) -> int:
    """Each job goes on behind the others of its queue."""
    return _each(args, interrupt_job, "makes way, and goes on later")


def _each(args: argparse.Namespace, act: Callable[[Container, str, str], object], words: str) -> int:
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
        yield f"  {line_of(entry)}"
    if any(entry.kind == EventKind.MAIL_HELD and entry.data.get("asked") is False for entry in detail.timeline):
        yield "\nit cannot be released: ask its sender to send it again"
    elif state_of(mail) == "held":
        yield f"\nif its sender wrote it: webordinary mails release {mail.email_id[:SHORT_ID]}"


MAX_REPLIES, SHORTEST = 1000, 6
REPLIES_HEAD = ("mail", "to", "written", "tries", "stands", "last error")


def add_replies(commands: Commands) -> None:
    parts = add_group(commands, "replies", "list undelivered replies, or send them again", "Replies.")
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
        print(table(REPLIES_HEAD, [_reply_row(reply) for reply in replies]))
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


def _reply_row(reply: Undelivered) -> tuple[object, ...]:
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
