"""What `webordinary doctor` says of workers, machines and alarms, against recorded answers of AWS."""
# ruff: noqa: E402

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

from tests.aws.recorded import Recorded
from tests.aws.test_preflight import TARGET, intent
from webordinary.adapters.aws import names
from webordinary.adapters.aws.provision.resource_checks import WorkerChecks
from webordinary.model.checks import CheckResult, Verdict

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
PLACED = "service webordinary-edit-service has reached a steady state."
NOT_PLACED = (
    "service webordinary-edit-service was unable to place a task because no container instance met all of its "
    "requirements. The closest matching container-instance is missing an attribute required by your task."
)


def look(check: str, tape: Callable[[Recorded], None]) -> CheckResult:
    recorded = Recorded()
    tape(recorded)
    [found] = [one for one in WorkerChecks(recorded, intent(account="1" * 12)).checks() if one.name == check]
    result = found.look()
    recorded.done()
    return result


def service(wanted: int, running: int, *events: str, rollout: str = "COMPLETED") -> dict[str, Any]:
    told = [{"id": str(number), "createdAt": NOON, "message": words} for number, words in enumerate(events)]
    numbers = {"desiredCount": wanted, "runningCount": running}
    shape = {"status": "ACTIVE", "events": told, "deployments": [{"rolloutState": rollout}], "taskDefinition": "t:1"}
    return {"services": [{**numbers, **shape}]}


@pytest.mark.parametrize(
    ("found", "verdict", "words"),
    [
        (service(0, 0, PLACED), Verdict.OK, "0 of 0 workers run"),
        (service(2, 2, PLACED, NOT_PLACED), Verdict.OK, "2 of 2 workers run"),
        (service(1, 0), Verdict.WARN, "0 of 1 workers run"),
        (service(1, 0, NOT_PLACED), Verdict.FAIL, "missing an attribute"),
        (service(1, 1, rollout="FAILED"), Verdict.FAIL, "the deployment failed"),
        ({"services": []}, Verdict.FAIL, "is not there"),
    ],
)
def test_a_service_that_starts_no_worker_is_seen_with_the_words_of_ecs(
    found: dict[str, Any], verdict: Verdict, words: str
) -> None:
    """ECS, service event messages: "was unable to place a task"."""
    result = look("workers", lambda tape: tape.answers("ecs", "describe_services", found))
    assert result.verdict is verdict
    assert words in result.what


def test_a_cluster_that_is_gone_is_told() -> None:
    result = look("workers", lambda tape: tape.refuses("ecs", "describe_services", "ClusterNotFoundException"))
    assert (result.verdict, result.todo) == (Verdict.FAIL, "`webordinary aws deploy` makes it")


def images(*tags: str) -> dict[str, Any]:
    return {"imageDetails": [{"imageTags": list(tags), "imagePushedAt": NOON}] if tags else []}


def test_without_an_image_no_worker_starts_and_the_doctor_says_so() -> None:
    def empty(tape: Recorded) -> None:
        tape.answers("ecs", "describe_services", service(0, 0))
        tape.answers("ecr", "describe_images", images())

    assert look("image", empty).verdict is Verdict.FAIL


def test_a_task_that_names_an_image_that_was_never_pushed_is_seen() -> None:
    task = {"taskDefinition": {"containerDefinitions": [{"image": f"host/{names.REPOSITORY}:not-pushed"}]}}

    def stale(tape: Recorded) -> None:
        tape.answers("ecs", "describe_services", service(0, 0))
        tape.answers("ecr", "describe_images", images("1-arm64"))
        tape.answers("ecs", "describe_task_definition", task)
        tape.refuses("ecr", "describe_images", "ImageNotFoundException")

    def there(tape: Recorded) -> None:
        tape.answers("ecs", "describe_services", service(0, 0))
        tape.answers("ecr", "describe_images", images("1-arm64"))
        tape.answers("ecs", "describe_task_definition", task)
        tape.answers("ecr", "describe_images", images("not-pushed"))

    assert "not-pushed, which is not there" in look("image", stale).what
    assert look("image", there).verdict is Verdict.OK


def test_machines_are_compared_with_what_scaling_may_start() -> None:
    def small(tape: Recorded) -> None:
        tape.answers("application-autoscaling", "describe_scalable_targets", {"ScalableTargets": [TARGET]})
        tape.answers("service-quotas", "get_service_quota", {"Quota": {"Value": 32.0}})

    result = look("machine quota", small)
    assert result.verdict is Verdict.WARN
    assert "room for 16 workers of max_workers=40" in result.what


@pytest.mark.parametrize(
    ("arns", "verdict"),
    [(["PendingConfirmation"], Verdict.FAIL), (["arn:aws:sns:r:1:t:id"], Verdict.OK), ([], Verdict.WARN)],
)
def test_a_subscription_that_was_not_confirmed_is_told(arns: list[str], verdict: Verdict) -> None:
    """SNS, ListSubscriptionsByTopic: SubscriptionArn is PendingConfirmation until the link is followed."""
    told = {"Subscriptions": [{"SubscriptionArn": arn, "Endpoint": "me@kiln.example"} for arn in arns]}
    arn = f"arn:aws:sns:us-east-1:{'1' * 12}:{names.PREFIX}-operator"
    given = {"TopicArn": arn}
    result = look("operator", lambda tape: tape.answers("sns", "list_subscriptions_by_topic", told, given))
    assert result.verdict is verdict
