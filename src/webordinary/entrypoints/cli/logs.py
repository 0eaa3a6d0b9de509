"""`webordinary logs`: what happened, one event a line."""

from __future__ import annotations

import argparse
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

from webordinary.adapters.sqlite.events import LoggedEvent
from webordinary.app.backends import AWS
from webordinary.app.embedded import Embedded, open_embedded
from webordinary.config import Config
from webordinary.entrypoints.cli.aws_logs import command_for, groups, lines
from webordinary.entrypoints.cli.exits import Exit
from webordinary.entrypoints.cli.known import known_mail
from webordinary.entrypoints.cli.options import Commands, add_command, load_existing
from webordinary.entrypoints.cli.output import print_json
from webordinary.entrypoints.cli.wording import line_for

LIMIT, MOST, PAGE = 200, 100_000, 500
FOLLOW_SECONDS = 0.3


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = add_command(commands, "logs", run, "show what happened, oldest first")
    parser.add_argument("--follow", action="store_true", help="go on showing what happens, until Ctrl-C")
    parser.add_argument("--limit", type=_count, default=LIMIT, metavar="N", help=f"the last N events ({LIMIT})")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--mail", metavar="ID", help="only what happened to this mail; the first letters will do")
    which.add_argument("--job", metavar="ID", help="only what happened to this job")


def run(args: argparse.Namespace) -> int:
    """Show the last events, then follow if asked to; on AWS say where they are."""
    config = load_existing(args)
    if config.backend == AWS:
        return _on_aws(args, config)
    with open_embedded(config) as services:
        reader = _Reader(services, known_mail(services, args.mail) if args.mail else None, args.job)
        for logged in reader.last(args.limit):
            _show(services, logged, as_json=args.json)
        pause = threading.Event()
        with suppress(KeyboardInterrupt):
            while args.follow:
                for logged in reader.more():
                    _show(services, logged, as_json=args.json)
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

    def last(self, limit: int) -> Iterator[LoggedEvent]:
        if not (self._email_id or self._job_id):
            self._seq = self._log.start_of_last(limit)
        yield from deque(self.more(), maxlen=limit)

    def more(self) -> Iterator[LoggedEvent]:
        while page := self._log.after(self._seq, PAGE, self._email_id, self._job_id):
            self._seq = page[-1].seq
            yield from page


def _show(services: Embedded, logged: LoggedEvent, *, as_json: bool) -> None:
    event = logged.event
    if as_json:
        print_json(
            {
                "seq": logged.seq,
                "at": logged.at,
                "kind": event.kind,
                "mail": event.email_id,
                "job": event.job_id,
                "key": event.key and str(event.key),
                "worker": event.worker,
                "data": dict(event.data),
            }
        )
        return
    names = {worker.worker: worker.name for worker in services.overview.pool(datetime.now(UTC)).workers}
    print(line_for(logged.seq, logged.at, event, names), flush=True)


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MOST:,}")
    return int(text)
