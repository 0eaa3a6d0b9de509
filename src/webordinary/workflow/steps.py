"""The steps by the names that the workflow file calls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from webordinary.workflow.answering import Answering
from webordinary.workflow.queueing import Queueing
from webordinary.workflow.reading import Reading

Step = Callable[[Any], dict[str, Any]]


def steps(reading: Reading, queueing: Queueing, answering: Answering) -> Mapping[str, Step]:
    """Every step of definition.STEPS; both engines call these functions."""
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
