"""How much of everything there is, in SQLite: counts over the indexes that the system finds its work by."""

from __future__ import annotations

import sqlite3

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.overview import UNCLAIMED
from webordinary.adapters.sqlite.overview_rows import unclaimed_of
from webordinary.adapters.sqlite.rows import at_or_none
from webordinary.model.jobs import JobState
from webordinary.model.overview import Levels

CLAIMS_HELD = "SELECT count(*) FROM claims WHERE status = 'held'"

JOBS = """
SELECT state, count(*) AS jobs, min(queued_at) AS oldest FROM jobs WHERE state <> 'settled' GROUP BY state"""

MAILS_IN_FLIGHT = """
SELECT count(*) FROM (
  SELECT email_id FROM raw_mails WHERE started = 0
  UNION SELECT substr(name, 1, 64) FROM executions WHERE look_at IS NOT NULL
  UNION SELECT email_id FROM jobs WHERE state <> 'settled'
  UNION SELECT email_id FROM jobs
    WHERE (state = 'settled' AND called_back = 0 AND task_token IS NOT NULL) OR preempted_token IS NOT NULL
  UNION SELECT email_id FROM outbox WHERE sent_at IS NULL AND given_up = 0)"""

REPLIES_UNSENT = "SELECT count(*) FROM outbox WHERE sent_at IS NULL AND given_up = 0"
REPLIES_GIVEN_UP = "SELECT count(*) FROM outbox WHERE given_up = 1"
DEAD_LETTERS = "SELECT count(*) FROM dead_letters"


class SqliteLevels:
    """Counts what is unfinished; finished work is never walked over."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def look(self, workers_alive: int) -> Levels:
        """The system now; who lives is known by lock files and not by a table."""
        with self._db.read() as conn:
            jobs = {JobState(row["state"]): row for row in conn.execute(JOBS)}
            queued = jobs.get(JobState.QUEUED)
            return Levels(
                unclaimed=unclaimed_of(conn.execute(UNCLAIMED).fetchone()),
                claims_held=_count(conn, CLAIMS_HELD),
                workers_alive=workers_alive,
                jobs={state: jobs[state]["jobs"] if state in jobs else 0 for state in OPEN},
                oldest_queued_at=at_or_none(queued["oldest"]) if queued else None,
                mails_in_flight=_count(conn, MAILS_IN_FLIGHT),
                replies_unsent=_count(conn, REPLIES_UNSENT),
                replies_given_up=_count(conn, REPLIES_GIVEN_UP),
                dead_letters=_count(conn, DEAD_LETTERS),
            )


OPEN = tuple(state for state in JobState if state is not JobState.SETTLED)


def _count(conn: sqlite3.Connection, query: str) -> int:
    counted: int = conn.execute(query).fetchone()[0]
    return counted
