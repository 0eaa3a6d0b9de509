"""`webordinary worker`: one generic worker on a data folder. `webordinary pool`: release a claim, drain a worker."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from webordinary.compose.backends import machine_workers, open_container, run_worker
from webordinary.compose.container import profile_of
from webordinary.config import Config
from webordinary.entrypoints import lifecycle, running
from webordinary.entrypoints.cli.options import (
    FLAGS,
    Commands,
    add_command,
    add_group,
    add_settings,
    given,
    load_existing,
)
from webordinary.entrypoints.cli.output import CommandFailed, Exit, clean, print_json
from webordinary.entrypoints.lifecycle import run_until_stopped
from webordinary.mail.replies.compose import BY_OPERATOR
from webordinary.model.errors import InvalidName, NameTaken
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import WorkerEntry
from webordinary.operations.pool import drain_worker, release_claim
from webordinary.operations.ports import WorkerRegistry
from webordinary.services.upkeep import silence_allowed

MAX_CLAIMS = 1000
Problem = tuple[str, Exit]


def add_health(commands: Commands) -> None:
    parser = add_command(commands, "health", run_health, "say whether workers live and work; the exit code tells")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--name", dest="health_name", metavar="N", type=given, help="only the worker of this name")
    which.add_argument("--id", dest="health_id", metavar="ID", type=given, help="only the worker with this id")
    add_settings(parser, ("lease_seconds", "renew_seconds"))


def run_health(args: argparse.Namespace) -> int:
    """0 if all is well, 1 if a worker hangs, 3 if one is dead or none is there."""
    config, now = load_existing(args), datetime.now(UTC)
    if not profile_of(config).data_is_local:  # other workers check the leases; this command must not need AWS
        return _report(args, machine_workers(config), _silence_allowed(config), overdue={})
    with open_container(config) as container:
        claims = container.overview.pool(now, MAX_CLAIMS).claims
        overdue = {claim.worker_id: str(claim.key) for claim in claims if claim.lease_expires_at < now}
        return _report(args, container.workers, _silence_allowed(config), overdue)


def _silence_allowed(config: Config) -> float:
    """As long as `up` waits before it ends a worker; on AWS a loop stands still for the length of a long poll."""
    return silence_allowed(config.lease_seconds, config.interrupt_grace_seconds)


def _report(
    args: argparse.Namespace, registry: WorkerRegistry, silence_seconds: float, overdue: Mapping[str, str]
) -> int:
    """A worker that lives and cannot reach AWS is healthy: a restart would not help, and would lose its work."""
    workers = _chosen(registry.present(), args)
    problems = {worker.worker: _problem(registry, worker, silence_seconds, overdue) for worker in workers}
    notes = {worker.worker: registry.note_of(worker.worker) for worker in workers}
    if args.json:
        print_json([_plain(worker, problems[worker.worker], notes[worker.worker]) for worker in workers])
    else:
        for worker in workers:
            lives = f"lives, and waits: {note}" if (note := notes[worker.worker]) else "lives and works"
            print(f"{worker.name} (process {worker.pid}): {clean((problems[worker.worker] or (lives,))[0])}")
    return max((problem[1] for problem in problems.values() if problem), default=Exit.OK)


def _chosen(present: Sequence[WorkerEntry], args: argparse.Namespace) -> list[WorkerEntry]:
    """The newest worker of each name; it replaced the older ones."""
    newest = {worker.name: worker for worker in present}
    found = [w for w in present if w.worker == args.health_id] if args.health_id else list(newest.values())
    if args.health_name is not None:
        found = [worker for worker in found if worker.name == args.health_name]
    if not found:
        named = args.health_name or args.health_id
        what = f"there is no worker {named!r}" if named else "there is no worker"
        raise CommandFailed(what, "start one with `webordinary worker`, or `webordinary up`", Exit.NOT_RUNNING)
    return found


def _problem(
    registry: WorkerRegistry, worker: WorkerEntry, silence_seconds: float, overdue: Mapping[str, str]
) -> Problem | None:
    if registry.is_dead(worker.worker):
        return "is dead; start one with `webordinary worker`", Exit.NOT_RUNNING
    silent = time.time() - (registry.last_beat(worker.worker) or 0.0)
    if silent > silence_seconds:
        return f"hangs: its loop has not gone round for {silent:.0f} s; end it, another will go on", Exit.FAILED
    if worker.worker in overdue:
        return f"does not renew its lease on {overdue[worker.worker]}; see `webordinary logs`", Exit.FAILED
    return None


def _plain(worker: WorkerEntry, problem: Problem | None, note: str) -> dict[str, object]:
    return {
        "worker": worker.worker,
        "name": worker.name,
        "pid": worker.pid,
        "healthy": problem is None,
        "problem": problem[0] if problem else None,
        "note": note or None,
    }


NOT_OURS = (
    "data",
    "host",
    "port",
    "preview_port",
    "smtp_port",
    "operator",
    "workers",
    "trusted_peers",
    "max_mail_bytes",
)


def add_to(commands: Commands) -> None:
    parser = add_command(commands, "worker", run, "run one more worker, until Ctrl-C or SIGTERM")
    parser.add_argument("--name", type=given, help="what the page calls it (worker and its process id if not given)")
    parser.add_argument("--supervised", action="store_true", help=argparse.SUPPRESS)
    add_settings(parser, (name for name in FLAGS if name not in NOT_OURS))
    add_health(parser.add_subparsers(title="commands", metavar="COMMAND"))


def _served(config: Config) -> str:
    if profile_of(config).data_is_local:
        return str(config.data)
    return f"the emulator of AWS at {config.aws_endpoint}" if config.aws_endpoint else f"AWS in {config.aws_region}"


def run(args: argparse.Namespace) -> int:
    """Run until a stop signal; then finish or save the jobs within the grace period."""
    config = running.as_it_runs(load_existing(args))  # replies link to the page that runs
    name = args.name or f"worker {os.getpid()}"

    slots = f"{config.slots} slots" if config.slots > 1 else "1 slot"

    def began(trouble: str) -> None:
        if args.json:
            more = {"trouble": trouble} if trouble else {}
            print_json({"worker": name, "pid": os.getpid(), "slots": config.slots} | more)
        elif trouble:
            print(f"{name} waits: {trouble}; it goes on trying, Ctrl-C stops it", file=sys.stderr, flush=True)
        elif not args.supervised:
            print(f"{name} serves {_served(config)} with {slots}; Ctrl-C stops it", flush=True)

    def work(stop: threading.Event) -> None:
        # A supervised worker may start while its predecessor of the same name still saves its work.
        run_worker(config, name, config.slots, stop, sole=bool(args.name) and not args.supervised, began=began)

    try:
        run_until_stopped(
            work,
            stop_seconds=lifecycle.worker_stop_seconds(config),
            parent=sys.stdin.fileno() if args.supervised else None,
        )
    except NameTaken as problem:
        raise CommandFailed(str(problem), "give this one another --name", Exit.IN_USE) from problem
    return Exit.OK


def add_pool(commands: Commands) -> None:
    parts = add_group(commands, "pool", "release a claim, let a worker end", "The pool of workers.")
    claim = add_command(parts, "release", run_release, "take a key from a worker that is idle or dead")
    claim.add_argument("key", type=given, help="a site and its user, as `webordinary claims` shows it: amelia#scott")
    worker = add_command(parts, "drain", run_drain, "let a worker end once its running jobs are done")
    worker.add_argument("worker", type=given, help="its name, as `webordinary status` shows it")


def run_release(args: argparse.Namespace) -> int:
    """The next worker that takes the key gets a higher fence."""
    try:
        key = ProjectUser.parse(args.key)
    except InvalidName as problem:
        raise CommandFailed(f"{args.key[:80]!r} is no key", "write it as amelia#scott", Exit.USAGE) from problem
    with open_container(load_existing(args)) as services:
        release_claim(services, key, BY_OPERATOR)
    if args.json:
        print_json({"key": str(key)})
    else:
        print(f"{key} is released")
    return Exit.OK


def run_drain(args: argparse.Namespace) -> int:
    """Its supervisor, if it has one, starts it again."""
    with open_container(load_existing(args)) as services:
        worker = drain_worker(services, args.worker, BY_OPERATOR)
        minutes = services.profile.worker_drain_minutes
    if args.json:
        print_json({"worker": worker.worker, "name": worker.name, "pid": worker.pid})
    else:
        later = f"; it hears so within {minutes} minutes" if minutes else ""
        print(f"{worker.name} takes no more jobs and ends when its running ones are done{later}")
    return Exit.OK
