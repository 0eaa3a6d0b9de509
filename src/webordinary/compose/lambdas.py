"""The container of a lambda and the duties of the reconciler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from webordinary.adapters.aws import names
from webordinary.adapters.aws.functions import FUNCTIONS, PARSING_STEPS, Function
from webordinary.adapters.aws.names import METRICS, METRICS_SERVICE
from webordinary.compose.aws import AwsContainer
from webordinary.compose.steps import answering_of
from webordinary.config import Config
from webordinary.model.events import Events
from webordinary.pool.reconciler import Reconciler
from webordinary.services.mail_duties import BrokenWorkflows, MissingWorkflows, OutboxSender

__all__ = ["FUNCTIONS", "METRICS", "METRICS_SERVICE", "PARSING_STEPS", "Function", "names"]
"""For the lambdas' entrypoints, which import no adapters."""
Chore = Callable[[], int]


def container_from_environment(environment: Mapping[str, str], events: Events) -> AwsContainer:
    """The container of a lambda; called once per cold start."""
    return AwsContainer(Config.load(env=environment), process="lambda", events=events)


def take(services: AwsContainer, key: str, received_at: datetime) -> None:
    """Accept a raw mail and start its workflow.

    Killed in between, it leaves a mail that nobody noted or that has no workflow: both are among the chores. The first
    step of the workflow notes that it runs.
    """
    for mail in services.accept(key, received_at):
        services.workflows.start(mail.email_id, {"emailId": mail.email_id, "redrive": 0})


@dataclass(frozen=True, slots=True)
class UnnotedMails:
    """Takes raw mails whose S3 notification was lost."""

    container: AwsContainer
    name: str = "mails"

    def run_once(self, now: datetime) -> int:
        keys = self.container.unnoted()
        for key in keys:
            take(self.container, key, now)
        return len(keys)


def duties_of(container: AwsContainer) -> Mapping[str, Chore]:
    """The duties of each minute by the names in the reconciler's result; each returns how much it did."""
    c = container
    services: dict[str, Callable[[datetime], int]] = {
        "hints": Reconciler(c.pool, c.events, progress=c.reconciler_progress).run_once,
        "replies": OutboxSender(c.outbox, c.transport, c.events).run_once,
        "workflows": MissingWorkflows(c.workflows, c.raw_mails).run_once,
        "mails": UnnotedMails(c).run_once,
        "broken": BrokenWorkflows(c.executions, answering_of(c)).run_once,
    }
    return {name: partial(_run, run_once, c) for name, run_once in services.items()}


def _run(run_once: Callable[[datetime], int], container: AwsContainer) -> int:
    return run_once(container.clock.now())
