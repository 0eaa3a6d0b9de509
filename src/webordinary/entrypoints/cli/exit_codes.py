"""Exit codes, and the one exception a command ends with. docs/operations.md lists the codes."""

from __future__ import annotations

from enum import IntEnum

from webordinary.model.errors import WebOrdinaryError


class Exit(IntEnum):
    """What a script may rely on."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_RUNNING = 3
    IN_USE = 4
    KILLED = 130


class CommandFailed(WebOrdinaryError):
    """What went wrong and what to do about it."""

    def __init__(self, what: str, todo: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(f"{what}; {todo}")
        self.what, self.todo, self.code = what, todo, code
