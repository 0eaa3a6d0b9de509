"""Duties about mails: start workflows that a crash left out, export traces."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from webordinary.mail.ports import RawMails
from webordinary.model.events import EventKind
from webordinary.model.jobs import Job, JobState
from webordinary.model.names import ProjectUser
from webordinary.model.traces import SpanExporter, spans_of
from webordinary.pool.ports import Jobs, Pool
from webordinary.pool.reconciler import deliver_pending_callbacks
from webordinary.workflow.answering import Answering
from webordinary.workflow.start import BrokenExecutions, Workflows, start_missing, started_with

if TYPE_CHECKING:  # a lambda starts without it
    from webordinary.operations.ports import EventLog

LOOK_EACH, LOOK_BACK = timedelta(minutes=5), timedelta(days=14)
MOST_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class MissingWorkflows:
    """Starts the workflows of accepted mails that have none."""

    workflows: Workflows
    raw_mails: RawMails
    name: str = "workflows"

    def run_once(self, now: datetime) -> int:
        return start_missing(self.workflows, self.raw_mails)


@dataclass(slots=True)
class BrokenWorkflows:
    """Answers mails whose execution ended badly and whose event was lost, at most each five minutes.

    A job of an execution that the engine itself lost goes on; its result is the answer.
    """

    executions: BrokenExecutions
    answering: Answering
    name: str = "broken"
    _look_at: datetime | None = None
    _answered: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def run_once(self, now: datetime) -> int:
        if self._look_at and now < self._look_at:
            return 0
        found = [name for name in self.executions.ended_badly(now - LOOK_BACK) if name not in self._answered]
        open_ones = [name for name in found if not self._answer(name)]
        self._look_at = now if open_ones else now + LOOK_EACH
        return len(found) - len(open_ones)

    def _answer(self, name: str) -> bool:
        """False where the job of this execution has not ended yet."""
        payload = started_with(name)
        if self.answering.owes_answer(payload):
            ended = self.executions.describe(name)
            if ended.lost_by_engine and self.answering.awaits_job(payload):
                return False
            self.answering.abandon(payload, ended)
        self._answered[name] = None
        if len(self._answered) > MOST_REMEMBERED:
            self._answered.popitem(last=False)
        return True


@dataclass(frozen=True, slots=True)
class CallbackDelivery:
    """Delivers pending callbacks of settled jobs, also while no worker runs."""

    pool: Pool
    name: str = "callbacks"

    def run_once(self, now: datetime) -> int:
        return deliver_pending_callbacks(self.pool)


@dataclass(frozen=True, slots=True)
class Acknowledgements:
    """Tells a customer, once, that a mail waits in line for longer than `after`."""

    keys: Callable[[datetime], Iterable[ProjectUser]]
    """Those with open jobs."""
    jobs: Jobs
    tell: Callable[[Job, int], None]
    after: timedelta
    name: str = "acknowledgements"

    def run_once(self, now: datetime) -> int:
        late = [one for key in self.keys(now) for one in self._late(key, now)]
        for job, place in late:
            self.tell(job, place)
        return len(late)

    def _late(self, key: ProjectUser, now: datetime) -> list[tuple[Job, int]]:
        """Jobs that never started, with their place among the open jobs of their customer."""
        placed = ((job, place) for place, job in enumerate(self.jobs.open_jobs(key), 1))
        return [(job, place) for job, place in placed if self._is_late(job, now)]

    def _is_late(self, job: Job, now: datetime) -> bool:
        untouched = job.state is JobState.QUEUED and not (job.attempts or job.interruptions or job.held)
        return untouched and now - job.recorded_at > self.after


TRACED_AT_ONCE, MOST_EVENTS_TRACED = 500, 1000


@dataclass(slots=True)
class TraceExporter:
    """Exports the mails that were answered since it was started; a collector that is down gets them later."""

    log: EventLog
    exporter: SpanExporter
    name: str = "traces"
    _seq: int | None = field(default=None, init=False)

    def run_once(self, now: datetime) -> int:
        if self._seq is None:
            self._seq = self.log.start_of_last(0)
        exported = 0
        while events := self.log.after(self._seq, TRACED_AT_ONCE):
            answered = dict.fromkeys(
                one.event.email_id for one in events if one.event.kind == EventKind.REPLY_SENT and one.event.email_id
            )
            for email_id in answered:
                self.exporter.export(list(spans_of(self.log.after(0, MOST_EVENTS_TRACED, email_id=email_id))))
            self._seq, exported = events[-1].seq, exported + len(answered)
        return exported
