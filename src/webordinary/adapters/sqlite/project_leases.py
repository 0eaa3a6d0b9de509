"""Who may publish which project, in SQLite. A lease is over as soon as its job does not run any more."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from webordinary.adapters.sqlite.database import Database
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import ClaimLost
from webordinary.model.hold import Hold

HOLDER = "SELECT worker FROM project_leases WHERE project_id = ? AND status <> 'free'"

TAKE = """
INSERT INTO project_leases (project_id, fence, worker, job_id, job_fence, status)
VALUES (:project_id, :epoch_seconds, :worker, :job_id, :job_fence, 'held')
ON CONFLICT (project_id) DO UPDATE
SET fence = max(fence + 1, :epoch_seconds), worker = :worker, job_id = :job_id, job_fence = :job_fence, status = 'held'
WHERE status = 'free' OR (status = 'held' AND :overtaking) OR worker = :dead_worker
  OR (project_leases.job_id <> '' AND NOT EXISTS (
  SELECT 1 FROM jobs
  WHERE jobs.job_id = project_leases.job_id AND state = 'running' AND jobs.fence = project_leases.job_fence))
  OR (project_leases.job_id <> '' AND project_leases.job_id = :job_id AND project_leases.job_fence = :job_fence)
RETURNING fence"""
# A job that is tried again under the same claim does not wait for its own lease, which it could not give back.
# Without a job it is an operator's, over as soon as that process is dead.

# A lease is held, then showing: an operator does not overtake it any more; or it is free.
CONFIRM = "UPDATE project_leases SET status = 'showing' WHERE project_id = ? AND fence = ? AND status <> 'free'"
RELEASE = "UPDATE project_leases SET status = 'free' WHERE project_id = ? AND fence = ?"


class SqliteProjectLeases:
    """One row a project. `is_dead` tells whether a worker's process has certainly ended."""

    def __init__(self, db: Database, is_dead: Callable[[str], bool]) -> None:
        self._db, self._is_dead = db, is_dead

    def take(self, project_id: str, hold: Hold, now: datetime) -> ProjectLease | None:
        """Take the right to publish under a new, higher fence; None while another running job has it."""
        return self._take(project_id, hold, now, overtaking=False)

    def overtake(self, project_id: str, hold: Hold, now: datetime) -> ProjectLease | None:
        """Take it from a job that has not confirmed yet, too."""
        return self._take(project_id, hold, now, overtaking=True)

    def _take(self, project_id: str, hold: Hold, now: datetime, *, overtaking: bool) -> ProjectLease | None:
        with self._db.write() as conn:
            holder = conn.execute(HOLDER, (project_id,)).fetchone()
            fields = {
                "project_id": project_id,
                "epoch_seconds": int(now.timestamp()),
                "worker": hold.worker,
                "job_id": hold.job_id,
                "job_fence": hold.fence,
                "overtaking": overtaking,
                "dead_worker": holder["worker"] if holder and self._is_dead(holder["worker"]) else None,
            }
            taken = conn.execute(TAKE, fields).fetchone()
            return ProjectLease(project_id, hold.worker, taken["fence"]) if taken else None

    def confirm(self, lease: ProjectLease) -> None:
        """Let nobody overtake any more; raises ClaimLost when a newer lease exists."""
        with self._db.write() as conn:
            if not conn.execute(CONFIRM, (lease.project_id, lease.fence)).rowcount:
                raise ClaimLost(lease.project_id, lease.worker, lease.fence)

    def release(self, lease: ProjectLease) -> None:
        """Give it back; nothing happens if a newer lease exists."""
        with self._db.write() as conn:
            conn.execute(RELEASE, (lease.project_id, lease.fence))
