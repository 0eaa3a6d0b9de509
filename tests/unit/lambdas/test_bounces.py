"""What SES tells of replies, through SNS."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.lambdas.harness import FIRST_MAIL, LambdaHarness, raw_mail, recorded
from webordinary.adapters.aws import names
from webordinary.mail.ports import OutboxEntry
from webordinary.model.errors import Permanent


@pytest.fixture
def email_id(cloud: LambdaHarness) -> str:
    """A mail that was answered."""
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    cloud.invoke(names.INTAKE, recorded("s3_put"))
    cloud.engine.run_ready()
    cloud.work()
    [email_id] = cloud.names()
    return email_id


def told(name: str, email_id: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(json.dumps(recorded(name)).replace("e" * 64, email_id))
    return event


def answer(cloud: LambdaHarness, email_id: str) -> OutboxEntry:
    [entry] = cloud.outbox.of(email_id)
    return entry


@pytest.mark.parametrize(("event", "reason"), [("sns_bounce", "User unknown"), ("sns_complaint", "abuse")])
def test_a_reply_that_came_back_is_noted_with_its_reason_and_nothing_is_sent(
    cloud: LambdaHarness, email_id: str, event: str, reason: str
) -> None:
    for _ in range(2):
        assert cloud.invoke(names.BOUNCES, told(event, email_id)) == {"noticed": 1}
    assert reason in (answer(cloud, email_id).bounced or "")
    assert len(cloud.post.sent) == 1


def test_a_delivery_changes_nothing_of_a_reply_that_is_known_to_have_left(cloud: LambdaHarness, email_id: str) -> None:
    before = answer(cloud, email_id)
    cloud.invoke(names.BOUNCES, told("sns_delivery", email_id))
    assert answer(cloud, email_id) == before


def test_feedback_without_our_tags_is_told_and_belongs_to_no_reply(cloud: LambdaHarness, email_id: str) -> None:
    cloud.invoke(names.BOUNCES, told("sns_bounce_transient", email_id))
    assert answer(cloud, email_id).bounced is None


def test_what_ses_did_not_write_fails_and_ends_among_the_dead_letters(cloud: LambdaHarness) -> None:
    event = recorded("sns_bounce")
    event["Records"][0]["Sns"]["Message"] = "buy glazes"
    with pytest.raises(Permanent, match="no notification of SES"):
        cloud.invoke(names.BOUNCES, event)
