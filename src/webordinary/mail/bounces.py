"""Mails that came back: delivery reports (RFC 3464, and what servers write instead) and complaints (RFC 5965).

Anyone can write such a mail, so it has little effect: a reply that left is noted as bounced, once, if the report names
both its Message-ID, which only its receiver knows, and its recipient.
"""

from __future__ import annotations

import re
from email import message_from_bytes
from email.message import Message

from webordinary.mail.ports import Outbox, ReturnedMail, Threads
from webordinary.model.events import Event, EventKind, Events

MAX_BYTES = 256 * 1024
MAX_REASON = 300
MAX_IDS = 20
_OUR_ID = re.compile(r"<[0-9a-f]{32}@[^<>\s]{1,253}>")
_DIAGNOSTIC = re.compile(r"^(?:Diagnostic-Code|Status):\s*(.{1,300})", re.I | re.M)


def read_returned(raw: bytes) -> ReturnedMail | None:
    """Read a report; None for anything else, and for one of a delay. Runs within the parser's limits."""
    text = raw[:MAX_BYTES].decode("latin-1")
    mail = message_from_bytes(raw[:MAX_BYTES])
    ids = tuple(dict.fromkeys(_OUR_ID.findall(text)))[:MAX_IDS]
    if _is_complaint(mail):
        return ReturnedMail(ids, (), "complaint: its receiver does not want it")
    failed = _failed(mail)
    if not failed or not ids:
        return None
    diagnosis = " ".join(dict.fromkeys(" ".join(found.split()) for found in _DIAGNOSTIC.findall(text)[:2]))
    return ReturnedMail(ids, failed, f"bounced for good: {diagnosis or 'no reason given'}"[:MAX_REASON])


def _failed(mail: Message) -> tuple[str, ...]:
    """The addresses that failed for good."""
    from flufl.bounce import all_failures  # noqa: PLC0415 - only the child process that reads reports needs it

    try:
        _, for_good = all_failures(mail)
    except (ValueError, LookupError, TypeError, AttributeError):  # the library stumbles over damaged reports
        return ()
    return tuple(sorted(address.decode("utf-8", "replace").lower() for address in for_good))[:MAX_IDS]


def _is_complaint(mail: Message) -> bool:
    return mail.get_content_type() == "multipart/report" and mail.get_param("report-type") == "feedback-report"


def take_returned(returned: ReturnedMail, outbox: Outbox, threads: Threads, events: Events) -> bool:
    """Note that a reply came back, once; False if the report is about none of ours. Anyone can write a report."""
    email_id = threads.mail_of(returned.message_ids)
    for entry in outbox.of(email_id) if email_id else ():
        reply, ids = entry.reply, returned.message_ids
        named = reply.message_id in ids or entry.sent_as in ids
        meant = not returned.recipients or reply.recipient.lower() in returned.recipients
        if named and meant and entry.sent_at and not entry.bounced:
            outbox.mark_bounced(reply, returned.reason)
            data = {"kind": reply.kind, "recipient": reply.recipient, "reason": returned.reason}
            events.emit(Event(EventKind.REPLY_BOUNCED, email_id=email_id, data=data))
            return True
    return False
