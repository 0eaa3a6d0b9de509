"""Executions that failed, timed out or were stopped: dead-lettered, alarmed and answered."""

from __future__ import annotations

import json
import re
from typing import Any

from aws_lambda_powertools.utilities.data_classes import EventBridgeEvent

from webordinary.workflow.answering import Answering

_REDRIVEN = re.compile(r"(?P<email_id>.+)-r(?P<number>\d+)")


def abandoned(event: dict[str, Any], answering: Answering) -> dict[str, str]:
    """The execution named in this event ended badly, whatever its state. Safe to repeat."""
    detail = EventBridgeEvent(event).detail
    started_with = _started_with(detail)
    error = f"workflow {detail['status']}: {detail.get('error')}"  # as the embedded engine words it
    answering.abandon(started_with, error, detail.get("cause") or "")
    return {"emailId": started_with["emailId"]}


def _started_with(detail: dict[str, Any]) -> dict[str, Any]:
    if given := detail.get("input"):
        payload: dict[str, Any] = json.loads(given)
        return payload
    # AWS leaves a large input out; the name says the same.
    redriven = _REDRIVEN.fullmatch(detail["name"])
    if redriven:
        return {"emailId": redriven["email_id"], "redrive": int(redriven["number"])}
    return {"emailId": detail["name"], "redrive": 0}
