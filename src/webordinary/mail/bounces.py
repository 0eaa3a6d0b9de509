"""What SES tells of replies after they left: that they did leave, came back, or were called spam.

A bounce is noted where a person sees it, and nothing is sent because of it: no loop can begin here. Whatever SES
tells of a reply proves that it left, so a reply whose sending was in doubt is not sent again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from webordinary.mail.delivery import file_under_thread
from webordinary.mail.ports import Outbox, OutboxEntry, Threads
from webordinary.model.errors import Permanent
from webordinary.model.events import Event, Events

EMAIL_TAG, KIND_TAG = "email", "kind"
"""The names of the tags that a reply is sent with."""
MAX_REASON = 500
MAX_NOTIFICATION = 512 * 1024


class News(StrEnum):
    """What became of a reply."""

    LEFT = "left"
    BOUNCED = "bounced"


@dataclass(frozen=True, slots=True)
class Notice:
    """Word of one reply. Without an `email_id` it is none that we tagged."""

    news: News
    email_id: str
    kind: str
    ses_id: str
    recipient: str
    reason: str = ""


def ses_message_id(ses_id: str, region: str) -> str:
    """The Message-ID that SES gives to a mail which it calls so."""
    if "@" in ses_id:
        return f"<{ses_id}>"
    return f"<{ses_id}@{'email' if region == 'us-east-1' else region}.amazonses.com>"


def read_notification(text: str) -> Notice | None:
    """Read what SES published; None for what we have no use for. Raises Permanent where it is nothing of SES's.

    Feedback of an identity says `notificationType`, events of a configuration set say `eventType`, and those alone
    carry tags.
    """
    try:
        told = json.loads(text[:MAX_NOTIFICATION])
        mail = told["mail"]
        what = told.get("eventType") or told["notificationType"]
        tags: Mapping[str, Any] = mail.get("tags") or {}
        email_id, kind = (str((tags.get(tag) or [""])[0]) for tag in (EMAIL_TAG, KIND_TAG))
        ses_id, recipient = str(mail["messageId"]), ", ".join(map(str, mail["destination"][:5]))
        news, reason = _news(str(what), told)
    except (ValueError, LookupError, TypeError, AttributeError) as problem:
        raise Permanent(f"this is no notification of SES ({problem!r}): {text[:200]!r}") from problem
    return Notice(news, email_id, kind, ses_id, recipient, reason[:MAX_REASON]) if news else None


def _news(what: str, told: Mapping[str, Any]) -> tuple[News | None, str]:
    match what:
        case "Send" | "Delivery":
            return News.LEFT, ""
        case "Bounce":
            return News.BOUNCED, _bounce(told["bounce"])
        case "Complaint":
            feedback = told["complaint"].get("complaintFeedbackType") or "no reason given"
            return News.BOUNCED, f"complaint: its receiver does not want it ({feedback})"
        case "Reject":
            return News.BOUNCED, f"rejected by SES: {told['reject'].get('reason') or 'no reason given'}"
    return None, ""


def _bounce(bounce: Mapping[str, Any]) -> str:
    hard = "for good" if bounce.get("bounceType") == "Permanent" else "for now"
    said = [one.get("diagnosticCode") or one.get("status") or "" for one in bounce.get("bouncedRecipients", [])[:5]]
    words = "; ".join(filter(None, map(str, said))) or "no reason given"
    return f"bounced {hard} ({bounce.get('bounceSubType') or 'General'}): {words}"


def take_notice(notice: Notice, region: str, outbox: Outbox, threads: Threads, events: Events, now: datetime) -> None:
    """Note what became of a reply; again is harmless."""
    entry = _entry(notice, outbox)
    if entry and entry.sent_at is None:
        sent_as = ses_message_id(notice.ses_id, region)
        outbox.mark_sent(entry.reply, now, sent_as)
        file_under_thread(entry.reply, sent_as, threads)
    if notice.news is not News.BOUNCED or (entry and entry.bounced == notice.reason):
        return
    if entry:
        outbox.mark_bounced(entry.reply, notice.reason)
    data = {"kind": notice.kind, "recipient": notice.recipient, "reason": notice.reason, "ses_id": notice.ses_id}
    events.emit(Event("ReplyBounced", email_id=notice.email_id or None, data=data))


def _entry(notice: Notice, outbox: Outbox) -> OutboxEntry | None:
    if not notice.email_id:
        return None
    return next((entry for entry in outbox.of(notice.email_id) if entry.reply.kind == notice.kind), None)
