"""A mail to the operator about what a person must see."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from webordinary.mail import mime
from webordinary.mail.compose import SENDER_NAME
from webordinary.model.mail import Reply

OPERATOR = "operator"
"""Stands in the outbox where a reply has the mail that it answers."""
MAX_LISTED = 20


def compose_notice(
    kind: str, what: Sequence[tuple[str, str]], *, recipient: str, mailbox: str, page: str, sent_at: datetime
) -> Reply:
    """`what` holds what happened, each with the command to run first; many are cut short."""
    digest = hashlib.sha256(f"{OPERATOR}/{kind}/{sent_at.isoformat()}".encode()).hexdigest()
    message_id = f"<{digest[:32]}@{mailbox.rpartition('@')[2]}>"
    subject = what[0][0] if len(what) == 1 else f"{len(what)} alarms"
    fields = (
        ("From", f"{SENDER_NAME} <{mailbox}>"),
        ("To", recipient),
        ("Subject", mime.words(f"{SENDER_NAME}: {subject}"[:150], "Subject")),
        ("Date", mime.date(sent_at)),
        ("Message-ID", message_id),
        ("Auto-Submitted", "auto-generated"),
        ("X-Auto-Response-Suppress", "All"),
    )
    raw = mime.message(fields, mime.text("plain", _text(what, page)))
    return Reply(OPERATOR, kind, recipient, message_id, raw)


def _text(what: Sequence[tuple[str, str]], page: str) -> str:
    parts = [f"{happened}\n  first: {command}" for happened, command in what[:MAX_LISTED]]
    if len(what) > MAX_LISTED:
        parts.append(f"and {len(what) - MAX_LISTED} more; `webordinary dlq list` and `webordinary queues` show all")
    parts.append(f"The page: {page}\nWhat each alarm means stands in docs/operations.md. This is told once.")
    return "\n\n".join(parts)
