"""`webordinary status`: mails, jobs, workers, claims, queues and dead letters; also while `up` is down."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from webordinary.app.backends import AWS, open_services
from webordinary.config import Config
from webordinary.entrypoints import running
from webordinary.entrypoints.cli.exits import Exit
from webordinary.entrypoints.cli.options import Commands, add_command, load_existing
from webordinary.entrypoints.cli.output import clock, print_json, table
from webordinary.entrypoints.dashboard.steps import steps_of
from webordinary.entrypoints.dashboard.views import status_of
from webordinary.entrypoints.running import Endpoints
from webordinary.model.jobs import JobState
from webordinary.model.overview import MailSummary, PoolSnapshot

MAX_IN_FLIGHT, RECENT, SHORT_ID = 1000, 10, 12


@dataclass(frozen=True, slots=True)
class Look:
    """The system at one moment. `alive` names the workers whose processes run."""

    backend: str
    endpoints: Endpoints | None
    jobs: dict[str, int]
    in_flight: Sequence[MailSummary]
    recent: Sequence[MailSummary]
    pool: PoolSnapshot
    alive: Sequence[str]
    paused: Sequence[str]


def add_to(commands: Commands) -> None:
    """Declare the command."""
    add_command(commands, "status", run, "show mails, jobs, workers, claims, queues and dead letters")


def run(args: argparse.Namespace) -> int:
    """Look once and print it."""
    look = _look(load_existing(args))
    if args.json:
        print_json({"running": look.endpoints is not None} | asdict(look))
    else:
        print("\n\n".join(_paragraphs(look)))
    return Exit.OK


def _look(config: Config) -> Look:
    with open_services(config) as services:
        pool = services.overview.pool(datetime.now(UTC))
        in_flight = services.overview.mails_in_flight(MAX_IN_FLIGHT)
        recent = services.overview.recent_mails(None, RECENT)
        alive = [w.worker for w in pool.workers]
        paused = [project.project_id for project in services.directory.projects() if project.paused]
    states = Counter(mail.job.state for mail in in_flight if mail.job)
    jobs = {state.value: states[state] for state in JobState if state is not JobState.SETTLED}
    return Look(config.backend, running.running(config.data), jobs, in_flight, recent, pool, alive, paused)


def _paragraphs(look: Look) -> Iterator[str]:
    pool = look.pool
    yield _where(look)
    jobs = ", ".join(f"{count} {state}" for state, count in look.jobs.items())
    yield f"mails under way: {len(look.in_flight)}; jobs: {jobs}"
    if look.paused:
        yield f"paused: {', '.join(look.paused)}; their mails wait for `webordinary resume`"
    mails = [_mail(mail) for mail in look.recent]
    yield "last mails\n" + table(("mail", "received", "from", "subject", "stands"), mails)
    yield "workers\n" + table(("worker", "process", "busy", "since", "alive"), list(_workers(look)))
    claims = [(c.key, c.worker, c.fence, clock(c.lease_expires_at)) for c in pool.claims]
    yield "claims\n" + table(("key", "worker", "fence", "lease ends"), claims)
    queues = [(q.key, q.open, q.running, (q.waiting_since and clock(q.waiting_since)) or "-") for q in pool.queues]
    yield "queues\n" + table(("key", "open", "running", "waiting since"), queues)
    letters = [(d.email_id[:SHORT_ID], clock(d.died_at), d.reason[:100]) for d in pool.dead_letters]
    yield f"dead letters: {pool.dead_letter_count}\n" + table(("mail", "given up", "reason"), letters)


def _where(look: Look) -> str:
    ends = look.endpoints
    if look.backend == AWS:
        return f"on AWS; its page runs at {ends.page}" if ends else "on AWS; `webordinary up` shows a page of it"
    return f"runs at {ends.page}, mail at {ends.smtp}" if ends else "does not run; start it with `webordinary up`"


def _workers(look: Look) -> Iterator[tuple[object, ...]]:
    busy = Counter(job.worker for job in look.pool.running)
    for w in look.pool.workers:
        alive = "yes" if w.worker in look.alive else "no"
        yield w.name, w.pid, f"{busy[w.worker]} of {w.slots}", clock(w.started_at), alive


def _mail(mail: MailSummary) -> tuple[str, str, str, str, str]:
    subject = (mail.subject or "-")[:40]
    stands = status_of(mail, steps_of(mail)).label  # in the page's words
    if mail.stopped_because:
        stands = f"{stands}: {mail.stopped_because[:100]}"
    return mail.email_id[:SHORT_ID], clock(mail.received_at), mail.sender[:40], subject, stands
