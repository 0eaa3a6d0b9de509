"""`webordinary replay`: run a stored mail once more on copies, and see what it would do and say."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from webordinary.app.embedded import open_embedded
from webordinary.app.replay import Replayed, replay
from webordinary.entrypoints import running
from webordinary.entrypoints.cli.exits import CommandFailed, Exit
from webordinary.entrypoints.cli.known import known_mail
from webordinary.entrypoints.cli.options import Commands, add_command, given, load_folder
from webordinary.entrypoints.cli.output import clean, print_json
from webordinary.entrypoints.cli.preflight import require_programs


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = add_command(
        commands,
        "replay",
        run,
        "run a mail's job again in a folder of its own; nothing is published and nobody answered",
    )
    parser.add_argument("job", type=given, help="a mail's id, or as much of it as `status` shows; or a job's")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="work in this new folder and leave it there")


def run(args: argparse.Namespace) -> int:
    """Replay, then print the difference and the reply."""
    require_programs()
    config = running.as_it_runs(load_folder(args))  # the reply names the site as its customer would be told
    with open_embedded(config) as services:
        job = args.job if args.job.startswith("job-") else known_mail(services, args.job)
        folder = _folder(args.keep, config.data)
        try:
            replayed = replay(services, job, folder)
        finally:
            if args.keep is None:
                shutil.rmtree(folder, ignore_errors=True)
    if args.json:
        print_json(_plain(replayed))
    else:
        print("\n".join(_lines(replayed, args.keep)))
    return Exit.OK


def _folder(keep: Path | None, data: Path) -> Path:
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="replay-", dir=data)).resolve()
    try:
        keep.mkdir(parents=True)
    except FileExistsError as problem:
        raise CommandFailed(f"{keep} is there already", "name a new folder with --keep", Exit.USAGE) from problem
    return keep.resolve()


def _plain(replayed: Replayed) -> dict[str, object]:
    return {
        "job": replayed.job_id,
        "project": replayed.project_id,
        "since": replayed.since,
        "outcome": str(replayed.settlement.outcome),
        "error": replayed.settlement.result.error,
        "diff": replayed.diff,
        "reply": replayed.reply,
        "steps": [{"kind": event.kind, **event.data} for event in replayed.steps],
    }


def _lines(replayed: Replayed, kept: Path | None) -> list[str]:
    took = sum(float(event.data.get("duration_ms", 0)) for event in replayed.steps) / 1000
    lines = [
        f"{replayed.job_id} again, from {replayed.since[:12]} of {replayed.project_id}, in {took:.1f} s: "
        f"{replayed.settlement.outcome}. Nothing was published and nobody was answered.",
        "",
        *(clean(line) for line in (replayed.diff or "No change.").splitlines()),
        "",
        "The reply would be:",
        *(f"  {clean(line)}".rstrip() for line in replayed.reply.splitlines()),
    ]
    if replayed.settlement.result.error:
        lines += ["", f"For the operator: {clean(replayed.settlement.result.error)}"]
    return [*lines, *([f"\nAll of it lies in {kept}."] if kept else [])]
