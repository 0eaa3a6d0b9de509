"""Reasons to end a running job early: its time, another thread's mail, a stop, a workflow nobody awaits."""

from __future__ import annotations

from webordinary.model.errors import Cancelled, Interrupted, JobTimedOut
from webordinary.pool.rules import interrupting_job
from webordinary.worker.hold import RunningHold
from webordinary.worker.holdings import Holdings
from webordinary.worker.surroundings import Surroundings


class Limits:
    """Looks at the running jobs and ends those that must end."""

    def __init__(self, around: Surroundings, holdings: Holdings) -> None:
        self._around, self._holdings = around, holdings
        self._heartbeat_at = around.clock.monotonic() + around.settings.heartbeat
        self._awaited: dict[str, str] = {}
        """The tokens of running jobs that somebody waited for at the last heartbeat."""
        self._lost: dict[str, str] = {}

    def next_look(self) -> float | None:
        """When, on the monotonic clock, a running job may be due to end."""
        running = self._holdings.running()
        # A job that was told to end takes its grace; looking at it again and again makes it no faster.
        deadlines = (hold.deadline for hold in running if hold.reason is None)
        return min([self._heartbeat_at, *deadlines]) if running else None

    def enforce(self) -> None:
        """End what is overdue, unwanted, or in the way of another thread."""
        now = self._around.clock.monotonic()
        for hold in self._holdings.running():
            if now >= hold.deadline:
                hold.end(JobTimedOut(f"ran longer than {self._around.settings.job_limit:.0f} seconds"))
        for hold, heard in self._holdings.busy_with_news():
            self._look_at_queue(hold)
            if heard:
                self._around.pool.interrupts.take(hold.started.claim.key)  # it made us look, and is used up
        if now >= self._heartbeat_at:
            self._heartbeat_at = now + self._around.settings.heartbeat
            running = {hold.job_id: hold for hold in self._holdings.running()}
            self._lost = {job_id: token for job_id, token in self._lost.items() if job_id in running}
            self._awaited = {job_id: token for job_id, token in self._awaited.items() if job_id in running}
            for hold in running.values():
                self._ask_whether_wanted(hold)

    def _look_at_queue(self, hold: RunningHold) -> None:
        """Level-triggered: the records decide, whatever made us look."""
        running = hold.started.job
        open_jobs = self._around.pool.jobs.open_jobs(running.key)
        current = next((job for job in open_jobs if job.job_id == running.job_id), None)
        if current is None:  # behind a thousand others
            current = self._around.pool.jobs.get(running.job_id)
        if current and current.cancel_requested:
            hold.end(Cancelled("stopped by the customer or the operator"))
        elif newcomer := interrupting_job(running, open_jobs, self._around.clock.now()):
            hold.end(Interrupted(f"a mail of thread {newcomer.thread_id} came in"))

    def _ask_whether_wanted(self, hold: RunningHold) -> None:
        """Two heartbeats in a row must find the same token lost: a workflow may be about to bind the next one.

        A token that somebody waits for is the current one; only without such a token the record is asked for it.
        """
        heartbeat, awaited = self._around.pool.callbacks.heartbeat, self._awaited.pop(hold.job_id, None)
        if awaited and heartbeat(awaited):
            self._awaited[hold.job_id] = awaited
            return
        job = self._around.pool.jobs.get(hold.job_id)
        token = job.task_token if job else None
        lost_before = self._lost.pop(hold.job_id, None)
        if not token:
            return
        if token != awaited and heartbeat(token):
            self._awaited[hold.job_id] = token
        elif lost_before == token:
            hold.end(Cancelled("its workflow was stopped"))
        else:
            self._lost[hold.job_id] = token
