"""The table of the lambdas: name, settings and trigger of each. Infrastructure and emulators read it.

Memory was measured: every function stands at 63 MB when it is ready. With the largest mail, of 40 MB, the intake
reaches 140 MB, and so do the steps that parse, whose child process takes 130 MB beside them. A photo takes up to 300 MB
more. A reply carries pictures.
"""

from __future__ import annotations

from dataclasses import dataclass

from webordinary.adapters.aws import names
from webordinary.workflow.definition import STEPS

MODULE = "webordinary.entrypoints.lambdas.functions"
PYTHON = (3, 13)
RUNTIME, ARCHITECTURE = f"python{PYTHON[0]}.{PYTHON[1]}", "arm64"

SMALL_MB, MAIL_MB, PARSING_MB, PHOTO_MB = 128, 256, 512, 1024
_STEP_SECONDS = 30  # twice a slow answer of DynamoDB with its retries; the workflow tries again after it
_MAIL_SECONDS = 60
_SWEEP_SECONDS = 120
_PHOTO_SECONDS = 150  # 20 photos at their limit of 3 processor seconds, with the half processor that 1,024 MB bring

PARSING_STEPS = ("ParseEmail", "StoreAttachment")
"""They parse in a child process, started while the function starts; its limits are those of one machine."""
_MEMORY = {"ParseEmail": PARSING_MB, "StoreAttachment": PHOTO_MB, "Reply": MAIL_MB}
_SECONDS = {SMALL_MB: _STEP_SECONDS, PHOTO_MB: _PHOTO_SECONDS}


@dataclass(frozen=True, slots=True)
class Function:
    """One lambda."""

    name: str
    steps: tuple[str, ...] = ()
    """The workflow steps that it does; with several, the input names one. Empty: called by events."""
    memory_mb: int = SMALL_MB
    timeout_seconds: int = _STEP_SECONDS
    retries: int = 0
    """How often Lambda itself tries an event again; the workflow retries its steps on its own."""

    @property
    def handler(self) -> str:
        """The path of the handler for Lambda."""
        return f"{MODULE}.{self.name.removeprefix(names.PREFIX + '-').replace('-', '_')}"


def _of_steps(*steps: str) -> Function:
    memory = _MEMORY.get(steps[0], SMALL_MB)
    return Function(names.function_of(steps[0]), steps, memory, _SECONDS.get(memory, _MAIL_SECONDS))


INTAKE = Function(names.INTAKE, memory_mb=MAIL_MB, timeout_seconds=_MAIL_SECONDS, retries=2)
RECONCILE = Function(names.RECONCILE, memory_mb=MAIL_MB, timeout_seconds=_SWEEP_SECONDS)
"""Two may run at once, as workers reconcile too: each chore is taken by a conditional write, or harmless twice.

So no concurrency is reserved to make it one at a time; an account with Lambda's quota of 10 could not deploy that.
"""
ABANDONED = Function(names.ABANDONED, memory_mb=MAIL_MB, timeout_seconds=_MAIL_SECONDS, retries=2)
BOUNCES = Function(names.BOUNCES, retries=2)
BROKER = Function(names.BROKER, memory_mb=MAIL_MB)

STEP_FUNCTIONS = (
    *(_of_steps(step) for step in STEPS if step not in names.POOL_STEPS),
    _of_steps(*names.POOL_STEPS),
)
FUNCTIONS = (INTAKE, *STEP_FUNCTIONS, RECONCILE, ABANDONED, BOUNCES, BROKER)
