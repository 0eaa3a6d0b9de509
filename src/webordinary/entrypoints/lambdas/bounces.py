"""SES tells, through SNS, what became of replies: that they left, came back, or were not wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.utilities.data_classes import SNSEvent

from webordinary.mail.bounces import Notice, read_notification


def bounces(event: dict[str, Any], take_notice: Callable[[Notice], None]) -> dict[str, int]:
    """Note what SES tells; it tells at least once. Raises Permanent for what SES did not write."""
    messages = [record.sns.message for record in SNSEvent(event).records]
    notices = [notice for notice in map(read_notification, messages) if notice]
    for notice in notices:
        take_notice(notice)
    return {"noticed": len(notices)}
