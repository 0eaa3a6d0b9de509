"""Projects and entitled senders in SQLite."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict
from datetime import datetime

from webordinary.adapters.sqlite.database import Database
from webordinary.model.errors import Permanent
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, Sender

ENTRIES = "SELECT address, project_id, user_id FROM senders WHERE address = ? ORDER BY project_id"

SENDERS = "SELECT address, project_id, user_id FROM senders ORDER BY project_id, address"

PROJECT = "SELECT settings FROM projects WHERE project_id = ?"

PROJECTS = "SELECT settings FROM projects ORDER BY project_id"

ADD_PROJECT = """
INSERT INTO projects (project_id, settings, created_at) VALUES (:project_id, :settings, :now)
ON CONFLICT (project_id) DO UPDATE SET settings = excluded.settings"""

ADD_SENDER = """
INSERT INTO senders (address, project_id, user_id, created_at) VALUES (:address, :project_id, :user_id, :now)
ON CONFLICT (address, project_id) DO UPDATE SET user_id = excluded.user_id"""

REMOVE_SENDER = "DELETE FROM senders WHERE address = ? AND project_id = ?"

REMOVE_SENDERS = "DELETE FROM senders WHERE project_id = ?"

REMOVE_PROJECT = "DELETE FROM projects WHERE project_id = ?"


class SqliteDirectory:
    """See Directory."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def entries(self, address: str) -> tuple[Sender, ...]:
        """See Directory."""
        with self._db.read() as conn:
            return tuple(_sender(row) for row in conn.execute(ENTRIES, (address.lower(),)))

    def project(self, project_id: str) -> Project | None:
        """See Directory."""
        with self._db.read() as conn:
            row = conn.execute(PROJECT, (project_id,)).fetchone()
        return _project(row) if row else None

    def projects(self) -> tuple[Project, ...]:
        """See Directory."""
        with self._db.read() as conn:
            return tuple(_project(row) for row in conn.execute(PROJECTS))

    def senders(self) -> tuple[Sender, ...]:
        """See Directory."""
        with self._db.read() as conn:
            return tuple(_sender(row) for row in conn.execute(SENDERS))

    def add_project(self, project: Project, now: datetime) -> None:
        """See Directory."""
        row = {
            "project_id": project.project_id,
            "settings": json.dumps(asdict(project), ensure_ascii=False),
            "now": now.timestamp(),
        }
        with self._db.write() as conn:
            conn.execute(ADD_PROJECT, row)

    def add_sender(self, sender: Sender, now: datetime) -> None:
        """See Directory."""
        row = {
            "address": sender.address.lower(),
            "project_id": sender.key.project_id,
            "user_id": sender.key.user_id,
            "now": now.timestamp(),
        }
        try:
            with self._db.write() as conn:
                conn.execute(ADD_SENDER, row)
        except sqlite3.IntegrityError as problem:
            raise Permanent(f"there is no project {sender.key.project_id}: add it first") from problem

    def remove_sender(self, address: str, project_id: str) -> None:
        """See Directory."""
        with self._db.write() as conn:
            conn.execute(REMOVE_SENDER, (address.lower(), project_id))

    def remove_project(self, project_id: str) -> None:
        """See Directory."""
        with self._db.write() as conn:
            conn.execute(REMOVE_SENDERS, (project_id,))
            conn.execute(REMOVE_PROJECT, (project_id,))


def _sender(row: sqlite3.Row) -> Sender:
    return Sender(row["address"], ProjectUser(row["project_id"], row["user_id"]))


def _project(row: sqlite3.Row) -> Project:
    return Project(**json.loads(row["settings"]))
