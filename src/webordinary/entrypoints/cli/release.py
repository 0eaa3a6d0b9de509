"""`webordinary release`: what a site shows and showed, and going back to it."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten

from webordinary.compose.backends import open_container
from webordinary.compose.embedded import open_embedded
from webordinary.entrypoints import running
from webordinary.entrypoints.cli.options import (
    Commands,
    add_command,
    add_group,
    find_mail,
    find_site,
    given,
    load_existing,
    load_folder,
)
from webordinary.entrypoints.cli.output import CommandFailed, Exit, clean, clock, print_json, table
from webordinary.entrypoints.cli.up import require_programs
from webordinary.jobs.site_files import Stage
from webordinary.operations import onboarding
from webordinary.operations import releases as app_releases
from webordinary.operations.replay import ReplayResult, replay

HEAD = ("release", "made", "files", "shown", "change")
_CHANGE = 60


def add_to(commands: Commands) -> None:
    parts = add_group(commands, "release", "list releases of a site, or go back to one", "Releases.")
    listing = add_command(parts, "list", list_releases, "list the releases that are kept, the newest first")
    again = add_command(parts, "rebuild", rebuild, "build the newest main and show it on the edit site")
    again.add_argument("project", help="the site")
    back = add_command(
        parts, "rollback", roll_back, "show an earlier release again, at once, and let the source follow"
    )
    for command in (listing, back):
        command.add_argument("project", help="name of the site")
        command.add_argument(
            "--stage", choices=[stage.value for stage in Stage], default=Stage.EDIT.value, help="which site (edit)"
        )
    back.add_argument(
        "release",
        nargs="?",
        type=given,
        help="beginning of its name; the one before the shown one if not given",
    )


def list_releases(args: argparse.Namespace) -> int:
    """One line per release."""
    with open_container(load_existing(args)) as services:
        find_site(services, args.project)
        kept = app_releases.releases_of(services, args.project, Stage(args.stage))
    if args.json:
        print_json([asdict(one) for one in kept])
        return Exit.OK
    print(table(HEAD, [_row(one) for one in kept]))
    return Exit.OK


def _row(one: app_releases.KeptRelease) -> tuple[object, ...]:
    shown, change = "now" if one.shown else "", shorten(one.change, _CHANGE, placeholder="…")
    return one.release, clock(one.made_at), one.files or "-", shown, change or "-"


def rebuild(args: argparse.Namespace) -> int:
    """Build main as it is now; a build that fails changes nothing that is shown."""
    config = running.as_it_runs(load_existing(args))
    with open_container(config) as services:
        find_site(services, args.project)
        problem = onboarding.rebuild(services, args.project)
    if args.json:
        print_json({"project": args.project, "problem": problem})
    elif problem:
        hint = f"see `webordinary project show {args.project}`, mend it and try again"
        raise CommandFailed(f"{args.project} could not be built: {clean(problem).rstrip('.')}", hint)
    else:
        print(f"{args.project}: the edit site shows the newest main")
    return Exit.FAILED if problem else Exit.OK


def roll_back(args: argparse.Namespace) -> int:
    """Flip, then let the branch follow."""
    with open_container(load_existing(args)) as services:
        find_site(services, args.project)
        done = app_releases.roll_back(services, args.project, Stage(args.stage), args.release or "")
    if args.json:
        print_json({
            "project": args.project, "stage": args.stage, "release": done.release.name, "changed": done.flipped,
            "commit": done.commit, "problem": done.problem, "not_shown_any_more": [one.words for one in done.gone],
            "shown_again": [one.words for one in done.back], "not_public": [one.words for one in done.waiting],
        })  # fmt: skip
    elif done.flipped:
        print(f"The {args.stage} site of {args.project} shows {done.release.name} again.")
    else:
        print(f"The {args.stage} site of {args.project} shows {done.release.name} already.")
    if done.commit and not args.json:
        print(f"Its source is back there too, by commit {done.commit[:12]}: the next change starts from what is shown.")
    listed = {
        "Not shown any more": done.gone, "Shown again": done.back,
        "`publish all` of its people would publish now": done.waiting,
    }  # fmt: skip
    for title, changes in listed.items():
        if changes and not args.json:
            print("\n".join([f"{title}:", *(f"  {clean(one.words)}" for one in changes)]))
    if done.problem:
        raise CommandFailed(
            f"its source did not follow: {done.problem}",
            "run it again when that is over; until then the next change would show it all again",
        )
    return Exit.OK


def add_replay(commands: Commands) -> None:
    parser = add_command(
        commands,
        "replay",
        run_replay,
        "run a mail's job again in a folder of its own; nothing is published and no reply is sent",
    )
    parser.add_argument("job", type=given, help="a mail's id, or as much of it as `status` shows; or a job's")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="work in this new folder and leave it there")


def run_replay(args: argparse.Namespace) -> int:
    """Replay, then print the difference and the reply."""
    require_programs()
    config = running.as_it_runs(load_folder(args))  # the reply names the site as its customer would be told
    with open_embedded(config) as services:
        job = args.job if args.job.startswith("job-") else find_mail(services, args.job)
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


def _plain(replayed: ReplayResult) -> dict[str, object]:
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


def _lines(replayed: ReplayResult, kept: Path | None) -> list[str]:
    took = sum(float(event.data.get("duration_ms", 0)) for event in replayed.steps) / 1000
    lines = [
        f"{replayed.job_id} again, from {replayed.since[:12]} of {replayed.project_id}, in {took:.1f} s: "
        f"{replayed.settlement.outcome}. Nothing was published and no reply was sent.",
        "",
        *(clean(line) for line in (replayed.diff or "No change.").splitlines()),
        "",
        "The reply would be:",
        *(f"  {clean(line)}".rstrip() for line in replayed.reply.splitlines()),
    ]
    if replayed.settlement.result.error:
        lines += ["", f"For the operator: {clean(replayed.settlement.result.error)}"]
    return [*lines, *([f"\nAll of it lies in {kept}."] if kept else [])]
