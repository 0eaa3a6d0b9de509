"""`webordinary dlq`: what was given up; look at it, run it once more, or drop it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict

from webordinary.compose.backends import open_container
from webordinary.compose.container import Container, profile_of
from webordinary.config import Config
from webordinary.entrypoints import running
from webordinary.entrypoints.cli.options import Commands, add_command, add_group, load_existing
from webordinary.entrypoints.cli.output import (
    SHORT_ID,
    CommandFailed,
    Exit,
    clean,
    clock,
    confirm,
    line_of,
    print_json,
    table,
)
from webordinary.model.jobs import DeadLetter, Job
from webordinary.model.snapshot import MailDetail
from webordinary.operations.console import drop_letter, redrive_letter

HEAD_LINES, HEAD_CHARACTERS = 10, 2000


def letter_lines(dead_letter: DeadLetter, detail: MailDetail | None, job: Job | None) -> Iterator[str]:
    """The text of `dlq show`."""
    again = f", after {dead_letter.redrives} redrives" if dead_letter.redrives else ""
    yield f"letter {dead_letter.letter_id}, given up {clock(dead_letter.died_at)}{again}"
    yield f"  reason   {clean(dead_letter.reason)}"
    yield f"  mail     {dead_letter.email_id}"
    if detail:
        yield f"  from     {clean(detail.summary.sender)}"
        yield f"  subject  {clean(detail.summary.subject or '(not read)')}"
        yield f"  received {clock(detail.summary.received_at)}"
    if job:
        yield f"  job      {job.job_id} of {job.key}: {job.outcome or job.state}, {job.attempts} starts"
        yield f"  error    {clean((job.result and job.result.error) or '-')}"
    yield from _text(detail)
    yield "\nwhat happened"
    for entry in detail.timeline if detail else ():
        yield f"  {line_of(entry)}"
    yield f"\nonce it is mended: webordinary dlq redrive {dead_letter.letter_id}"


def letter_plain(dead_letter: DeadLetter, detail: MailDetail | None, job: Job | None) -> dict[str, object]:
    """The JSON of `dlq show`."""
    summary = detail.summary if detail else None
    return asdict(dead_letter) | {
        "mail": summary
        and {
            "sender": summary.sender,
            "subject": summary.subject,
            "received_at": summary.received_at,
            "text": detail.text.text[:HEAD_CHARACTERS] if detail and detail.text else None,
        },
        "job": job
        and {
            "job_id": job.job_id,
            "key": str(job.key),
            "state": job.state,
            "outcome": job.outcome,
            "attempts": job.attempts,
            "error": job.result.error if job.result else None,
        },
        "timeline": [asdict(entry) for entry in detail.timeline] if detail else [],
    }


def _text(detail: MailDetail | None) -> Iterator[str]:
    if not detail or not detail.text:
        return
    yield "\nthe mail"
    for line in detail.text.text[:HEAD_CHARACTERS].splitlines()[:HEAD_LINES]:
        yield f"  > {clean(line)}"


MAX_LETTERS, SHORTEST = 1000, 6
NOTHING = "there is no dead letter"
HEAD = ("letter", "mail", "given up", "redriven", "reason")


def add_to(commands: Commands) -> None:
    parts = add_group(commands, "dlq", "list, show, redrive or drop dead letters", "Dead letters.")
    add_command(parts, "list", list_letters, "list what was given up, the newest first")
    show = add_command(parts, "show", show_letter, "show why a mail was given up")
    show.add_argument("letter", help="a letter's number, or the beginning of its mail's id")
    again = add_command(
        parts, "redrive", redrive_letters, "run given-up mails once more; the customer is answered again"
    )
    drop = add_command(parts, "drop", drop_letters, "forget letters; their mails stay where they are")
    drop.add_argument("--yes", action="store_true", help="do not ask")
    for command in (again, drop):
        command.add_argument("letters", nargs="*", metavar="LETTER", help="numbers, or beginnings of mail ids")
        command.add_argument("--all", action="store_true", help=f"all of them, {MAX_LETTERS} at a time")


def list_letters(args: argparse.Namespace) -> int:
    """One line per letter."""
    with open_container(load_existing(args)) as services:
        dead_letters = services.dead_letters.all(MAX_LETTERS)
    if args.json:
        print_json(dead_letters)
        return Exit.OK
    rows = [
        (one.letter_id, one.email_id[:SHORT_ID], clock(one.died_at), one.redrives or "-", one.reason[:100])
        for one in dead_letters
    ]
    print(table(HEAD, rows))
    return Exit.OK


def show_letter(args: argparse.Namespace) -> int:
    """The reason, the mail's head, its job and what happened to it."""
    with open_container(load_existing(args)) as services:
        dead_letter = _find(services, args.letter)
        detail = services.overview.mail(dead_letter.email_id)
        job = services.jobs.get(dead_letter.job_id) if dead_letter.job_id else None
    if args.json:
        print_json(letter_plain(dead_letter, detail, job))
    else:
        print("\n".join(letter_lines(dead_letter, detail, job)))
    return Exit.OK


def redrive_letters(args: argparse.Namespace) -> int:
    """Start each mail's next execution; the engine's process, if there is one, goes on with it."""
    with open_container(load_existing(args)) as services:
        chosen = _chosen(services, args)
        names = {dead_letter.letter_id: redrive_letter(services, dead_letter) for dead_letter in chosen}
        up = _runs(services.config)
    if args.json:
        print_json([_plain(dead_letter) | {"execution": names[dead_letter.letter_id]} for dead_letter in chosen])
        return Exit.OK
    if not chosen:
        print(NOTHING)
    when = "runs again" if up else "runs again as soon as `webordinary up` does"
    for dead_letter in chosen:
        print(f"letter {dead_letter.letter_id}: mail {dead_letter.email_id[:SHORT_ID]} {when}")
    return Exit.OK


def drop_letters(args: argparse.Namespace) -> int:
    """Forget letters, after a question."""
    with open_container(load_existing(args)) as services:
        chosen = _chosen(services, args)
        if chosen and not args.yes:
            letters = "1 letter" if len(chosen) == 1 else f"{len(chosen)} letters"
            todo = "answer y, or redrive it with `webordinary dlq redrive`"
            confirm(f"Drop {letters}? No alarm will mention it again.", "nothing was dropped", todo)
        dropped = [dead_letter for dead_letter in chosen if drop_letter(services, dead_letter)]
    if args.json:
        print_json([_plain(dead_letter) for dead_letter in dropped])
        return Exit.OK
    if not dropped:
        print(NOTHING)
    for dead_letter in dropped:
        print(f"letter {dead_letter.letter_id} is dropped; mail {dead_letter.email_id[:SHORT_ID]} stays where it is")
    return Exit.OK


def _runs(config: Config) -> bool:
    """Whether a workflow engine runs; Step Functions always does."""
    return not profile_of(config).runs_engine or running.running(config.data) is not None


def _plain(dead_letter: DeadLetter) -> dict[str, object]:
    return {"letter": dead_letter.letter_id, "mail": dead_letter.email_id}


def _chosen(services: Container, args: argparse.Namespace) -> list[DeadLetter]:
    if args.all == bool(args.letters):
        raise CommandFailed("no letter is named", "name some, or say --all; see `webordinary dlq list`", Exit.USAGE)
    if args.all:
        return list(services.dead_letters.all(MAX_LETTERS))
    found = {dead_letter.letter_id: dead_letter for dead_letter in (_find(services, name) for name in args.letters)}
    return list(found.values())


def _find(services: Container, name: str) -> DeadLetter:
    """By its number, or by the mail it belongs to."""
    if name.isdecimal() and len(name) < 12 and (dead_letter := services.dead_letters.get(int(name))):
        return dead_letter
    found = services.dead_letters.of_mail(name, MAX_LETTERS) if len(name) >= SHORTEST else ()
    if len({dead_letter.email_id for dead_letter in found}) > 1:
        raise CommandFailed(f"several mails begin with {name!r}", "name the letter by its number")
    if not found:
        raise CommandFailed(f"there is no dead letter {name!r}", "see `webordinary dlq list`")
    return found[0]
