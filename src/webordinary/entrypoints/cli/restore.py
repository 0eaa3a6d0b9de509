"""`webordinary restore`: a backup becomes a data folder again."""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path

from webordinary.adapters.local.backup import DATABASE, ORIGINS, Manifest
from webordinary.adapters.local.restore import unpack
from webordinary.adapters.sqlite.database import Database
from webordinary.entrypoints.cli.exits import CommandFailed, Exit
from webordinary.entrypoints.cli.options import Commands, add_command, load_config
from webordinary.entrypoints.cli.output import print_json
from webordinary.entrypoints.cli.progress import progress

REPOS = "SELECT project_id, settings FROM projects"
MOVE = "UPDATE projects SET settings = :settings WHERE project_id = :project_id"


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = add_command(commands, "restore", run, "unpack a backup into a new data folder")
    parser.add_argument("file", type=Path, help="a file that `webordinary backup` made")


def run(args: argparse.Namespace) -> int:
    """Unpack beside the folder, check, then let it take its place."""
    data = load_config(args).data
    with progress("restore") as report:
        manifest = unpack(args.file, data, partial(_check, data), report)
    if args.json:
        print_json({"data": data, "made_at": manifest.made_at, "schema_version": manifest.schema_version})
    else:
        print(f"{data} is as it was at {manifest.made_at}; start it with `webordinary up --data {data}`.")
    return Exit.OK


def _check(data: Path, draft: Path, manifest: Manifest) -> None:
    """Refuse a newer schema, migrate an older one, and let repositories inside the folder move along."""
    if not (draft / DATABASE).is_file():
        raise CommandFailed("the backup holds no database", "take another one")
    database = Database(draft / DATABASE)
    try:
        database.migrate()
        with database.write() as conn:
            for row in conn.execute(REPOS).fetchall():
                settings = json.loads(row["settings"])
                inside = Path(manifest.data, ORIGINS)
                if Path(settings["repo"]).is_relative_to(inside):
                    settings["repo"] = str(data / ORIGINS / Path(settings["repo"]).relative_to(inside))
                    conn.execute(MOVE, {"settings": json.dumps(settings), "project_id": row["project_id"]})
    finally:
        database.close()
