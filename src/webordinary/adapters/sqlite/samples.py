"""The samples of the pool in SQLite: a month of rows at most."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from webordinary.adapters.sqlite.database import Database
from webordinary.pool.history import KEPT, SAMPLE_SECONDS, Sample

PUT = """
INSERT INTO samples (at, waiting, record) VALUES (:at, :waiting, :record)
ON CONFLICT (at) DO UPDATE SET record = excluded.record, waiting = max(waiting, excluded.waiting)"""
FORGET = "DELETE FROM samples WHERE at < ?"
SINCE = """
SELECT s.at, s.record, g.waiting,
       (SELECT coalesce(sum(usd), 0) FROM costs c WHERE c.at >= g.begin AND c.at < g.begin + :seconds) AS usd
FROM (SELECT max(at) AS last, max(waiting) AS waiting, at / :seconds * :seconds AS begin
      FROM samples WHERE at >= :since GROUP BY begin) g JOIN samples s ON s.at = g.last
ORDER BY s.at LIMIT :limit"""
MOST = int(KEPT.total_seconds()) // SAMPLE_SECONDS + 1


class SqliteSamples:
    """See Samples."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def put(self, sample: Sample) -> None:
        with self._db.write() as conn:
            conn.execute(PUT, {"at": sample.at, "waiting": sample.waiting, "record": sample.to_json()})
            conn.execute(FORGET, (sample.at - KEPT.total_seconds(),))

    def since(self, at: datetime, seconds: int) -> Sequence[Sample]:
        values = {"since": at.timestamp(), "seconds": seconds, "limit": MOST}
        with self._db.read() as conn:
            rows = conn.execute(SINCE, values)
            return [Sample.read(row["at"], row["waiting"], row["record"], row["usd"]) for row in rows]
