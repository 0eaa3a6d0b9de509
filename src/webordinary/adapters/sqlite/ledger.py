"""The ledger of agents' costs, in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from webordinary.adapters.sqlite.database import Database
from webordinary.model.jobs import Job
from webordinary.model.snapshot import Spent

SPEND = """
INSERT INTO costs (project_id, day, thread_id, job_id, usd, at)
VALUES (:project_id, :day, :thread_id, :job_id, :usd, :at)"""

ON_DAY = "SELECT coalesce(sum(usd), 0) FROM costs WHERE project_id = ? AND day = ?"
OF_JOB = "SELECT coalesce(sum(usd), 0) FROM costs WHERE job_id = ?"

BY_DAY = """
SELECT project_id, day, thread_id, count(DISTINCT job_id) AS jobs, sum(usd) AS usd FROM costs
WHERE (:project_id IS NULL OR project_id = :project_id) AND day >= :since
GROUP BY project_id, day, thread_id ORDER BY day DESC, project_id, usd DESC LIMIT :limit"""

FORGET_COSTS = "DELETE FROM costs WHERE at < ?"


class SqliteLedger:
    """See Accounts: one row for each run of an agent that cost something."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def spend(self, job: Job, usd: float, now: datetime) -> None:
        fields = {
            "project_id": job.key.project_id,
            "day": now.date().isoformat(),
            "thread_id": job.thread_id,
            "job_id": job.job_id,
            "usd": usd,
            "at": now.timestamp(),
        }
        with self._db.write() as conn:
            conn.execute(SPEND, fields)

    def on_day(self, project_id: str, day: date) -> float:
        with self._db.read() as conn:
            return float(conn.execute(ON_DAY, (project_id, day.isoformat())).fetchone()[0])

    def of_job(self, job_id: str) -> float:
        with self._db.read() as conn:
            return float(conn.execute(OF_JOB, (job_id,)).fetchone()[0])

    def listing(self, project_id: str | None, since: date, limit: int = 1000) -> Sequence[Spent]:
        """By day, project and thread, the newest first."""
        fields = {"project_id": project_id, "since": since.isoformat(), "limit": limit}
        with self._db.read() as conn:
            return [Spent(**dict(row)) for row in conn.execute(BY_DAY, fields)]

    def forget(self, before: datetime) -> int:
        """Delete what is past its retention."""
        with self._db.write() as conn:
            return conn.execute(FORGET_COSTS, (before.timestamp(),)).rowcount
