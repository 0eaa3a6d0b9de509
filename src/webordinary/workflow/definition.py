"""The one workflow file, its steps by name, and its names on the embedded engine and on AWS."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

from webordinary.model.errors import Permanent
from webordinary.workflow.answering import Answering
from webordinary.workflow.queueing import Queueing
from webordinary.workflow.reading import Reading

if TYPE_CHECKING:
    from webordinary.asl.definition import Definition

Step = Callable[[Any], dict[str, Any]]


def steps(reading: Reading, queueing: Queueing, answering: Answering) -> Mapping[str, Step]:
    """Every step of STEPS; both engines call these functions."""
    return {
        "AuthenticateSender": reading.authenticate_sender,
        "ParseEmail": reading.parse_email,
        "IdentifyProjectUser": reading.identify_project_user,
        "StoreAttachment": reading.store_attachment,
        "RunCommand": answering.run_command,
        "SendToContainer": queueing.send_to_container,
        "CheckOwnership": queueing.check_ownership,
        "SendClaimRequest": queueing.send_claim_request,
        "CheckActiveJob": queueing.check_active_job,
        "SendInterrupt": queueing.send_interrupt,
        "AwaitResult": queueing.await_result,
        "RecordInterruption": queueing.record_interruption,
        "HandleTimeout": answering.handle_timeout,
        "GiveUp": answering.give_up,
        "Reply": answering.reply,
    }


STEPS = (
    "AuthenticateSender",
    "ParseEmail",
    "IdentifyProjectUser",
    "StoreAttachment",
    "RunCommand",
    "SendToContainer",
    "CheckOwnership",
    "SendClaimRequest",
    "CheckActiveJob",
    "SendInterrupt",
    "AwaitResult",
    "RecordInterruption",
    "HandleTimeout",
    "GiveUp",
    "Reply",
)

REPEATABLE = frozenset(STEPS) - {"RunCommand", "HandleTimeout", "GiveUp", "AwaitResult"}
"""Steps that a crash may repeat after they returned. The others answer otherwise the second time."""


FILE = "email_processor.asl.json"
_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")


def text() -> str:
    """The workflow as it is deployed everywhere, before names are filled in."""
    return (resources.files(__package__) / FILE).read_text(encoding="utf-8")


def embedded() -> Definition:
    """The workflow for the embedded engine, where a step is known by its own name."""
    from webordinary.asl.definition import Definition  # noqa: PLC0415 - a lambda names the steps without interpreter

    return Definition.load(text(), {step: step for step in STEPS})


def for_aws(arns: Mapping[str, str]) -> str:
    """The same file, byte for byte but for each step's name, which becomes the ARN of its function."""
    missing = sorted(set(STEPS) - set(arns))
    if missing:
        raise Permanent(f"no function is named for {', '.join(missing)}: deploy one for every step")
    return _PLACEHOLDER.sub(lambda step: arns[step[1]], text())
