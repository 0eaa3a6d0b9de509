"""Dead letters and the audit of interruptions, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from datetime import date, datetime

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.rows import at
from webordinary.model.jobs import DeadLetter, Job
from webordinary.model.snapshot import Interruption, Spent

LETTERS = "letters"
"""Who listens under this name is woken when something was given up."""

ADD = """
INSERT INTO dead_letters (email_id, job_id, reason, died_at, redrives)
VALUES (:email_id, :job_id, :reason, :now, :redrives)
ON CONFLICT (email_id, redrives, reason) DO NOTHING"""

OF_MAIL = """
SELECT * FROM dead_letters WHERE email_id >= :start AND email_id < :start || '~' ORDER BY letter_id DESC LIMIT :limit"""

CLEAR = "DELETE FROM dead_letters WHERE email_id = ? AND redrives <= ?"

INTERRUPTED = """
INSERT INTO interruptions (email_id, job_id, worker, times, reason, new_thread_id, at)
VALUES (:email_id, :job_id, :worker, :times, :reason, :new_thread_id, :now)
ON CONFLICT (job_id, times) DO NOTHING"""

INTERRUPTIONS = """
SELECT * FROM interruptions WHERE :email_id = '' OR email_id = :email_id ORDER BY interruption_id DESC LIMIT :limit"""

FORGET = "DELETE FROM interruptions WHERE at < ?"


class SqliteDeadLetters:
    """What was given up, as rows."""

    def __init__(self, db: Database, notify: Callable[[str], None] = lambda _: None) -> None:
        self._db, self._notify = db, notify

    def add(self, email_id: str, job_id: str | None, reason: str, now: datetime, redrives: int = 0) -> None:
        """Keep it with its reason."""
        fields = {
            "email_id": email_id,
            "job_id": job_id,
            "reason": reason,
            "now": now.timestamp(),
            "redrives": redrives,
        }
        with self._db.write() as conn:
            conn.execute(ADD, fields)
        self._notify(LETTERS)

    def all(self, limit: int) -> Sequence[DeadLetter]:
        """The newest first."""
        with self._db.read() as conn:
            rows = conn.execute("SELECT * FROM dead_letters ORDER BY died_at DESC LIMIT ?", (limit,))
            return [letter_of(row) for row in rows]

    def get(self, letter_id: int) -> DeadLetter | None:
        """One of them."""
        with self._db.read() as conn:
            row = conn.execute("SELECT * FROM dead_letters WHERE letter_id = ?", (letter_id,)).fetchone()
            return letter_of(row) if row else None

    def remove(self, letter_id: int) -> bool:
        """It was dropped."""
        with self._db.write() as conn:
            return bool(conn.execute("DELETE FROM dead_letters WHERE letter_id = ?", (letter_id,)).rowcount)

    def clear(self, email_id: str, redrives: int) -> None:
        """Its mail runs once more."""
        with self._db.write() as conn:
            conn.execute(CLEAR, (email_id, redrives))

    def of_mail(self, start: str, limit: int) -> Sequence[DeadLetter]:
        """The letters of the mails whose id begins so, the newest first."""
        with self._db.read() as conn:
            return [letter_of(row) for row in conn.execute(OF_MAIL, {"start": start, "limit": limit})]


class SqliteInterruptions:
    """What was interrupted, as rows."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def record(self, job: Job, reason: str, now: datetime, new_thread_id: str = "") -> None:
        """Write down a job's last interruption, unless it is written down."""
        fields = {
            "new_thread_id": new_thread_id,
            "email_id": job.email_id,
            "job_id": job.job_id,
            "worker": job.worker or "",
            "times": job.interruptions,
            "reason": reason,
            "now": now.timestamp(),
        }
        with self._db.write() as conn:
            conn.execute(INTERRUPTED, fields)

    def listing(self, limit: int, email_id: str = "") -> Sequence[Interruption]:
        """The newest first, of all mails or of one."""
        with self._db.read() as conn:
            rows = conn.execute(INTERRUPTIONS, {"email_id": email_id, "limit": limit}).fetchall()
        return [
            Interruption(
                row["email_id"], row["job_id"], row["worker"], row["reason"], row["new_thread_id"], at(row["at"])
            )
            for row in rows
        ]

    def forget(self, before: datetime) -> int:
        """Delete what is past its retention."""
        with self._db.write() as conn:
            return conn.execute(FORGET, (before.timestamp(),)).rowcount


def letter_of(row: sqlite3.Row) -> DeadLetter:
    """A row of `dead_letters`."""
    return DeadLetter(
        row["letter_id"], row["email_id"], row["job_id"], row["reason"], at(row["died_at"]), row["redrives"]
    )


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
    """Every run of an agent that cost something."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def spend(self, job: Job, usd: float, now: datetime) -> None:
        """Write down what one run of an agent cost."""
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
        """What a project cost on a day."""
        with self._db.read() as conn:
            return float(conn.execute(ON_DAY, (project_id, day.isoformat())).fetchone()[0])

    def of_job(self, job_id: str) -> float:
        """What a job cost, all its runs together."""
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
