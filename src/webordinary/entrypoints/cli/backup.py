"""`webordinary backup`, `restore`, `recover` and `upgrade-check`."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from webordinary.compose import backup
from webordinary.entrypoints.cli.options import Commands, add_command, load_config, load_folder
from webordinary.entrypoints.cli.output import CommandFailed, Exit, print_json, progress
from webordinary.entrypoints.cli.up import require_programs
from webordinary.entrypoints.running import lock_data_folder


def add_to(commands: Commands) -> None:
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
        manifest = backup.back_up(config.data, target, report)
    size = target.stat().st_size
    if args.json:
        print_json({"backup": target, "bytes": size, "schema_version": manifest.schema_version})
    else:
        print(f"{target} holds {config.data} ({size / 1e6:,.1f} MB); `webordinary restore` brings it back")
    return Exit.OK


def add_restore(commands: Commands) -> None:
    parser = add_command(commands, "restore", run_restore, "unpack a backup into a new data folder")
    parser.add_argument("file", type=Path, help="a file that `webordinary backup` made")


def run_restore(args: argparse.Namespace) -> int:
    """Unpack beside the folder, check, then let it take its place."""
    data = load_config(args).data
    with progress("restore") as report:
        manifest = backup.restore(args.file, data, report)
    if args.json:
        print_json({"data": data, "made_at": manifest.made_at, "schema_version": manifest.schema_version})
    else:
        print(f"{data} is as it was at {manifest.made_at}; start it with `webordinary up --data {data}`.")
    return Exit.OK


def add_recover(commands: Commands) -> None:
    add_command(commands, "recover", run_recover, "go on with a database that lost what was written last")


def run_recover(args: argparse.Namespace) -> int:
    """Accept the database as it is, take up mails that it does not know, and say what is missing."""
    data = load_folder(args).data
    with lock_data_folder(data):
        found = backup.recover(data)
    mails, unreadable, sites = found.taken_up.mails, found.taken_up.unreadable, found.unknown_sites
    if args.json:
        print_json({"mails": mails, "unreadable": unreadable, "unknown_sites": sites})
        return Exit.OK
    print(f"{len(mails)} mails are taken up again; they are done at the next `webordinary up`")
    for path in unreadable:
        print(f"not taken up: {path}; send it again: `webordinary send {path} --from ADDRESS`")
    for site in sites:
        print(f"the settings of {site} are lost; before the next `up` add it again: `webordinary project add {site}`")
    return Exit.OK


def add_upgrade_check(commands: Commands) -> None:
    about = "try on a copy whether this version can go on with the data folder; changes nothing"
    add_command(commands, "upgrade-check", run_upgrade_check, about)


def run_upgrade_check(args: argparse.Namespace) -> int:
    """The settings are possible (`load_folder` read them), and a copy of the database can be upgraded."""
    data = load_folder(args).data
    with progress("upgrade") as report:
        report("database: copy, upgrade and check")
        tried = backup.try_upgrade(data)
    if args.json:
        print_json({"data": data, **asdict(tried)})
        return Exit.OK
    steps = tried.schema_after - tried.schema_before
    what = f"{steps} changes of its schema, {tried.seconds:.1f} s on the copy" if steps else "nothing to change"
    print(f"This version can go on with {data}: {what}. Nothing was changed.")
    if steps:
        print("Stop the old version, take a backup with it, then start this one. It cannot go back to the old schema.")
    return Exit.OK
