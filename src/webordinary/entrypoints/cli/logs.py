"""`webordinary logs`: what happened, one event a line."""

from __future__ import annotations

import argparse
import shlex
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain

from webordinary.compose.backends import log_groups, open_container
from webordinary.compose.container import Container
from webordinary.config import Config
from webordinary.entrypoints.cli.exit_codes import CommandFailed, Exit
from webordinary.entrypoints.cli.options import Commands, add_command, find_mail, given, load_existing, whole
from webordinary.entrypoints.cli.output import entry_of, line_for, print_json
from webordinary.model.snapshot import LoggedEvent, workers_in

SINCE = "15m"


def command_for(config: Config, group: str, about: str = "", *, follow: bool = False) -> str:
    """The AWS CLI's command; `about` is a mail's or a job's id."""
    where = ["--endpoint-url", config.aws_endpoint] if config.aws_endpoint else ["--region", config.aws_region]
    pattern = ["--filter-pattern", f"%{about}%"] if about else []  # the beginning of an id will do
    return shlex.join(
        ["aws", "logs", "tail", group, "--since", SINCE, *(["--follow"] if follow else []), *pattern, *where]
    )


def lines(config: Config, groups: Mapping[str, str], about: str = "", *, follow: bool = False) -> list[str]:
    """For people."""
    wide = max(map(len, groups))
    emulated = "an emulator keeps no log of workers: their words are on the terminal of `up`"
    return [
        "on AWS what happened is in CloudWatch; the AWS CLI (version 2) shows it:",
        *(f"  {command_for(config, group, about, follow=follow)}" for group in list(groups)[:2]),
        "",
        "the log groups, in the order of a mail's way:",
        *(f"  {group:<{wide}}  {words}" for group, words in groups.items()),
        *(["", emulated] if config.aws_endpoint else []),
    ]


LIMIT, MOST, PAGE = 200, 100_000, 500
FOLLOW_SECONDS = 0.3


def add_to(commands: Commands) -> None:
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
    if groups := log_groups(config):
        return _on_aws(args, config, groups)
    with open_container(config) as services:
        reader = _EventTail(services, find_mail(services, args.mail) if args.mail else None, args.job)
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


def _on_aws(args: argparse.Namespace, config: Config, groups: Mapping[str, str]) -> int:
    about = args.mail or args.job or ""
    if args.json:
        commands = {group: command_for(config, group, about, follow=args.follow) for group in groups}
        print_json([{"group": group, "command": command} for group, command in commands.items()])
    else:
        print("\n".join(lines(config, groups, about, follow=args.follow)))
    return Exit.OK


class _EventTail:
    """Reads on from where it was."""

    def __init__(self, services: Container, email_id: str | None, job_id: str | None) -> None:
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


def _show(services: Container, events: Sequence[LoggedEvent], *, as_json: bool) -> None:
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
