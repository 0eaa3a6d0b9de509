"""From a function to its handler: one call of the rooms, and what every handler does around it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from webordinary.adapters.aws import names
from webordinary.adapters.aws.setup.functions import Function
from webordinary.app.lambda_services import LambdaServices, answering_of, chores_of, steps_of, take
from webordinary.entrypoints.lambdas.handling import Call, Handler, handled
from webordinary.entrypoints.lambdas.telling import Telling
from webordinary.model.events import Events

Open = Callable[[Events], LambdaServices]


def build(function: Function, open_services: Open) -> Handler:
    """The handler of this function over the services that are opened for it, once."""
    telling = Telling(function.name)
    return handled(_call(function, open_services(telling)), telling)


def _call(function: Function, services: LambdaServices) -> Call:
    if function.step:
        return partial(_placed, steps_of(services)[function.step], services, settled=function.step == "Reply")
    return _OTHERS[function.name](services)


def _placed(call: Call, services: LambdaServices, event: Any, *, settled: bool) -> Any:  # noqa: ANN401 - JSON
    """Call a step that may be told where its job lies; when it is answered, the job has settled."""
    told = event.get("job") or event
    if isinstance(told, dict) and told.get("place"):
        place = told["place"]
        services.expect_job(told["jobId"], place["key"], -place["order"] if settled else place["order"])
    return call(event)


# What a function does not need it does not import: hence the imports inside.


def _intake(services: LambdaServices) -> Call:
    from webordinary.entrypoints.lambdas.intake import intake  # noqa: PLC0415

    return partial(intake, bucket=services.raw_bucket, take=partial(take, services))


def _reconcile(services: LambdaServices) -> Call:
    from webordinary.entrypoints.lambdas.reconcile import reconcile  # noqa: PLC0415

    chores = chores_of(services)

    def each_minute(event: Any) -> dict[str, int]:  # noqa: ANN401 - JSON, and it says nothing that we need
        return reconcile(chores)

    return each_minute


def _abandoned(services: LambdaServices) -> Call:
    from webordinary.entrypoints.lambdas.abandoned import abandoned  # noqa: PLC0415

    return partial(abandoned, answering=answering_of(services))


def _bounces(services: LambdaServices) -> Call:
    from webordinary.entrypoints.lambdas.bounces import bounces  # noqa: PLC0415
    from webordinary.mail.bounces import Notice, take_notice  # noqa: PLC0415

    def noted(notice: Notice) -> None:
        outbox, threads = services.outbox, services.mailroom.threads
        take_notice(notice, services.region, outbox, threads, services.events, services.now())

    return partial(bounces, take_notice=noted)


_OTHERS: dict[str, Callable[[LambdaServices], Call]] = {
    names.INTAKE: _intake,
    names.RECONCILE: _reconcile,
    names.ABANDONED: _abandoned,
    names.BOUNCES: _bounces,
}
