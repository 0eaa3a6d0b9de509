"""What every handler does around its one call."""

from __future__ import annotations

import json

import pytest

from tests.unit.lambdas.harness import AMELIA_SCOTT, FIRST_MAIL, HarnessInvocation, LambdaHarness, raw_mail, recorded
from webordinary.adapters.aws import names
from webordinary.adapters.aws.functions import FUNCTIONS, STEP_FUNCTIONS
from webordinary.entrypoints.lambdas import functions
from webordinary.entrypoints.lambdas.handlers import EventLogger, handled
from webordinary.mail.parsing.headers import MAX_HEADER_BYTES
from webordinary.mail.ports import Unparseable
from webordinary.model.errors import Permanent
from webordinary.model.events import Event, EventKind
from webordinary.workflow.definition import STEPS


def test_an_error_leaves_a_lambda_under_its_own_name_so_that_the_workflow_can_catch_it(cloud: LambdaHarness) -> None:
    cloud.inbox.objects[FIRST_MAIL] = raw_mail().replace(
        b"Subject:", b"X-Padding: " + b"x" * MAX_HEADER_BYTES + b"\r\nSubject:"
    )
    cloud.invoke(names.INTAKE, recorded("s3_put"))
    [email_id] = cloud.names()
    with pytest.raises(Unparseable):
        cloud.invoke(names.function_of("ParseEmail"), {"emailId": email_id})


def test_a_surprise_leaves_a_lambda_as_it_is_and_its_traceback_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    def surprise(event: object) -> None:
        raise ZeroDivisionError("a kiln without heat")

    with pytest.raises(ZeroDivisionError):
        handled(surprise, EventLogger("webordinary-surprise"))({}, HarnessInvocation())
    line = json.loads(capsys.readouterr().out)
    assert (line["level"], line["error"]) == ("ERROR", "ZeroDivisionError")
    assert "a kiln without heat" in line["exception"]


def test_the_log_of_a_lambda_names_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    telling = EventLogger("webordinary-nobody")

    def refuse(event: object) -> None:
        telling.emit(Event(EventKind.MAIL_REFUSED, "e1", data={"reason": "eve@evil.example is entitled to no project"}))
        raise ValueError("no mail of eve@evil.example from 192.0.2.17")

    with pytest.raises(ValueError, match="eve"):
        handled(refuse, telling)({}, HarnessInvocation())
    logged = capsys.readouterr().out
    assert "e\\u2026@evil.example is entitled to no project" in logged
    assert "eve@" not in logged
    assert "192.0.2.17" not in logged


def test_what_happened_is_logged_with_its_mail_and_counted_in_the_embedded_format(
    capsys: pytest.CaptureFixture[str],
) -> None:
    telling = EventLogger("webordinary-telling")
    handled(lambda event: telling.emit(Event(EventKind.MAIL_RECEIVED, email_id="e1")), telling)({}, HarnessInvocation())
    logged, counted = map(json.loads, capsys.readouterr().out.splitlines())
    assert (logged["message"], logged["email_id"]) == ("MailReceived", "e1")
    assert logged["request_id"] == HarnessInvocation().aws_request_id
    [directive] = counted["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == (names.METRICS, [["service"]])
    assert (counted["service"], counted["MailReceived"]) == (names.METRICS_SERVICE, [1.0])


def test_every_step_has_one_lambda_and_those_between_a_job_and_its_worker_share_theirs() -> None:
    assert sorted(step for one in STEP_FUNCTIONS for step in one.steps) == sorted(STEPS)
    assert all(names.function_of(step) == one.name for one in STEP_FUNCTIONS for step in one.steps)
    assert {names.function_of(step) for step in names.POOL_STEPS} == {"webordinary-send-to-container"}
    assert len({one.name for one in FUNCTIONS}) == len(FUNCTIONS)


def test_a_shared_lambda_does_the_step_that_it_is_asked_for_and_the_first_where_none_is_named(
    cloud: LambdaHarness,
) -> None:
    """An execution goes on with the definition that it began with, for a week and more."""
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    cloud.invoke(names.INTAKE, recorded("s3_put"))
    cloud.engine.run_ready()
    [job] = cloud.pool.jobs.open_jobs(AMELIA_SCOTT)
    shared = names.function_of("CheckOwnership")
    asked = cloud.invoke(shared, {"step": "CheckOwnership", "jobId": job.job_id})
    assert asked == {"owned": False, "idle": False}
    assert cloud.invoke(shared, {"step": "CheckActiveJob", "jobId": job.job_id}) == {"mustInterrupt": False}
    assert cloud.invoke(shared, {"jobId": job.job_id})["emailId"] == job.email_id
    with pytest.raises(Permanent, match="does not do Reply"):
        cloud.invoke(shared, {"step": "Reply", "jobId": job.job_id})


def test_importing_the_functions_builds_nothing_and_an_unknown_one_is_named() -> None:
    with pytest.raises(AttributeError, match=r"there is no lambda paint_kiln; there are .*parse_email"):
        functions.paint_kiln  # noqa: B018
