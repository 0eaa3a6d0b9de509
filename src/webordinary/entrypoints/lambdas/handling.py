"""What every handler does around its one call: tell, count, and let an error keep its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from webordinary.entrypoints.lambdas.telling import Telling
from webordinary.model.errors import Transient


class Context(Protocol):
    """As much of Lambda's context as we read."""

    @property
    def aws_request_id(self) -> str:
        """The name of this invocation."""


Call = Callable[[Any], Any]
Handler = Callable[[Any, Context], Any]


def handled(call: Call, telling: Telling) -> Handler:
    """A handler that calls this. Its errors go out as they are: the workflow retries and catches them by class name."""

    def handler(event: Any, context: Context) -> Any:  # noqa: ANN401 - JSON
        log = telling.log
        log.append_keys(request_id=context.aws_request_id)
        try:
            return call(event)
        except Transient as problem:
            log.warning(f"will be tried again: {problem}", extra={"error": type(problem).__name__})
            raise
        except Exception as problem:
            log.exception(str(problem), extra={"error": type(problem).__name__})
            raise
        finally:
            telling.flush()

    return handler
