"""The workflow engine of one machine, and how its replies leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webordinary.asl.engine import Engine
from webordinary.asl.errors import NotReady
from webordinary.asl.ports import Execution
from webordinary.compose.embedded import EmbeddedContainer
from webordinary.compose.steps import answering_of, steps_of
from webordinary.model.backoff import Backoff
from webordinary.model.errors import is_machine_fault
from webordinary.workflow.answering import Uptime
from webordinary.workflow.definition import embedded
from webordinary.workflow.start import BrokenExecution
from webordinary.workflow.steps import REPEATABLE, Step

MACHINE_PATIENCE_SECONDS = 86_400.0
_MOST_FAILING = 10_000
RETRIES = Backoff(1.0, cap=300.0)
"""The delays before an execution that could not be advanced is tried again."""


class MachinePatience:
    """Lets the engine call a step again, for a day, that failed by a fault of the machine: its Retry is for others."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._failing_since: dict[str, float] = {}

    def applied_to(self, name: str, step: Step) -> Step:
        """The same step, which raises NotReady instead."""

        def patient(payload: Any) -> dict[str, Any]:  # noqa: ANN401 - as Step has it
            call = f"{name} {payload.get('emailId', '') if isinstance(payload, dict) else ''}"
            try:
                result = step(payload)
            except Exception as problem:
                if is_machine_fault(problem) and self._is_early(call):
                    raise NotReady(f"{call}: {problem}") from problem
                raise
            self._failing_since.pop(call, None)
            return result

        return patient

    def _is_early(self, call: str) -> bool:
        now = self._monotonic()
        while len(self._failing_since) > _MOST_FAILING:
            self._failing_since.pop(next(iter(self._failing_since)), None)
        return now - self._failing_since.setdefault(call, now) < MACHINE_PATIENCE_SECONDS


def engine(services: EmbeddedContainer, wake_outbox: Callable[[], None] = lambda: None) -> Engine:
    """The workflow engine on the one workflow file; one process of a data folder runs it."""
    answering = answering_of(services, wake_outbox, Uptime(services.clock.now, services.clock.monotonic))
    patience = MachinePatience(services.clock.monotonic)
    handlers = {name: patience.applied_to(name, step) for name, step in steps_of(services, answering).items()}

    def abandon(execution: Execution) -> None:
        started_with = execution.input if isinstance(execution.input, dict) else {"emailId": execution.name}
        ended = BrokenExecution(execution.name, execution.status, execution.error or "", execution.cause or "")
        answering.abandon(started_with, ended)

    return Engine(
        services.executions,
        embedded(),
        handlers,
        clock=services.clock,
        repeatable=REPEATABLE,
        on_finished=abandon,
    )
