"""Who a mail says it is from and which mail it is; known before anything is parsed."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from webordinary.mail.addresses import is_address
from webordinary.mail.headers import Headers, decode_words, split

MAX_AUTHOR = 1000
# Stricter than RFC 5322, and than the standard library: one address, and no second reading of it.
_AUTHOR = re.compile(
    r"""(?x)
    (?: "(?P<quoted>(?:[^"\\]|\\.)*)" | (?P<name>[^<>"@]*|[^<>",;:()]*) ) \s* <\s*(?P<bracketed>[^<>\s]+)\s*>
    | (?P<bare>[^<>\s"]+) \s* (?: \((?P<comment>[^()]*)\) )?
    """
)
_ESCAPED = re.compile(r"\\(.)")
_TRACE = {
    "received",
    "return-path",
    "delivered-to",
    "x-original-to",
    "received-spf",
    "authentication-results",
    "x-ses-spam-verdict",
    "x-ses-virus-verdict",
    "x-ses-receipt",
    "x-ses-dkim-signature",
}


def message_id_of(raw: bytes, headers: Headers) -> str:
    """The Message-ID; where a mail has none, one that follows from its content."""
    named = headers.message_ids("message-id")
    if named:
        return named[0]
    digest = hashlib.sha256()
    for name, value in headers.fields:
        if name not in _TRACE:  # a second delivery of the same mail differs in these
            digest.update(f"{name}:{value}\n".encode())
    digest.update(split(raw)[1])
    return f"<{digest.hexdigest()[:40]}@message-id.invalid>"


def sender_of(headers: Headers) -> tuple[str, str]:
    """Address and display name of the one author; empty where there is none, or more than one.

    Reply-To, Sender and encoded words never name an author: identity comes from a plain From alone.
    """
    fields = headers.all("from")
    if len(fields) != 1:
        return "", ""
    author = _AUTHOR.fullmatch(fields[0].strip()) if len(fields[0]) <= MAX_AUTHOR else None
    address = (author["bracketed"] or author["bare"]) if author else ""
    if author is None or not is_address(address):
        return "", ""
    name = author["quoted"] or author["name"] or author["comment"] or ""
    return address.lower(), decode_words(_ESCAPED.sub(r"\1", name).strip())[:200]


def sent_at_of(headers: Headers) -> datetime | None:
    """When the sender says it was written."""
    try:
        sent_at = parsedate_to_datetime(headers.first("date"))
        return (sent_at if sent_at.tzinfo else sent_at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
