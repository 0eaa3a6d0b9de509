"""The pool's rows in a database in memory, as a test or a rule reads them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.rows import JOBS, at, claim_of, job_of, save_changes
from webordinary.model.claims import Claim, ClaimRequest
from webordinary.model.jobs import Job
from webordinary.model.names import ProjectUser


class PoolRecords:
    """Jobs, claims and hints. They are read again only after a change, and a row that stands keeps its object."""

    def __init__(self) -> None:
        self.db = MemoryDatabase()
        self._read_at = -1
        self._jobs: dict[str, Job] = {}
        self._claims: dict[ProjectUser, Claim] = {}
        self._rows: dict[str, tuple[Any, ...]] = {}

    @property
    def jobs(self) -> dict[str, Job]:
        """Every job, by its id."""
        self._read()
        return self._jobs

    @property
    def claims(self) -> dict[ProjectUser, Claim]:
        """Every claim, free ones too."""
        self._read()
        return self._claims

    def hints(self) -> list[tuple[ClaimRequest, datetime]]:
        """Every hint with when it was sent, the longest waiting first."""
        rows = self.db.conn.execute("SELECT * FROM hints ORDER BY waiting_since")
        return [
            (
                ClaimRequest(ProjectUser.parse(row["key"]), at(row["waiting_since"]), row["preferred"]),
                at(row["sent_at"]),
            )
            for row in rows
        ]

    def interruptions(self) -> set[tuple[str, int]]:
        """Job and number of every interruption on record."""
        return {(row["job_id"], row["times"]) for row in self.db.conn.execute("SELECT * FROM interruptions")}

    def put(self, job: Job) -> None:
        """Overwrite the record of a job, as no adapter would."""
        before = self.jobs[job.job_id]
        with self.db.write() as conn:
            save_changes(conn, before, job)

    def _read(self) -> None:
        if self._read_at == self.db.conn.total_changes:
            return
        rows = {row["job_id"]: tuple(row) for row in self.db.conn.execute(f"{JOBS} ORDER BY id")}
        stands = {job_id for job_id, row in rows.items() if self._rows.get(job_id) == row}
        self._jobs = {name: self._jobs[name] if name in stands else job_of(row) for name, row in rows.items()}
        self._rows = rows
        claims = [claim_of(row) for row in self.db.conn.execute("SELECT * FROM claims ORDER BY key")]
        known = self._claims
        self._claims = {one.key: known[one.key] if known.get(one.key) == one else one for one in claims}
        self._read_at = self.db.conn.total_changes
