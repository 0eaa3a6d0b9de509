"""`webordinary dlq`: what was given up; look at it, run it once more, or drop it."""

from __future__ import annotations

import argparse
import sys

from webordinary.app.backends import AWS, open_services, workflows_of
from webordinary.app.services import Services
from webordinary.config import Config
from webordinary.entrypoints import running
from webordinary.entrypoints.cli.exits import CommandFailed, Exit
from webordinary.entrypoints.cli.letter_view import letter_lines, letter_plain
from webordinary.entrypoints.cli.options import Commands, add_command, load_existing
from webordinary.entrypoints.cli.output import clock, print_json, table
from webordinary.model.events import Event
from webordinary.model.jobs import DeadLetter
from webordinary.workflow.redrive import redrive
from webordinary.workflow.start import Workflows

MAX_LETTERS, SHORT_ID, SHORTEST = 1000, 12, 6
NOTHING = "there is no dead letter"
HEAD = ("letter", "mail", "given up", "redriven", "reason")


def add_to(commands: Commands) -> None:
    """Declare the commands."""
    parser = commands.add_parser("dlq", help="list, show, redrive or drop dead letters", description="Dead letters.")
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
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
    with open_services(load_existing(args)) as services:
        letters = services.dead_letters.all(MAX_LETTERS)
    if args.json:
        print_json(letters)
        return Exit.OK
    rows = [
        (one.letter_id, one.email_id[:SHORT_ID], clock(one.died_at), one.redrives or "-", one.reason[:100])
        for one in letters
    ]
    print(table(HEAD, rows))
    return Exit.OK


def show_letter(args: argparse.Namespace) -> int:
    """The reason, the mail's head, its job and what happened to it."""
    with open_services(load_existing(args)) as services:
        letter = _find(services, args.letter)
        detail = services.overview.mail(letter.email_id)
        job = services.jobs.get(letter.job_id) if letter.job_id else None
    if args.json:
        print_json(letter_plain(letter, detail, job))
    else:
        print("\n".join(letter_lines(letter, detail, job)))
    return Exit.OK


def redrive_letters(args: argparse.Namespace) -> int:
    """Start each mail's next execution; the engine's process, if there is one, goes on with it."""
    with open_services(load_existing(args)) as services:
        chosen = _chosen(services, args)
        workflows = workflows_of(services)
        names = {letter.letter_id: _redrive(services, workflows, letter) for letter in chosen}
        up = _runs(services.config)
    if args.json:
        print_json([_plain(letter) | {"execution": names[letter.letter_id]} for letter in chosen])
        return Exit.OK
    if not chosen:
        print(NOTHING)
    when = "runs again" if up else "runs again as soon as `webordinary up` does"
    for letter in chosen:
        print(f"letter {letter.letter_id}: mail {letter.email_id[:SHORT_ID]} {when}")
    return Exit.OK


def drop_letters(args: argparse.Namespace) -> int:
    """Forget letters, after a question."""
    with open_services(load_existing(args)) as services:
        chosen = _chosen(services, args)
        if chosen and not args.yes:
            _confirm(len(chosen))
        dropped = [letter for letter in chosen if services.dead_letters.remove(letter.letter_id)]
        for letter in dropped:
            data = {"reason": letter.reason[:200]}
            services.events.emit(Event("DeadLetterDropped", letter.email_id, letter.job_id, data=data))
    if args.json:
        print_json([_plain(letter) for letter in dropped])
        return Exit.OK
    if not dropped:
        print(NOTHING)
    for letter in dropped:
        print(f"letter {letter.letter_id} is dropped; mail {letter.email_id[:SHORT_ID]} stays where it is")
    return Exit.OK


def _redrive(services: Services, workflows: Workflows, letter: DeadLetter) -> str:
    services.raw_mails.load(letter.email_id)  # without its mail it could only be given up again
    name = redrive(letter, workflows, services.dead_letters)
    data = {"redrive": letter.redrives + 1}
    services.events.emit(Event("DeadLetterRedriven", letter.email_id, letter.job_id, data=data))
    return name


def _runs(config: Config) -> bool:
    """Step Functions always does."""
    return config.backend == AWS or running.running(config.data) is not None


def _plain(letter: DeadLetter) -> dict[str, object]:
    return {"letter": letter.letter_id, "mail": letter.email_id}


def _chosen(services: Services, args: argparse.Namespace) -> list[DeadLetter]:
    if args.all == bool(args.letters):
        raise CommandFailed("no letter is named", "name some, or say --all; see `webordinary dlq list`", Exit.USAGE)
    if args.all:
        return list(services.dead_letters.all(MAX_LETTERS))
    found = {letter.letter_id: letter for letter in (_find(services, name) for name in args.letters)}
    return list(found.values())


def _find(services: Services, name: str) -> DeadLetter:
    """By its number, or by the mail it belongs to."""
    if name.isdecimal() and len(name) < 12 and (letter := services.dead_letters.get(int(name))):
        return letter
    found = services.dead_letters.of_mail(name, MAX_LETTERS) if len(name) >= SHORTEST else ()
    if len({letter.email_id for letter in found}) > 1:
        raise CommandFailed(f"several mails begin with {name!r}", "name the letter by its number")
    if not found:
        raise CommandFailed(f"there is no dead letter {name!r}", "see `webordinary dlq list`")
    return found[0]


def _confirm(count: int) -> None:
    if not sys.stdin.isatty():
        raise CommandFailed("nobody can be asked here", "say --yes if you mean it", Exit.USAGE)
    letters = "1 letter" if count == 1 else f"{count} letters"
    if input(f"Drop {letters}? Nobody will be reminded of it again. [y/N] ").strip().lower() not in ("y", "yes"):
        raise CommandFailed("nothing was dropped", "answer y, or redrive it with `webordinary dlq redrive`")
