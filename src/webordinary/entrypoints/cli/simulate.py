"""`webordinary simulate`: how many workers a day of mail needs, how long customers wait, and what that costs on AWS."""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from webordinary.entrypoints.cli.options import Commands, add_command
from webordinary.entrypoints.cli.output import CommandFailed, Exit, print_json, progress
from webordinary.operations.capacity.costs import (
    COMPUTE_KINDS,
    EC2,
    MEETING_THE_BARS,
    SystemSize,
    UsageModel,
    quota_data,
    quota_lines,
)
from webordinary.operations.capacity.demand import CURVES, MAX_MAILS, MAX_PROJECTS, MAX_WORKERS, Demand, OutOfBounds
from webordinary.operations.capacity.forecast import (
    BLOCKS,
    Question,
    columns_for,
    estimated_workers,
    forecast,
    plain_data,
    svg,
    text,
)

AUTO = "auto"


def add_to(commands: Commands) -> None:
    parser = add_command(commands, "simulate", run, "run the real pool through a day of mail in virtual time")
    demand = parser.add_argument_group("the day")
    demand.add_argument("--projects", type=int, default=1000, help=f"how many sites (1000; at most {MAX_PROJECTS:,})")
    demand.add_argument(
        "--mails-per-day", type=int, default=5000, metavar="N", help=f"from all of them (5000; at most {MAX_MAILS:,})"
    )
    demand.add_argument("--day", default="business", help=f"when people write: {' or '.join(CURVES)} (business)")
    demand.add_argument("--job-seconds", type=float, default=300.0, metavar="S", help="a job's mean time (300)")
    demand.add_argument("--job-spread", type=float, default=0.8, metavar="X", help="sigma of its logarithm (0.8)")
    demand.add_argument("--users-per-project", type=float, default=2.0, metavar="N", help="the mean (2)")
    demand.add_argument("--seed", type=int, default=1, help="another day of the same kind (1)")
    pool = parser.add_argument_group("the workers")
    pool.add_argument("--workers", default=AUTO, help=f"a number up to {MAX_WORKERS:,}, or auto: as few as do (auto)")
    pool.add_argument("--slots", type=int, default=4, help="jobs that a worker runs at a time (4)")
    pool.add_argument("--target-seconds", type=float, default=60.0, metavar="S", help="95%% of claims come within (60)")
    money = parser.add_argument_group("the bill")
    money.add_argument("--compute", default=EC2, help=f"where workers run: {' or '.join(COMPUTE_KINDS)} ({EC2})")
    money.add_argument("--console", action="store_true", help="with the console behind a load balancer")
    bars = MEETING_THE_BARS
    for flag, habit in (("mail", bars.mail), ("job-minute", bars.job_minute), ("idle-hour", bars.idle_hour)):
        about = f"AWS calls per {flag.replace('-', ' ')}, as benchmarks/aws_cost.py measures ({habit.calls:g})"
        money.add_argument(f"--calls-per-{flag}", type=float, default=habit.calls, metavar="N", help=about)
    about = "only name the quotas of AWS that a day like this reaches, and those of smaller ones; takes seconds"
    parser.add_argument("--quotas", action="store_true", help=about)
    parser.add_argument("--plot", metavar="FILE.svg", type=Path, help="write the curves of the day to this file")


def run(args: argparse.Namespace) -> int:
    """Simulate, then print."""
    if args.plot and (args.plot.is_dir() or not args.plot.parent.is_dir()):
        wrong = f"{args.plot} is a folder" if args.plot.is_dir() else f"there is no folder {args.plot.parent}"
        raise CommandFailed(wrong, "name a file to write, in a folder that is there", Exit.USAGE)
    try:
        question = _question(args)
        if args.quotas:
            return _print_quotas(args, question)
        with progress("simulating") as report:
            answer = forecast(question, report)
    except OutOfBounds as problem:
        raise CommandFailed(str(problem), "see `webordinary simulate --help`", Exit.USAGE) from problem
    if args.plot:
        args.plot.write_text(svg(answer), encoding="utf-8")
    if args.json:
        print_json(plain_data(answer))
        return Exit.OK
    columns = columns_for(shutil.get_terminal_size().columns)
    print(text(answer, columns=columns, plain=not _prints(BLOCKS)))
    if args.plot:
        print(f"\nthe curves of the day are in {args.plot}")
    return Exit.OK


def _print_quotas(args: argparse.Namespace, question: Question) -> int:
    with progress("estimating") as report:
        report("workers by a plain queue")
        size = SystemSize(args.projects, args.mails_per_day, estimated_workers(question))
    if args.json:
        print_json(quota_data(size))
    else:
        print("\n".join(quota_lines(size)))
    return Exit.OK


def _question(args: argparse.Namespace) -> Question:
    return Question(
        demand=Demand(
            projects=args.projects,
            mails=args.mails_per_day,
            seed=args.seed,
            curve=args.day,
            job_seconds=args.job_seconds,
            job_spread=args.job_spread,
            users_per_project=args.users_per_project,
        ),
        workers=_workers(args.workers),
        target_seconds=args.target_seconds,
        slots=args.slots,
        compute=args.compute,
        console=args.console,
        usage_model=_usage_model(args),
    )


def _workers(given: str) -> int | None:
    if given == AUTO:
        return None
    try:
        return int(given)
    except ValueError:
        raise OutOfBounds(f"workers {given!r}: use a number, or {AUTO}") from None


def _usage_model(args: argparse.Namespace) -> UsageModel:
    bars = MEETING_THE_BARS
    return replace(
        bars,
        mail=bars.mail.with_calls(args.calls_per_mail),
        job_minute=bars.job_minute.with_calls(args.calls_per_job_minute),
        idle_hour=bars.idle_hour.with_calls(args.calls_per_idle_hour),
    )


def _prints(characters: str) -> bool:
    try:
        characters.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
