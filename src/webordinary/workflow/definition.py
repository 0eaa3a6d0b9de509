"""The one workflow file, and its names on the embedded engine."""

from __future__ import annotations

from importlib import resources

from webordinary.asl.definition import Definition

FILE = "email_processor.asl.json"

STEPS = (
    "ParseEmail",
    "AuthenticateSender",
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


def text() -> str:
    """The workflow as it is deployed everywhere, before names are filled in."""
    return (resources.files(__package__) / FILE).read_text(encoding="utf-8")


def embedded() -> Definition:
    """The workflow for the embedded engine, where a step is known by its own name."""
    return Definition.load(text(), {step: step for step in STEPS})
