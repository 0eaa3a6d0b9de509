"""What a Task's Resource means: which handler is called, with what, and what comes back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from webordinary.asl.errors import DATA_LIMIT_EXCEEDED, Failure
from webordinary.asl.json_types import JSON, dump, too_large

Handler = Callable[[JSON], JSON]
Handlers = Mapping[str, Handler]

_SERVICE = re.compile(r"arn:[^:]+:states:[^:]*:[^:]*:(?!activity:)(.+)")
_ACTIVITY = re.compile(r"arn:[^:]+:states:[^:]*:[^:]*:activity:.+")
_PATTERN = re.compile(r"\.(waitForTaskToken|sync(?::2)?)$")
LAMBDA_INVOKE = "lambda:invoke"


@dataclass(frozen=True, slots=True)
class Resource:
    """A compiled Resource. `kind` starts the names of its history events."""

    kind: str
    name: str  # the handler's key, without the integration pattern
    service: str  # "lambda:invoke", "sqs:sendMessage"; empty for a function named directly
    waits_for_token: bool
    waits_for_end: bool

    def call(self, handlers: Handlers, parameters: JSON) -> JSON:
        """Call the handler and shape its answer; raises Failure for whatever it raised."""
        if self.service == LAMBDA_INVOKE and self.name not in handlers:
            return self._invoke_function(handlers, parameters)
        return _guarded(handlers, self.name, parameters)

    def _invoke_function(self, handlers: Handlers, parameters: JSON) -> JSON:
        given = parameters if isinstance(parameters, dict) else {}
        payload = _guarded(handlers, str(given.get("FunctionName")), given.get("Payload", {}))
        return {"ExecutedVersion": "$LATEST", "Payload": payload, "StatusCode": 200}


def parse_resource(text: str) -> Resource:
    """Read a Resource: an ASL service ARN, an activity, or else the name of a function."""
    if _ACTIVITY.fullmatch(text):
        return Resource("Activity", text, "", waits_for_token=False, waits_for_end=False)
    match = _SERVICE.fullmatch(text)
    if match is None:
        return Resource("LambdaFunction", text, "", waits_for_token=False, waits_for_end=False)
    pattern = _PATTERN.search(text)
    suffix = pattern[1] if pattern else ""
    name = _PATTERN.sub("", text)
    return Resource("Task", name, _PATTERN.sub("", match[1]), suffix == "waitForTaskToken", suffix.startswith("sync"))


def _guarded(handlers: Handlers, name: str, parameters: JSON) -> JSON:
    handler = handlers.get(name)
    if handler is None:
        raise Failure("Lambda.ResourceNotFoundException", f"Function not found: {name}")
    try:
        result = handler(parameters)
    except Failure:
        raise
    except Exception as problem:  # the boundary where Python's errors become the language's
        raise Failure(type(problem).__name__, error_document(problem)) from problem
    return _as_json(name, result)


def error_document(problem: Exception) -> str:
    """The cause as AWS Lambda words it, so that a Catch reads the same on both engines."""
    return dump({"errorMessage": str(problem), "errorType": type(problem).__name__})


def _as_json(name: str, result: JSON) -> JSON:
    """The engine's own copy of a result, proven to be JSON and of bearable size."""
    try:
        text = dump(result)
    except (TypeError, ValueError, RecursionError) as problem:
        raise Failure("Runtime.MarshalError", f"{name} returned what JSON cannot say: {problem}") from problem
    if too_large(text):
        raise Failure(DATA_LIMIT_EXCEEDED, f"{name} returned more than the maximum number of bytes service limit.")
    copy: JSON = json.loads(text)
    return copy
