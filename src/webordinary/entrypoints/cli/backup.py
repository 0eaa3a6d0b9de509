"""`webordinary backup`: everything that must not be lost, in one file, while the system runs."""

from __future__ import annotations

import argparse
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from webordinary.adapters.local.backup import DATABASE, pack
from webordinary.entrypoints.cli.exits import CommandFailed, Exit
from webordinary.entrypoints.cli.options import Commands, add_command, load_folder
from webordinary.entrypoints.cli.output import print_json
from webordinary.entrypoints.cli.preflight import require_programs
from webordinary.entrypoints.cli.progress import progress


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = add_command(commands, "backup", run, "write a backup, also while it runs")
    parser.add_argument("file", type=Path, help="the backup to write, such as monday.tar.gz")
    parser.add_argument("--force", action="store_true", help="replace a file that is there already")


def run(args: argparse.Namespace) -> int:
    """Pack, check, put in place."""
    require_programs()
    config, target = load_folder(args), args.file.absolute()
    if target.exists() and not (args.force and target.is_file()):
        raise CommandFailed(f"{target} is there already", "choose another name, or replace that file with --force")
    with progress("backup") as report:
        manifest = pack(config.data, target, partial(_copy_database, config.data / DATABASE), datetime.now(UTC), report)
    size = target.stat().st_size
    if args.json:
        print_json({"backup": target, "bytes": size, "schema_version": manifest.schema_version})
    else:
        print(f"{target} holds {config.data} ({size / 1e6:,.1f} MB); `webordinary restore` brings it back")
    return Exit.OK


def _copy_database(source: Path, target: Path) -> int:
    """Copy what was committed at one instant, writers or not, and check the copy."""
    try:
        with (
            closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as live,
            closing(sqlite3.connect(target)) as copy,
        ):
            live.backup(copy)  # in one step: between two, each write of another process would start it over
            copy.execute("PRAGMA journal_mode = DELETE")
            verdict = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
            version: int = copy.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error as problem:
        todo = "make room if the disk is full; else restore the last good backup"
        raise CommandFailed(f"{source} cannot be copied ({problem})", todo) from problem
    if verdict != "ok":
        raise CommandFailed(f"{source} is damaged ({verdict})", "restore the last good backup")
    return version
