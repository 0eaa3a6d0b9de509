"""`webordinary logs`: what happened, one event a line."""

from __future__ import annotations

import argparse
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain

from webordinary.adapters.sqlite.events import LoggedEvent
from webordinary.app.backends import AWS
from webordinary.app.embedded import Embedded, open_embedded
from webordinary.config import Config
from webordinary.entrypoints.cli.aws_logs import command_for, groups, lines
from webordinary.entrypoints.cli.exits import CommandFailed, Exit
from webordinary.entrypoints.cli.known import known_mail
from webordinary.entrypoints.cli.options import Commands, add_command, given, load_existing, whole
from webordinary.entrypoints.cli.output import print_json
from webordinary.entrypoints.cli.wording import entry_of, line_for
from webordinary.model.overview import workers_in

LIMIT, MOST, PAGE = 200, 100_000, 500
FOLLOW_SECONDS = 0.3


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = add_command(commands, "logs", run, "show what happened, oldest first")
    parser.add_argument("--follow", action="store_true", help="go on showing what happens, until Ctrl-C")
    parser.add_argument("--limit", type=whole(1, MOST), default=LIMIT, metavar="N", help=f"the last N events ({LIMIT})")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--mail", metavar="ID", type=given, help="only what happened to this mail; the first letters will do"
    )
    which.add_argument("--job", metavar="ID", type=given, help="only what happened to this job")


def run(args: argparse.Namespace) -> int:
    """Show the last events, then follow if asked to; on AWS say where they are."""
    config = load_existing(args)
    if config.backend == AWS:
        return _on_aws(args, config)
    with open_embedded(config) as services:
        reader = _Reader(services, known_mail(services, args.mail) if args.mail else None, args.job)
        last = reader.last(args.limit)
        if args.job and not last:
            todo = "name it whole, as `webordinary dlq show` does; or its mail, with --mail"
            raise CommandFailed(f"nothing is known of a job {args.job!r}", todo)
        if not last:
            print("nothing has happened yet, or it is no longer kept", file=sys.stderr)
        _show(services, last, as_json=args.json)
        pause = threading.Event()
        with suppress(KeyboardInterrupt):
            while args.follow:
                for page in reader.more():
                    _show(services, page, as_json=args.json)
                pause.wait(FOLLOW_SECONDS)
    return Exit.OK


def _on_aws(args: argparse.Namespace, config: Config) -> int:
    about = args.mail or args.job or ""
    if args.json:
        commands = {group: command_for(config, group, about, follow=args.follow) for group in groups()}
        print_json([{"group": group, "command": command} for group, command in commands.items()])
    else:
        print("\n".join(lines(config, about, follow=args.follow)))
    return Exit.OK


class _Reader:
    """Reads on from where it was."""

    def __init__(self, services: Embedded, email_id: str | None, job_id: str | None) -> None:
        self._log, self._email_id, self._job_id = services.event_log, email_id, job_id
        self._seq = 0

    def last(self, limit: int) -> list[LoggedEvent]:
        if not (self._email_id or self._job_id):
            self._seq = self._log.start_of_last(limit)
        return list(deque(chain.from_iterable(self.more()), maxlen=limit))

    def more(self) -> Iterator[Sequence[LoggedEvent]]:
        while page := self._log.after(self._seq, PAGE, self._email_id, self._job_id):
            self._seq = page[-1].seq
            yield page


def _show(services: Embedded, events: Sequence[LoggedEvent], *, as_json: bool) -> None:
    if as_json:
        for one in events:
            print_json(_plain(one))
        return
    names = services.workers.names(workers_in([entry_of(one.seq, one.at, one.event) for one in events]))
    for one in events:
        print(line_for(one.seq, one.at, one.event, names), flush=True)


def _plain(logged: LoggedEvent) -> dict[str, object]:
    event = logged.event
    return {
        "seq": logged.seq,
        "at": logged.at,
        "kind": event.kind,
        "mail": event.email_id,
        "job": event.job_id,
        "key": event.key and str(event.key),
        "worker": event.worker,
        "data": dict(event.data),
    }
