"""Who may publish which project, in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from webordinary.model.claims import CancelToken, ProjectLease, next_fence
from webordinary.model.errors import ClaimLost


@dataclass
class _Row:
    lease: ProjectLease
    job_id: str
    job_fence: int
    held: bool
    confirmed: bool = False


@dataclass
class MemoryProjectLeases:
    """`runs(job_id, fence)` tells whether that job still runs under that fence, `is_dead` about processes."""

    runs: Callable[[str, int], bool]
    is_dead: Callable[[str], bool]
    _rows: dict[str, _Row] = field(default_factory=dict)

    def take(self, project_id: str, token: CancelToken, now: datetime) -> ProjectLease | None:
        """Take the right to publish under a new, higher fence; None while another running job has it."""
        row = self._rows.get(project_id)
        mine = row and row.job_id and (row.job_id, row.job_fence) == (token.job_id, token.fence)
        return None if row and row.held and self._goes_on(row) and not mine else self._give(project_id, token, now)

    def overtake(self, project_id: str, token: CancelToken, now: datetime) -> ProjectLease | None:
        """Take it from a job that has not confirmed yet, too."""
        row = self._rows.get(project_id)
        return self._give(project_id, token, now) if row and not row.confirmed else self.take(project_id, token, now)

    def _give(self, project_id: str, token: CancelToken, now: datetime) -> ProjectLease:
        row = self._rows.get(project_id)
        lease = ProjectLease(project_id, token.worker, next_fence(row.lease.fence if row else 0, now))
        self._rows[project_id] = _Row(lease, token.job_id, token.fence, held=True)
        return lease

    def _goes_on(self, row: _Row) -> bool:
        """A row without a job is an operator's, over as soon as that process is dead."""
        runs = not row.job_id or self.runs(row.job_id, row.job_fence)
        return runs and not self.is_dead(row.lease.worker)

    def confirm(self, lease: ProjectLease) -> None:
        """Let nobody overtake any more; raises ClaimLost when a newer lease exists."""
        row = self._rows.get(lease.project_id)
        if not row or not row.held or row.lease.fence != lease.fence:
            raise ClaimLost(lease.project_id, lease.worker, lease.fence)
        row.confirmed = True

    def release(self, lease: ProjectLease) -> None:
        """Give it back; nothing happens if a newer lease exists."""
        row = self._rows.get(lease.project_id)
        if row and row.lease.fence == lease.fence:
            row.held = False
