"""`webordinary logs` and `outputs`: what happened, and what became of mails, one line each."""

from __future__ import annotations

import argparse
import shlex
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import chain

from webordinary.compose.backends import log_groups, open_container, output_queues
from webordinary.compose.container import Container
from webordinary.compose.emulated_events import has_emulated_events
from webordinary.config import Config
from webordinary.entrypoints.cli.options import Commands, add_command, find_mail, find_site, given, load_existing, whole
from webordinary.entrypoints.cli.output import CommandFailed, Exit, entry_of, line_for, print_json
from webordinary.model.jobs import output_message
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
    """The lines as text."""
    wide = max(map(len, groups))
    return [
        "on AWS what happened is in CloudWatch; the AWS CLI (version 2) shows it:",
        *(f"  {command_for(config, group, about, follow=follow)}" for group in list(groups)[:2]),
        "",
        "the log groups, in the order of a mail's way:",
        *(f"  {group:<{wide}}  {words}" for group, words in groups.items()),
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
    if (groups := log_groups(config)) and not has_emulated_events(config):
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


OVERLAP = timedelta(hours=1)
"""The order of ends is that of clocks, which differ between processes and may be set back."""
OUTPUTS_SECONDS, OUTPUTS_AT_ONCE = 1.0, 1000


def add_outputs(commands: Commands) -> None:
    about = "show what became of the mails of sites with `project set --output on`, one JSON value a line"
    parser = add_command(commands, "outputs", run_outputs, about)
    parser.add_argument("site", nargs="?", type=given, help="one site (all of them if not given)")
    parser.add_argument("--follow", action="store_true", help="go on showing results, until Ctrl-C")
    parser.add_argument("--since", metavar="TIME", type=_moment, help="from this `settledAt` on")


def run_outputs(args: argparse.Namespace) -> int:
    """Print results that are kept, then follow if asked to; on AWS say which queues have them."""
    config = load_existing(args)
    with open_container(config) as services:
        projects = [find_site(services, args.site)] if args.site else services.directory.projects()
        project_ids = {project.project_id for project in projects if project.output}
        if not project_ids:
            todo = "`webordinary project set SITE --output on` switches it on"
            raise CommandFailed("no site keeps results for programs", todo)
        keys = {one.key for one in services.directory.senders() if one.key.project_id in project_ids}
        if queues := output_queues(config, sorted(keys, key=str)):
            for key, queue in queues.items():
                print_json({"key": str(key), "queue": queue}) if args.json else print(f"{key}: the SQS queue {queue}")
            return Exit.OK
        reader, pause = (
            _OutputTail(services, project_ids, args.since or datetime.fromtimestamp(0, UTC)),
            threading.Event(),
        )
        with suppress(KeyboardInterrupt):
            reader.show()
            while args.follow:
                pause.wait(OUTPUTS_SECONDS)
                reader.show()
    return Exit.OK


class _OutputTail:
    """Prints settled jobs, each once, from a time on. The jobs themselves are the queue, so that none is missed."""

    def __init__(self, services: Container, project_ids: set[str], since: datetime) -> None:
        self._services, self._project_ids, self._since = services, project_ids, since
        self._shown: dict[str, datetime] = {}

    def show(self) -> None:
        since, full = self._since, True
        while full:
            jobs = self._services.settled_since(since, OUTPUTS_AT_ONCE)
            for job in jobs:
                since = job.settled_at or since
                if job.job_id not in self._shown:
                    self._shown[job.job_id] = since
                    if job.key.project_id in self._project_ids:
                        print_json(output_message(job) | {"projectId": job.key.project_id, "settledAt": since})
            full = len(jobs) == OUTPUTS_AT_ONCE and since > self._since
            self._since = max(self._since, since)
        self._since = max(self._since - OVERLAP, datetime.fromtimestamp(0, UTC))
        self._shown = {job: at for job, at in self._shown.items() if at >= self._since}


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(f"{text[:80]!r} is no time: write 2026-05-01T12:00:00+00:00") from problem
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class _EventTail:
    """Reads the events after the last one it has read."""

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
