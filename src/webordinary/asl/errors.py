"""What can go wrong: with a definition, with a stored history, and inside a running state."""

from __future__ import annotations

RUNTIME = "States.Runtime"
DATA_LIMIT_EXCEEDED = "States.DataLimitExceeded"
TIMEOUT = "States.Timeout"
HEARTBEAT_TIMEOUT = "States.HeartbeatTimeout"
TASK_FAILED = "States.TaskFailed"
ALL = "States.ALL"


class AslError(Exception):
    """Anything this interpreter raises on purpose."""


class InvalidDefinition(AslError):
    """A definition that cannot run here: it names the state and the field to change."""

    def __init__(self, where: str, field: str, reason: str) -> None:
        super().__init__(f"{where or 'state machine'}: {field}: {reason}")
        self.where, self.field, self.reason = where, field, reason


class UnknownExecution(AslError):
    """No execution of this name is stored; it was never started, or pruned."""


class HistoryMoved(AslError):
    """Another writer appended first: drop what you decided, load again, decide again."""


class HistoryFull(AslError):
    """The execution reached the number of events that AWS allows."""


class NotReady(AslError):
    """A handler cannot work now. No Retry or Catch sees it: the engine calls the handler again later."""


class Failure(AslError):
    """An ASL error on its way to Retry and Catch. A handler may raise it to choose its error name.

    A `located` failure is the interpreter's own: its cause will tell the state it happened in. A `fatal` one
    passes by every Retry and Catch, States.ALL included.
    """

    def __init__(
        self, error: str | None, cause: str | None = None, *, located: bool = False, fatal: bool = False
    ) -> None:
        super().__init__(f"{error}: {cause}")
        self.error, self.cause, self.located = error, cause, located
        self.fatal = fatal or error == RUNTIME

    def located_at(self, state: str, number: int) -> Failure:
        """The same failure with the state in its cause."""
        if not self.located:
            return self
        place = f"An error occurred while executing the state '{state}' (entered at the event id #{number})."
        return Failure(self.error, f"{place} {self.cause}", fatal=self.fatal)


def runtime(cause: str) -> Failure:
    """A failure of the machine itself, which neither Retry nor Catch may hide."""
    return Failure(RUNTIME, cause, located=True, fatal=True)


def result_too_large(state: str) -> Failure:
    """A payload beyond 256 KiB; fatal, since what would carry the error on is too large as well."""
    limit = "a size exceeding the maximum number of bytes service limit"
    return Failure(DATA_LIMIT_EXCEEDED, f"The state/task '{state}' returned a result with {limit}.", fatal=True)
