"""A durable interpreter of Amazon States Language. It imports nothing else of ours."""

from webordinary.asl.callbacks import (
    send_task_failure,
    send_task_heartbeat,
    send_task_success,
    stop_execution,
)
from webordinary.asl.definition import Definition
from webordinary.asl.engine import Engine, SystemClock
from webordinary.asl.errors import AslError, Failure, HistoryMoved, InvalidDefinition, UnknownExecution
from webordinary.asl.ports import (
    Clock,
    Execution,
    ExecutionArchive,
    ExecutionStore,
    Outcome,
    Status,
    TaskTokens,
)
from webordinary.asl.runner import EngineRunner, Waker

__all__ = [
    "AslError",
    "Clock",
    "Definition",
    "Engine",
    "EngineRunner",
    "Execution",
    "ExecutionArchive",
    "ExecutionStore",
    "Failure",
    "HistoryMoved",
    "InvalidDefinition",
    "Outcome",
    "Status",
    "SystemClock",
    "TaskTokens",
    "UnknownExecution",
    "Waker",
    "send_task_failure",
    "send_task_heartbeat",
    "send_task_success",
    "stop_execution",
]
