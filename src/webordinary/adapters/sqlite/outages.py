"""Starts that ended because everything did: the machine lost power, or all of it was killed at once."""

from __future__ import annotations

from collections.abc import Callable

from webordinary.adapters.sqlite.database import Database

MAX_OUTAGES = 20
"""A job that takes the whole machine down with it must not do so for ever; after these, its starts count again."""

RUNNING_WORKERS = "SELECT DISTINCT worker FROM jobs WHERE state <> 'settled' AND state = 'running'"

# It stays `running` under its old fence, as any job whose worker died: the next claim starts it again, in its place.
EXCUSE = """
UPDATE jobs SET attempts = attempts - 1, outages = outages + 1
WHERE state <> 'settled' AND state = 'running' AND worker = ? AND attempts > 0 AND outages < ?"""


class SqliteOutages:
    """Gives back the starts that an outage cut off."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def excuse(self, is_dead: Callable[[str], bool]) -> int:
        """Called when the system comes up: a job that a dead worker still runs was not ended by itself.

        Had only its worker died, another one would have taken the job over long ago.
        """
        with self._db.read() as conn:
            workers = [row["worker"] for row in conn.execute(RUNNING_WORKERS)]
        dead = [worker for worker in workers if is_dead(worker)]
        excused = 0
        for worker in dead:
            with self._db.write() as conn:
                excused += conn.execute(EXCUSE, (worker, MAX_OUTAGES)).rowcount
        return excused
