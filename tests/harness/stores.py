"""Stores over SQLite in memory, with what they need beside the database."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from datetime import datetime
from pathlib import Path

from webordinary.adapters.sqlite.claims import SqliteProjectLeases
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.mails import SqliteRawMails
from webordinary.model.claims import CancelToken, ProjectLease

RUNNING = """
INSERT INTO jobs (job_id, key, ord, thread_ord, thread_id, email_id, command, state, recorded_at, fence)
VALUES (:job_id, 'amelia#u' || (SELECT count(*) FROM jobs), 1, 1, 't', 'e', 'edit', 'running', 0, :fence)
ON CONFLICT (job_id) DO UPDATE SET fence = max(fence, :fence)"""


class TemporaryRawMails(SqliteRawMails):
    """The bytes are in a folder that goes with the object. Nothing is synced: no power fails here."""

    def __init__(self, db: Database) -> None:
        folder = tempfile.mkdtemp(prefix="mails-")
        super().__init__(db, Path(folder), _write)
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


class LeasesOfRunningJobs(SqliteProjectLeases):
    """For tests without a pool: every job that asks for the lease counts as running."""

    def take(self, project_id: str, token: CancelToken, now: datetime) -> ProjectLease | None:
        self._let_run(token)
        return super().take(project_id, token, now)

    def overtake(self, project_id: str, token: CancelToken, now: datetime) -> ProjectLease | None:
        self._let_run(token)
        return super().overtake(project_id, token, now)

    def _let_run(self, token: CancelToken) -> None:
        if token.job_id:
            with self._db.write() as conn:
                conn.execute(RUNNING, {"job_id": token.job_id, "fence": token.fence})
