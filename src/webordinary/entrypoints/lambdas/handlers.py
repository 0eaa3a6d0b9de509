"""From a function to its handler: one call of the packages, and what every handler does around it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import Any, Protocol
from urllib.parse import unquote_plus

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import Metrics, MetricUnit
from aws_lambda_powertools.utilities.data_classes import EventBridgeEvent, S3Event, SNSEvent

from webordinary.compose.aws import AwsContainer
from webordinary.compose.lambdas import (
    METRICS,
    METRICS_SERVICE,
    PARSING_STEPS,
    Function,
    duties_of,
    hand_out,
    names,
    take,
)
from webordinary.compose.steps import answering_of, steps_of
from webordinary.mail.outbox import DeliveryNotification, read_notification
from webordinary.mail.parsing.parts import MAX_STORED_BYTES
from webordinary.model.errors import Permanent, Transient
from webordinary.model.events import Event, Events
from webordinary.model.text import masked
from webordinary.pool.reconciler import Share
from webordinary.workflow.answering import Answering
from webordinary.workflow.start import BrokenExecution, started_with


class EventLogger:
    """See Events: a line each, and a count that leaves with `flush`."""

    def __init__(self, function: str) -> None:
        self.log = Logger(service=function, json_serializer=_masked_line)
        self._metrics = Metrics(namespace=METRICS, service=METRICS_SERVICE)

    def emit(self, event: Event) -> None:
        known = {
            "event": event.kind,
            "email_id": event.email_id,
            "job_id": event.job_id,
            "key": event.key and str(event.key),
            "data": dict(event.data),
        }
        self.log.info(event.kind, extra={name: value for name, value in known.items() if value})
        self._metrics.add_metric(name=event.kind, unit=MetricUnit.Count, value=1)

    def flush(self) -> None:
        """Write the counts of this invocation."""
        if self._metrics.provider.metric_set:
            self._metrics.flush_metrics()


def _masked_line(entry: dict[str, Any]) -> str:
    """CloudWatch shows a line to every reader of logs, for a month."""
    plain = json.loads(json.dumps(entry, default=str))  # it may hold exceptions
    return json.dumps(masked(plain))


class LambdaContext(Protocol):
    """As much of Lambda's context as we read."""

    @property
    def aws_request_id(self) -> str:
        """The name of this invocation."""


Call = Callable[[Any], Any]
Handler = Callable[[Any, LambdaContext], Any]


def handled(call: Call, telling: EventLogger) -> Handler:
    """A handler that calls this. Its errors go out as they are: the workflow retries and catches them by class name."""

    def handler(event: Any, context: LambdaContext) -> Any:  # noqa: ANN401 - JSON
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


Open = Callable[[Events], AwsContainer]


def build(function: Function, open_services: Open) -> Handler:
    """The handler of this function over the services that are opened for it, once."""
    telling = EventLogger(function.name)
    return handled(_call(function, open_services(telling)), telling)


def _call(function: Function, services: AwsContainer) -> Call:
    if not function.steps:
        return _OTHERS[function.name](services)
    if function.steps[0] in PARSING_STEPS:
        services.mail_deps.parser.warm()
    steps = steps_of(services, answering_of(services))
    calls = {step: partial(_placed, steps[step], services, settled=step == "Reply") for step in function.steps}
    first = calls[function.steps[0]]
    return first if len(calls) == 1 else partial(_asked_for, calls, first)


def _asked_for(calls: Mapping[str, Call], first: Call, event: Any) -> Any:  # noqa: ANN401 - JSON
    """Call the step of the workflow's state. An execution that began before they shared a function tells none."""
    step = event.get("step")
    if step is None:
        return first(event)
    if step not in calls:
        raise Permanent(f"this function does not do {step}; it does {', '.join(calls)}")
    return calls[step](event)


def _placed(call: Call, services: AwsContainer, event: Any, *, settled: bool) -> Any:  # noqa: ANN401 - JSON
    """Call a step that may be told where its job lies; when it is answered, the job has settled."""
    record = event.get("job") or event
    if isinstance(record, dict) and record.get("place"):
        place = record["place"]
        services.job_table.expect(record["jobId"], place["key"], -place["order"] if settled else place["order"])
    return call(event)


# What a function does not need it does not import: hence the imports inside.


def _intake(services: AwsContainer) -> Call:

    return partial(intake, bucket=services.raw_bucket, take=partial(take, services))


def _reconcile(services: AwsContainer) -> Call:

    chores = cache(partial(duties_of, services))

    def each_minute(event: Any) -> dict[str, int]:  # noqa: ANN401 - JSON
        share = Share(int(event.get("share", 0)), int(event.get("of", 1)))
        return reconcile(chores_at(str(event.get("time", "")), chores(share)))

    return each_minute


def _abandoned(services: AwsContainer) -> Call:

    return partial(abandoned, answering=answering_of(services))


def _bounces(services: AwsContainer) -> Call:
    from webordinary.mail.outbox import take_notice  # noqa: PLC0415

    def noted(notice: DeliveryNotification) -> None:
        take_notice(notice, services.config.aws_region, services.outbox, services.events, services.clock.now())

    return partial(bounces, take_notice=noted)


_OTHERS: dict[str, Callable[[AwsContainer], Call]] = {
    names.INTAKE: _intake,
    names.RECONCILE: _reconcile,
    names.ABANDONED: _abandoned,
    names.BOUNCES: _bounces,
    names.BROKER: lambda services: partial(hand_out, services),
}


_TEST_EVENT = "s3:TestEvent"


@dataclass(frozen=True, slots=True)
class S3Notification:
    """An object that S3 tells of."""

    bucket: str
    key: str
    size: int
    at: datetime


def intake(event: dict[str, Any], bucket: str, take: Callable[[str, datetime], None]) -> dict[str, int]:
    """Take every mail of this event.

    One that fails does not hold up the others, but the event fails in the end: Lambda tries it again twice, and
    leaves it in the queue of dead letters then.
    """
    if event.get("Event") == _TEST_EVENT:
        return {"taken": 0}
    failed: list[Exception] = []
    objects = tuple(_objects(event))
    for record in objects:
        try:
            _check(record, bucket)
            take(record.key, record.at)
        except Exception as problem:
            failed.append(problem)
    if failed:
        raise failed[0]
    return {"taken": len(objects)}


def _objects(event: dict[str, Any]) -> Iterator[S3Notification]:
    for record in S3Event(event).records:
        thing = record.s3.get_object
        at = datetime.fromisoformat(record.event_time)
        yield S3Notification(record.s3.bucket.name, unquote_plus(thing.key), int(thing.get("size") or 0), at)


def _check(record: S3Notification, bucket: str) -> None:
    if record.bucket != bucket:
        where = f"mails come to {bucket}: take this function out of the other's notifications"
        raise Permanent(f"{record.key} lies in {record.bucket}, and {where}")
    if record.size > MAX_STORED_BYTES:
        size, most = record.size // 2**20, MAX_STORED_BYTES // 2**20
        raise Permanent(f"{record.key} has {size} MB and a mail has at most {most}: SES did not bring it; remove it")


def abandoned(event: dict[str, Any], answering: Answering) -> dict[str, str]:
    """The execution named in this event ended badly, whatever its state. Safe to repeat."""
    detail = EventBridgeEvent(event).detail
    # AWS leaves a large input out; the name says the same.
    payload = json.loads(detail["input"]) if detail.get("input") else started_with(detail["name"])
    ended = BrokenExecution(detail["name"], detail["status"], detail.get("error") or "", detail.get("cause") or "")
    answering.abandon(payload, ended)
    return {"emailId": payload["emailId"]}


def bounces(event: dict[str, Any], take_notice: Callable[[DeliveryNotification], None]) -> dict[str, int]:
    """Note what SES tells; it tells at least once. Raises Permanent for what SES did not write."""
    messages = [record.sns.message for record in SNSEvent(event).records]
    notices = [notice for notice in map(read_notification, messages) if notice]
    for notice in notices:
        take_notice(notice)
    return {"noticed": len(notices)}


Chore = Callable[[], int]
SELDOM = "mails"
"""Lists the raw mails and reads a note of each: only in each tenth minute, as it costs more than all the rest."""


def chores_at(time: str, chores: Mapping[str, Chore]) -> Mapping[str, Chore]:
    """The chores of a scheduled minute; all of them where no time is given.

    Each minute begins with another one: what takes all the time of one minute does not keep the others undone.
    """
    if not time:
        return chores
    minute = datetime.fromisoformat(time).minute
    due = [(name, chore) for name, chore in chores.items() if name != SELDOM or minute % 10 == 0]
    first = minute % len(due)
    return dict(due[first:] + due[:first])


def reconcile(chores: Mapping[str, Chore]) -> dict[str, int]:
    """Do every chore and say how much each had to do; one that fails does not hold up the others.

    Raises the first failure at the end, so that Lambda counts it and the alarm sees it.
    """
    done: dict[str, int] = {}
    failed: list[Exception] = []
    for name, chore in chores.items():
        try:
            done[name] = chore()
        except Exception as problem:
            failed.append(problem)
    if failed:
        raise failed[0]
    return done
