"""Backup, restore and recovery of a data folder: the SQLite side of `adapters.files.backup`."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from webordinary.adapters.files.backup import DATABASE, ORIGINS, SITES, Manifest, Report, pack, unpack
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.mails import SqliteDirectory
from webordinary.adapters.sqlite.recovery import AdoptedMails, HighWaterMark, take_up_mails
from webordinary.model.errors import Permanent
from webordinary.model.projects import Project

REPOS = "SELECT project_id, settings FROM projects"
MOVE = "UPDATE projects SET settings = :settings WHERE project_id = :project_id"


def back_up(data: Path, target: Path, report: Report) -> Manifest:
    """Write a backup of a data folder, also while it is in use."""
    return pack(data, target, partial(_copy_database, data / DATABASE), datetime.now(UTC), report)


def restore(backup: Path, data: Path, report: Report) -> Manifest:
    """Unpack a backup beside the data folder, check it, then let it take its place."""
    return unpack(backup, data, partial(_check, data), report)


@dataclass(frozen=True, slots=True)
class TriedUpgrade:
    """What an upgrade of a data folder would do."""

    schema_before: int
    schema_after: int
    seconds: float


def try_upgrade(data: Path) -> TriedUpgrade:
    """Upgrade a copy of the database beside it, check the copy, and remove it; the folder may be in use."""
    with tempfile.TemporaryDirectory(prefix="upgrade-", dir=data) as folder:
        copy = Path(folder, DATABASE)
        before = _copy_database(data / DATABASE, copy)
        started = time.monotonic()
        with closing(Database(copy)) as database:
            database.migrate()
            with database.read() as conn:
                after: int = conn.execute("PRAGMA user_version").fetchone()[0]
                wrong = [*conn.execute("PRAGMA foreign_key_check").fetchmany(1), *_not_ok(conn)]
        if wrong:
            raise Permanent(f"the upgraded copy of {data / DATABASE} is not in order; keep the version that you have")
        return TriedUpgrade(before, after, time.monotonic() - started)


def _not_ok(conn: sqlite3.Connection) -> list[str]:
    verdict: str = conn.execute("PRAGMA quick_check(1)").fetchone()[0]
    return [] if verdict == "ok" else [verdict]


@dataclass(frozen=True, slots=True)
class Recovered:
    """The result of a recovery after the database lost commits."""

    taken_up: AdoptedMails
    unknown_sites: tuple[str, ...]


def recover(data: Path) -> Recovered:
    """Accept a database that lost commits as it is, and take up the mails whose files are there."""
    with closing(Database(data / DATABASE)) as database:
        database.migrate()
        taken_up = take_up_mails(database, data)
        HighWaterMark(database.path).set_back(database)
        return Recovered(taken_up, unknown_sites(SqliteDirectory(database).projects(), data))


def unknown_sites(projects: Iterable[Project], data: Path) -> tuple[str, ...]:
    """Sites that have releases in the data folder and no settings in the database."""
    known = {project.project_id for project in projects}
    return tuple(sorted(folder.name for folder in (data / SITES).glob("[!.]*") if folder.name not in known))


def _copy_database(source: Path, target: Path) -> int:
    """Copy the committed state of one instant, also while others write, and check the copy."""
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
        raise Permanent(f"{source} cannot be copied ({problem}); {todo}") from problem
    if verdict != "ok":
        raise Permanent(f"{source} is damaged ({verdict}); restore the last good backup")
    return version


def _check(data: Path, draft: Path, manifest: Manifest) -> None:
    """Refuse a newer schema, migrate an older one, and let repositories inside the folder move along."""
    if not (draft / DATABASE).is_file():
        raise Permanent("the backup holds no database; take another one")
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
