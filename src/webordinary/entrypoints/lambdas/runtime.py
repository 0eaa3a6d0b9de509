"""Lambda's runtime API, spoken by ourselves: for emulators, which have no Python of Lambda's own.

On AWS its own runtime does this. Errors go out as it words them, so that a workflow reads the same names.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from importlib import import_module
from typing import Any

_API = "/2018-06-01/runtime"
Handler = Callable[[Any, "InvocationContext"], Any]


@dataclass(frozen=True, slots=True)
class InvocationContext:
    """What a handler may know about its invocation."""

    aws_request_id: str
    invoked_function_arn: str
    deadline_ms: int

    @property
    def function_name(self) -> str:
        """As it was deployed."""
        return os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")

    @property
    def memory_limit_in_mb(self) -> int:
        """As it was deployed."""
        return int(os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"))

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda's timeout."""
        return max(0, self.deadline_ms - int(time.time() * 1000))


def main() -> None:
    """Serve one function until the emulator goes away."""
    api = HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
    try:
        handler = _find(os.environ["_HANDLER"])
    except Exception as problem:
        traceback.print_exc()
        _post(api, f"{_API}/init/error", _worded(problem))
        sys.exit(1)
    try:
        while serve(api, handler):
            pass
    except (OSError, HTTPException):
        return  # who asked is gone


def serve(api: HTTPConnection, handler: Handler) -> bool:
    """Wait for one invocation and answer it; False once there will be no more."""
    api.request("GET", f"{_API}/invocation/next")
    asked = api.getresponse()
    event = asked.read()
    if asked.status != 200:
        return False
    context = _context(asked)
    where = f"{_API}/invocation/{context.aws_request_id}"
    try:
        answer = json.dumps(handler(json.loads(event), context))
    except Exception as problem:
        traceback.print_exc()
        _post(api, f"{where}/error", _worded(problem))
    else:
        _post(api, f"{where}/response", answer)
    sys.stdout.flush()
    return True


def _find(name: str) -> Handler:
    module, _, function = name.rpartition(".")
    handler: Handler = getattr(import_module(module), function)
    return handler


def _context(asked: HTTPResponse) -> InvocationContext:
    return InvocationContext(
        asked.headers["Lambda-Runtime-Aws-Request-Id"],
        asked.headers.get("Lambda-Runtime-Invoked-Function-Arn", ""),
        int(asked.headers.get("Lambda-Runtime-Deadline-Ms", "0")),
    )


def _worded(problem: Exception) -> str:
    return json.dumps({"errorMessage": str(problem), "errorType": type(problem).__name__})


def _post(api: HTTPConnection, path: str, body: str) -> None:
    api.request("POST", path, body.encode(), {"Content-Type": "application/json"})
    api.getresponse().read()
