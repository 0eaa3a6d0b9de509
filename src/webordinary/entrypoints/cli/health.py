"""`webordinary worker health`: does a worker live, and does its loop go round; for container health checks."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from webordinary.adapters.local.liveness import LockFiles
from webordinary.adapters.sqlite.workers import WorkerEntry
from webordinary.app.backends import AWS
from webordinary.app.embedded import Embedded, open_embedded
from webordinary.config import Config
from webordinary.entrypoints.cli.exits import CommandFailed, Exit
from webordinary.entrypoints.cli.options import Commands, add_command, add_settings, given, load_existing
from webordinary.entrypoints.cli.output import clean, print_json
from webordinary.model.overview import ClaimSummary

MAX_CLAIMS = 1000
Problem = tuple[str, Exit]


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = add_command(commands, "health", run, "say whether workers live and work; the exit code tells")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--name", dest="health_name", metavar="N", type=given, help="only the worker of this name")
    which.add_argument("--id", dest="health_id", metavar="ID", type=given, help="only the worker with this id")
    add_settings(parser, ("lease_seconds", "renew_seconds"))


def run(args: argparse.Namespace) -> int:
    """0 if all is well, 1 if a worker hangs, 3 if one is dead or none is there."""
    config, now = load_existing(args), datetime.now(UTC)
    if config.backend == AWS:
        return _in_container(args, config)
    with open_embedded(config) as services:
        workers = _chosen(services.workers.present(), args)
        claims = services.overview.pool(now, MAX_CLAIMS).claims
        problems = {worker.worker: _problem(services, worker, claims, now) for worker in workers}
    return _report(args, workers, problems, services.lock_files)


def _report(
    args: argparse.Namespace,
    workers: Sequence[WorkerEntry],
    problems: Mapping[str, Problem | None],
    lock_files: LockFiles,
) -> int:
    """One that lives and only cannot reach AWS is no failure: to end it would mend nothing, and lose what it does."""
    notes = {worker.worker: lock_files.note_of(worker.worker) for worker in workers}
    if args.json:
        print_json([_plain(worker, problems[worker.worker], notes[worker.worker]) for worker in workers])
    else:
        for worker in workers:
            lives = f"lives, and waits: {note}" if (note := notes[worker.worker]) else "lives and works"
            print(f"{worker.name} (process {worker.pid}): {clean((problems[worker.worker] or (lives,))[0])}")
    return max((problem[1] for problem in problems.values() if problem), default=Exit.OK)


def _in_container(args: argparse.Namespace, config: Config) -> int:
    """On AWS: the workers of this container. Whether their leases are renewed, all others see to."""
    lock_files = LockFiles(config.data / "run" / "workers")
    found = [
        WorkerEntry(worker, lock_files.name_of(worker), pid, config.slots) for worker, pid in lock_files.peers().items()
    ]
    workers = _chosen(found, args)
    problems = {worker.worker: _silence(lock_files, worker, config.lease_seconds) for worker in workers}
    return _report(args, workers, problems, lock_files)


def _chosen(present: Sequence[WorkerEntry], args: argparse.Namespace) -> list[WorkerEntry]:
    """Of each name the newest: an older one of the same name was replaced."""
    newest = {worker.name: worker for worker in present}
    found = [w for w in present if w.worker == args.health_id] if args.health_id else list(newest.values())
    if args.health_name is not None:
        found = [worker for worker in found if worker.name == args.health_name]
    if not found:
        wanted = args.health_name or args.health_id
        what = f"there is no worker {wanted!r}" if wanted else "there is no worker"
        raise CommandFailed(what, "start one with `webordinary worker`, or `webordinary up`", Exit.NOT_RUNNING)
    return found


def _problem(services: Embedded, worker: WorkerEntry, claims: Sequence[ClaimSummary], now: datetime) -> Problem | None:
    if services.lock_files.is_dead(worker.worker):
        return "is dead; start one with `webordinary worker`", Exit.NOT_RUNNING
    if problem := _silence(services.lock_files, worker, services.config.lease_seconds):
        return problem
    over = [claim.key for claim in claims if claim.worker_id == worker.worker and claim.lease_expires_at < now]
    if over:
        return f"does not renew its lease on {over[0]}; see `webordinary logs`", Exit.FAILED
    return None


def _silence(lock_files: LockFiles, worker: WorkerEntry, patience_seconds: float) -> Problem | None:
    silent = time.time() - (lock_files.last_beat(worker.worker) or 0.0)
    if silent <= patience_seconds:
        return None
    return f"hangs: its loop has not gone round for {silent:.0f} s; end it, another will go on", Exit.FAILED


def _plain(worker: WorkerEntry, problem: Problem | None, note: str) -> dict[str, object]:
    return {
        "worker": worker.worker,
        "name": worker.name,
        "pid": worker.pid,
        "healthy": problem is None,
        "problem": problem[0] if problem else None,
        "note": note or None,
    }
