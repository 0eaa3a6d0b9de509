"""The container of a lambda and the duties of the reconciler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from webordinary.adapters.aws import names
from webordinary.adapters.aws.functions import FUNCTIONS, PARSING_STEPS, Function
from webordinary.adapters.aws.names import METRICS, METRICS_SERVICE
from webordinary.adapters.aws.pool.claim_requests import RECONCILER
from webordinary.compose.aws import AwsContainer
from webordinary.compose.steps import answering_of
from webordinary.config import Config
from webordinary.mail.auth import Admitted
from webordinary.mail.outbox import OutboxSender
from webordinary.model.errors import Permanent
from webordinary.model.events import Events
from webordinary.model.jobs import JobState
from webordinary.model.names import ProjectUser
from webordinary.pool.reconciler import WHOLE, Reconciler, Share
from webordinary.services.mail_duties import Acknowledgements, BrokenWorkflows, MissingWorkflows
from webordinary.workflow.start import executions_of

__all__ = ["FUNCTIONS", "METRICS", "METRICS_SERVICE", "PARSING_STEPS", "Function", "names"]
"""For the lambdas' entrypoints, which import no adapters."""
Chore = Callable[[], int]


def container_from_environment(environment: Mapping[str, str], events: Events) -> AwsContainer:
    """The container of a lambda; called once per cold start."""
    return AwsContainer(Config.load(env=environment), process="lambda", events=events)


def take(services: AwsContainer, key: str, received_at: datetime) -> None:
    """Accept a raw mail and start its workflow.

    Killed in between, it leaves a mail without a record or without a workflow: both are among the chores. The first
    step of the workflow notes that it runs.
    """
    for mail in services.accept(key, received_at):
        services.workflows.start(mail.email_id, {"emailId": mail.email_id, "redrive": 0})


def hand_out(services: AwsContainer, event: Mapping[str, str]) -> Mapping[str, str]:
    """The rights to the project of a key, for the worker that holds it and runs a mail of a person of that project.

    A worker writes claims and jobs, but neither mails nor who may change a project, and it starts no workflow:
    whatever it was talked into, it gets rights only to projects whose people wait for an answer. Raises Permanent.
    """
    from webordinary.adapters.aws.site.credentials import become_publisher  # noqa: PLC0415 - the others start without it

    key, worker, mail_deps = ProjectUser.parse(event["key"]), event["worker"], services.mail_deps
    claim = services.pool.claims.look(key)
    if claim is None or not claim.is_held_by(worker, services.clock.now()):
        raise Permanent(f"{worker} does not hold {key}, so it gets no rights to its project")
    for job in services.pool.jobs.open_jobs(key):
        if job.state is not JobState.RUNNING or job.fence != claim.fence:
            continue
        if not any(map(services.executions.is_under_way, executions_of(job.job_id, job.email_id))):
            continue
        envelope, mail, _ = mail_deps.read(job.email_id)
        admitted = isinstance(mail_deps.judge_stored(job.email_id, envelope, mail), Admitted)
        if admitted and any(one.key.project_id == key.project_id for one in mail_deps.entitlements(mail)):
            role = f"arn:aws:iam::{services.config.aws_account}:role/{names.PUBLISHER_ROLE}"
            return become_publisher(services.sts, role, key.project_id, worker)
    who = f"whose sender may change {key.project_id}"
    raise Permanent(f"{key} has no running job of a mail that is not answered and {who}")


@dataclass(frozen=True, slots=True)
class UnrecordedMails:
    """Takes raw mails whose S3 notification was lost."""

    container: AwsContainer
    name: str = "mails"

    def run_once(self, now: datetime) -> int:
        keys = self.container.unnoted()
        for key in keys:
            take(self.container, key, now)
        return len(keys)


HINTS = "hints"
MOST_ACKNOWLEDGED = 500
"""Customers with open jobs that one pass looks at."""


def acknowledgements(container: AwsContainer) -> Acknowledgements:
    """Acknowledges mails that wait longer than `acknowledge_seconds`. A pass continues where the last one ended."""
    jobs, after = container.pool.jobs, timedelta(seconds=container.config.acknowledge_seconds)
    progress = container.reconciler_progress.named("acknowledgements")

    def keys(now: datetime) -> Sequence[ProjectUser]:
        if not after:
            return ()
        begun = progress.after()
        found = jobs.keys_to_look_at(begun, MOST_ACKNOWLEDGED)
        there_is_more = len(found) == MOST_ACKNOWLEDGED
        if begun or there_is_more:
            progress.passed(found[-1] if there_is_more else None, now)
        return found

    return Acknowledgements(keys, jobs, answering_of(container).tell_waiting, after)


def duties_of(container: AwsContainer, share: Share = WHOLE) -> Mapping[str, Chore]:
    """The duties of each minute by the names in the reconciler's result; each returns how much it did."""
    c = container
    if share.number:
        progress = c.reconciler_progress.named(f"{RECONCILER}-{share.number}")
        return {HINTS: partial(_run, Reconciler(c.pool, c.events, progress=progress, share=share).run_once, c)}
    services: dict[str, Callable[[datetime], int]] = {
        HINTS: Reconciler(c.pool, c.events, progress=c.reconciler_progress, share=share).run_once,
        "acknowledgements": acknowledgements(c).run_once,
        "replies": OutboxSender(c.outbox, c.transport, c.events).run_once,
        "workflows": MissingWorkflows(c.workflows, c.raw_mails).run_once,
        "mails": UnrecordedMails(c).run_once,
        "broken": BrokenWorkflows(c.executions, answering_of(c)).run_once,
    }
    return {name: partial(_run, run_once, c) for name, run_once in services.items()}


def _run(run_once: Callable[[datetime], int], container: AwsContainer) -> int:
    return run_once(container.clock.now())
