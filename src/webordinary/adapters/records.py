"""Mail values as JSON text, the form in which every backend keeps them."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from typing import Any

from webordinary.model.mail import (
    Attachment,
    AttachmentKind,
    Command,
    Envelope,
    ParsedMail,
    RefusedAttachment,
    TransportVerdicts,
)


def mail_to_json(mail: ParsedMail) -> str:
    """Write a ParsedMail."""
    record = asdict(mail)
    record["sent_at"] = mail.sent_at.isoformat() if mail.sent_at else None
    return json.dumps(record, ensure_ascii=False)


def mail_from_json(text: str | bytes) -> ParsedMail:
    """Read what `mail_to_json` wrote."""
    record: dict[str, Any] = json.loads(text)
    record["sent_at"] = datetime.fromisoformat(record["sent_at"]) if record["sent_at"] else None
    record["command"] = Command(record["command"])
    for name in ("in_reply_to", "references"):
        record[name] = tuple(record[name])
    record["refused_attachments"] = tuple(RefusedAttachment(**r) for r in record["refused_attachments"])
    return ParsedMail(**record)


def attachment_to_json(record: Attachment | RefusedAttachment) -> str:
    """Write one line of an attachment manifest; a refused one is known by its reason."""
    return json.dumps(asdict(record), ensure_ascii=False)


def attachment_from_json(text: str) -> Attachment | RefusedAttachment:
    """Read what `attachment_to_json` wrote."""
    record: dict[str, Any] = json.loads(text)
    if "reason" in record:
        return RefusedAttachment(**record)
    record["kind"] = AttachmentKind(record["kind"])
    return Attachment(**record)


def verdicts_to_json(verdicts: TransportVerdicts | None) -> str | None:
    """Write what the transport found."""
    return json.dumps(asdict(verdicts)) if verdicts else None


def verdicts_from_json(text: str | None) -> TransportVerdicts | None:
    """Read what `verdicts_to_json` wrote."""
    return TransportVerdicts(**json.loads(text)) if text else None


def envelope_to_json(envelope: Envelope) -> str:
    """Write an Envelope, in one line of ASCII."""
    return json.dumps({**asdict(envelope), "received_at": envelope.received_at.isoformat()})


def envelope_from_json(text: str) -> Envelope:
    """Read what `envelope_to_json` wrote."""
    record: dict[str, Any] = json.loads(text)
    record["received_at"] = datetime.fromisoformat(record["received_at"])
    record["verdicts"] = TransportVerdicts(**record["verdicts"]) if record["verdicts"] else None
    return Envelope(**record)
