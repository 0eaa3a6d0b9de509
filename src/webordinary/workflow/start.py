"""A stored mail starts its workflow; one that a crash left behind is started later. Never twice: by name."""

from __future__ import annotations

from webordinary.asl.engine import Engine
from webordinary.mail.ports import RawMails

_BATCH = 100


def start(email_id: str, engine: Engine, raw_mails: RawMails) -> None:
    """Start the workflow of one mail; again is harmless."""
    engine.start(email_id, {"emailId": email_id, "redrive": 0})
    raw_mails.mark_started(email_id)


def start_missing(engine: Engine, raw_mails: RawMails) -> int:
    """Start the workflows of accepted mails that have none."""
    found = 0
    while email_ids := raw_mails.without_workflow(_BATCH):
        for email_id in email_ids:
            start(email_id, engine, raw_mails)
        found += len(email_ids)
    return found
