"""Counting what is asked of AWS: by boto3's own events, by a proxy's tally, and from the history of executions."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from webordinary.operations.capacity.costs import Usage, UsageProfile

if TYPE_CHECKING:
    from tests.aws.proxied_calls import ProxiedCall

_NOTE = "webordinary-usage"
_ALIASES = {"states": "stepfunctions", "ses": "sesv2"}
FUNCTION_MB, FUNCTION_SECONDS = 128, 0.15
"""A function's size, and the mean time that is billed for it unless somebody measured it."""


_WRITES = {"PutItem", "UpdateItem", "DeleteItem"}
_READS = {"GetItem", "Query", "Scan"}
_S3_PUTS = {
    "PutObject", "CopyObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload",
    "ListObjects", "ListObjectsV2", "ListObjectVersions",
}  # fmt: skip


def usage_of(service: str, operation: str, params: Mapping[str, Any]) -> Usage:
    """The units of one call, by boto3's names; items of a usual size, and indexes not counted. Empty: it is free."""
    match service:
        case "dynamodb":
            return _dynamodb(operation, params)
        case "sqs":
            return {"sqs.fifo" if str(params.get("QueueUrl", "")).endswith(".fifo") else "sqs.standard": 1.0}
        case "s3":
            return _s3(operation)
        case "sesv2" | "ses" if operation.startswith("Send"):
            return {"ses.out": 1.0}
        case "lambda" if operation == "Invoke":
            return {"lambda.request": 1.0}
        case "cloudwatch" if operation == "GetMetricData":
            return {"cloudwatch.asked": float(len(params.get("MetricDataQueries", ())))}
    return {}


def _dynamodb(operation: str, params: Mapping[str, Any]) -> Usage:
    if operation in _WRITES:
        return {"dynamodb.write": 1.0}
    if operation in _READS:
        return {"dynamodb.read": _read(params)}
    items = params.get("TransactItems", ())
    match operation:
        case "TransactWriteItems":
            return {"dynamodb.write": 2.0 * len(items)}
        case "TransactGetItems":
            return {"dynamodb.read": 2.0 * len(items)}
        case "BatchWriteItem":
            return {"dynamodb.write": float(sum(map(len, params.get("RequestItems", {}).values())))}
        case "BatchGetItem":
            tables = params.get("RequestItems", {}).values()
            return {"dynamodb.read": sum(_read(table) * len(table.get("Keys", ())) for table in tables)}
    return {}


def _read(params: Mapping[str, Any]) -> float:
    return 1.0 if params.get("ConsistentRead") else 0.5


def _s3(operation: str) -> Usage:
    if operation.startswith(("Delete", "Abort")):
        return {}
    return {"s3.put" if operation in _S3_PUTS else "s3.get": 1.0}


@dataclass
class CallCounter:
    """Calls by service and operation, and what they use of the price list; a retried call is billed again.

    Watch a session before its clients are made, or a client at any time. Safe for threads.
    """

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    retries: int = 0
    failures: int = 0
    usage: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    _guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def total(self) -> int:
        """All calls."""
        return self.calls.total()

    def watch(self, session_or_client: Any) -> None:  # noqa: ANN401  boto3 makes its classes at run time
        """Count what goes through this session's future clients, or through this client."""
        events = session_or_client.meta.events if hasattr(session_or_client, "meta") else session_or_client.events
        events.register("before-parameter-build", self._note)
        events.register("before-call", self._called)
        events.register("after-call", self._answered)
        events.register("after-call-error", self._failed)

    def add(self, service: str, operation: str, params: Mapping[str, Any] | None = None, times: int = 1) -> None:
        """Count calls that somebody else saw: `states:SendTaskSuccess` of a proxy, say."""
        service = boto3_name(service)
        self._count(service, operation, usage_of(service, operation, params or {}), times)

    def add_usage(self, usage: Mapping[str, float]) -> None:
        """What AWS does by itself and bills: transitions, invocations."""
        with self._guard:
            for meter, units in usage.items():
                self.usage[meter] += units

    def since(self, before: CallCounter) -> CallCounter:
        """What came after `before` was copied from this."""
        usage = {meter: units - before.usage.get(meter, 0.0) for meter, units in self.usage.items()}
        return CallCounter(
            self.calls - before.calls,
            self.retries - before.retries,
            self.failures - before.failures,
            defaultdict(float, usage),
        )

    def copy(self) -> CallCounter:
        """As it stands now."""
        with self._guard:
            counted = defaultdict(float, self.usage)
            return CallCounter(self.calls.copy(), self.retries, self.failures, counted)

    def per(self, times: float) -> UsageProfile:
        """Calls and usage of one of so many mails, minutes or hours."""
        return UsageProfile(self.total / times, {meter: units / times for meter, units in self.usage.items()})

    def _note(self, params: Mapping[str, Any], model: Any, context: dict[str, Any], **_: object) -> None:  # noqa: ANN401
        context[_NOTE] = usage_of(model.service_model.service_name, model.name, params)

    def _called(self, model: Any, context: dict[str, Any], **_: object) -> None:  # noqa: ANN401
        self._count(model.service_model.service_name, model.name, context.get(_NOTE, {}))

    def _answered(self, parsed: Mapping[str, Any], context: dict[str, Any], **_: object) -> None:
        answer = parsed.get("ResponseMetadata", {})
        retries = answer.get("RetryAttempts", 0)
        with self._guard:
            self.failures += answer.get("HTTPStatusCode", 200) >= 300
            self.retries += retries
            for meter, units in context.get(_NOTE, {}).items():
                self.usage[meter] += units * retries

    def _failed(self, **_: object) -> None:
        with self._guard:
            self.failures += 1

    def _count(self, service: str, operation: str, usage: Usage, times: int = 1) -> None:
        with self._guard:
            self.calls[service, operation] += times
            for meter, units in usage.items():
                self.usage[meter] += units * times


def boto3_name(service: str) -> str:
    """Of a service that signs its requests with another one."""
    return _ALIASES.get(service, service)


def counted(seen: Mapping[ProxiedCall, int]) -> CallCounter:
    """What a proxy saw."""
    counter = CallCounter()
    for call, times in seen.items():
        counter.add(call.service, call.operation, _params_of(call), times)
    return counter


def _params_of(call: ProxiedCall) -> dict[str, Any]:
    """As many and as telling as the call's own, so far as its price asks for them."""
    many = range(call.items)
    match call.operation:
        case "TransactWriteItems" | "TransactGetItems":
            return {"TransactItems": many}
        case "BatchWriteItem":
            return {"RequestItems": {"": many}}
        case "BatchGetItem":
            return {"RequestItems": {"": {"Keys": many, "ConsistentRead": call.consistent}}}
    return {"ConsistentRead": call.consistent, "QueueUrl": ".fifo" if call.fifo else ""}


def workflow_usage(history: Iterable[Mapping[str, Any]]) -> Usage:
    """Transitions and invocations of one execution, from the events that GetExecutionHistory tells."""
    entered = scheduled = 0
    for event in history:
        kind = str(event["type"])
        entered += kind.endswith("StateEntered")
        scheduled += kind == "LambdaFunctionScheduled" or _invokes(event)
    return {"states.transition": entered + 1.0, **invocation_usage(scheduled)}


def invocation_usage(times: int, seconds: float = FUNCTION_SECONDS) -> Usage:
    """So many runs of a function."""
    return {"lambda.request": float(times), "lambda.gb-second": times * seconds * FUNCTION_MB / 1024}


def _invokes(event: Mapping[str, Any]) -> bool:
    details = event.get("taskScheduledEventDetails", {})
    return bool(event["type"] == "TaskScheduled" and details.get("resourceType") == "lambda")
