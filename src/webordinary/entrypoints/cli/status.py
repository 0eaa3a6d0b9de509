"""`webordinary status`: mails, jobs, workers, claims, queues and dead letters; also while `up` is down."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from webordinary.compose.backends import open_container
from webordinary.compose.container import profile_of
from webordinary.config import Config
from webordinary.entrypoints import running
from webordinary.entrypoints.cli.options import Commands, add_command, find_mail, find_site, given, load_existing, whole
from webordinary.entrypoints.cli.output import SHORT_ID, Exit, clock, print_json, table
from webordinary.entrypoints.dashboard.text import duration
from webordinary.entrypoints.dashboard.views import status_of, steps_of
from webordinary.entrypoints.running import Endpoints
from webordinary.model.jobs import JobState
from webordinary.model.snapshot import ClaimSummary, MailState, MailSummary, PoolSnapshot, QueueSummary, state_of

MAX_IN_FLIGHT, RECENT = 1000, 10


@dataclass(frozen=True, slots=True)
class StatusSnapshot:
    """The system at one instant. `alive` names the workers whose processes run."""

    backend: str
    endpoints: Endpoints | None
    jobs: dict[str, int]
    in_flight: Sequence[MailSummary]
    recent: Sequence[MailSummary]
    pool: PoolSnapshot
    alive: Sequence[str]
    paused: Sequence[str]


def add_to(commands: Commands) -> None:
    add_command(commands, "status", run, "show mails, jobs, workers, claims, queues and dead letters")


def run(args: argparse.Namespace) -> int:
    """Read once and print."""
    config = load_existing(args)
    look = _read_status(config)
    if args.json:
        print_json({"running": look.endpoints is not None} | asdict(look))
    else:
        print("\n\n".join((_where(config, look.endpoints), *_paragraphs(look))))
    return Exit.OK


def _read_status(config: Config) -> StatusSnapshot:
    with open_container(config) as services:
        pool = services.overview.pool(datetime.now(UTC))
        looked = services.overview.mails_in_flight(MAX_IN_FLIGHT)
        # The workflow of a mail over the limit goes on until the hour ends, to tell its sender of all of them.
        in_flight = [mail for mail in looked if state_of(mail) is not MailState.REFUSED]
        recent = services.overview.recent_mails(None, RECENT)
        alive = [w.worker for w in pool.workers]
        paused = [project.project_id for project in services.directory.projects() if project.paused]
    states = Counter(mail.job.state for mail in in_flight if mail.job)
    jobs = {state.value: states[state] for state in JobState if state is not JobState.SETTLED}
    return StatusSnapshot(config.backend, running.running(config.data), jobs, in_flight, recent, pool, alive, paused)


def _paragraphs(look: StatusSnapshot) -> Iterator[str]:
    pool = look.pool
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


def _where(config: Config, ends: Endpoints | None) -> str:
    if not profile_of(config).runs_engine:
        return f"on AWS; its page runs at {ends.page}" if ends else "on AWS; `webordinary up` shows a page of it"
    return f"runs at {ends.page}, mail at {ends.smtp}" if ends else "does not run; start it with `webordinary up`"


def _workers(look: StatusSnapshot) -> Iterator[tuple[object, ...]]:
    busy = Counter(job.worker for job in look.pool.running)
    for w in look.pool.workers:
        alive = "yes" if w.worker in look.alive else "no"
        yield w.name, w.pid, f"{busy[w.worker]} of {w.slots}", clock(w.started_at), alive


def _mail(mail: MailSummary) -> tuple[str, str, str, str, str]:
    subject = (mail.subject or "-")[:40]
    stands = status_of(mail, steps_of(mail)).label  # in the page's words
    return mail.email_id[:SHORT_ID], clock(mail.received_at), mail.sender[:40], subject, stands


MAX_CLAIMS = 1000
CLAIMS_HEAD = ("key", "worker", "fence", "status", "since", "lease ends", "does")


def add_claims(commands: Commands) -> None:
    add_command(commands, "claims", run_claims, "show which worker acts for which project and user")


def run_claims(args: argparse.Namespace) -> int:
    """Read once and print."""
    now = datetime.now(UTC)
    with open_container(load_existing(args)) as services:
        claims = services.overview.pool(now, MAX_CLAIMS).claims
    if args.json:
        print_json([_plain(claim, now) for claim in claims])
        return Exit.OK
    print(table(CLAIMS_HEAD, [_row(claim, now) for claim in claims]))
    return Exit.OK


def _row(claim: ClaimSummary, now: datetime) -> tuple[object, ...]:
    lease = clock(claim.lease_expires_at) + ("" if claim.lease_expires_at > now else " (over)")
    does = "its worker is dead" if claim.dead else "busy" if claim.busy else "idle"
    return claim.key, claim.worker, claim.fence, claim.status, clock(claim.claimed_at), lease, does


def _plain(claim: ClaimSummary, now: datetime) -> dict[str, object]:
    return {
        "key": str(claim.key),
        "worker": claim.worker,
        "worker_id": claim.worker_id,
        "fence": claim.fence,
        "status": str(claim.status),
        "claimed_at": claim.claimed_at,
        "lease_expires_at": claim.lease_expires_at,
        "live": claim.lease_expires_at > now and not claim.dead,
        "busy": claim.busy,
    }


INTERRUPTIONS_HEAD = ("mail", "at", "worker", "made way for", "reason")


def add_interruptions(commands: Commands) -> None:
    parser = add_command(commands, "interruptions", run_interruptions, "show which jobs were interrupted, and by what")
    parser.add_argument("mail", nargs="?", type=given, help="one mail (all of them if not given)")
    parser.add_argument("--limit", type=whole(1, MAX_CLAIMS), default=50, metavar="N", help="the last N (50)")


def run_interruptions(args: argparse.Namespace) -> int:
    """Read once and print."""
    with open_container(load_existing(args)) as services:
        found = services.interruptions.listing(args.limit, find_mail(services, args.mail) if args.mail else "")
    if args.json:
        print_json([asdict(one) for one in found])
        return Exit.OK
    rows = [
        (one.email_id[:SHORT_ID], clock(one.at), one.worker or "-", one.new_thread_id or "-", one.reason[:100])
        for one in found
    ]
    print(table(INTERRUPTIONS_HEAD, rows))
    return Exit.OK


MAX_QUEUES = 1000
QUEUES_HEAD = ("key", "preparing", "queued", "running", "oldest waits", "owner")


def add_queues(commands: Commands) -> None:
    add_command(commands, "queues", run_queues, "show what waits, for how long, and who owns it")


def run_queues(args: argparse.Namespace) -> int:
    """Read once and print."""
    now = datetime.now(UTC)
    with open_container(load_existing(args)) as services:
        pool = services.overview.pool(now, MAX_QUEUES)
    unclaimed = pool.unclaimed
    if args.json:
        waiting = {"depth": unclaimed.depth, "oldest_age_seconds": _seconds(unclaimed.oldest_since, now)}
        print_json({"queues": [_queues_plain(queue, now) for queue in pool.queues], "unclaimed": waiting})
        return Exit.OK
    print(table(QUEUES_HEAD, [_queues_row(queue, now) for queue in pool.queues]))
    oldest = f", the oldest for {_age(unclaimed.oldest_since, now)}" if unclaimed.depth else ""
    print(f"\nunclaimed: {unclaimed.depth} waiting{oldest}")
    return Exit.OK


def _queues_row(queue: QueueSummary, now: datetime) -> tuple[object, ...]:
    waits = _age(queue.waiting_since, now)
    return queue.key, queue.preparing, queue.queued, queue.running, waits, queue.owner or "no worker"


def _queues_plain(queue: QueueSummary, now: datetime) -> dict[str, object]:
    return {
        "key": str(queue.key),
        "preparing": queue.preparing,
        "queued": queue.queued,
        "running": queue.running,
        "oldest_age_seconds": _seconds(queue.waiting_since, now),
        "owner": queue.owner,
        "unowned_seconds": _seconds(queue.unowned_since, now),
    }


def _age(since: datetime | None, now: datetime) -> str:
    return duration(now - since) if since else "-"


def _seconds(since: datetime | None, now: datetime) -> float | None:
    return round(max(0.0, (now - since).total_seconds()), 3) if since else None


MOST_DAYS = 3650
COSTS_HEAD = ("day", "site", "conversation", "jobs", "cost")


def add_costs(commands: Commands) -> None:
    parser = add_command(commands, "costs", run_costs, "show what agents cost")
    parser.add_argument("project", nargs="?", type=given, help="one site (all of them if not given)")
    parser.add_argument(
        "--days", type=whole(1, MOST_DAYS), default=30, metavar="N", help="the last N days, with today (30)"
    )


def run_costs(args: argparse.Namespace) -> int:
    """Read once and print."""
    since = datetime.now(UTC).date() - timedelta(days=args.days - 1)
    with open_container(load_existing(args)) as services:
        if args.project:
            find_site(services, args.project)
        spent = services.ledger.listing(args.project, since)
    if args.json:
        print_json([asdict(row) for row in spent])
        return Exit.OK
    rows = [(row.day, row.project_id, row.thread_id, row.jobs, f"${row.usd:.2f}") for row in spent]
    print(table(COSTS_HEAD, rows))
    print(f"\nin all: ${sum(row.usd for row in spent):.2f} since {since}")
    return Exit.OK
