"""What SES writes on top of a mail that it receives, told apart from all that the sender wrote below.

A notification of S3 carries no verdicts, so they are read from the stored mail. SES puts one block before it, each
field once, and X-SES-RECEIPT last (then its own signature):

    Return-Path: <scott@example.com>
    Received: from mx.example.com (mx.example.com [192.0.2.1])
     by inbound-smtp.us-east-1.amazonaws.com with SMTP id 795hue2t… for edit@example.org; …
    X-SES-Spam-Verdict: PASS
    X-SES-Virus-Verdict: PASS
    Received-SPF: pass (spfCheck: …) client-ip=192.0.2.1; envelope-from=scott@example.com; helo=mx.example.com;
    Authentication-Results: amazonses.com;
     spf=pass (spfCheck: …) client-ip=192.0.2.1; envelope-from=scott@example.com; helo=mx.example.com;
     dkim=pass header.i=@example.com;
     dmarc=pass header.from=example.com;
    X-SES-RECEIPT: AEFBQUFB…

Everything after X-SES-RECEIPT is the sender's, whatever it is called. Of a block that is not exactly so, nothing is
believed. Envelope sender, HELO and the names in a signature are the sender's words too, though SES quotes them: they
must not be able to write a verdict. They cannot end a line, so a verdict is a line of its own; and what SES says of
SPF stands there twice, so that what follows it begins where its copy ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from webordinary.mail.addresses import MAX_ADDRESS, Mailbox
from webordinary.mail.headers import MAX_FIELD_BYTES, MAX_HEADER_BYTES, Headers, read_headers, split
from webordinary.mail.identity import sender_of
from webordinary.model.mail import Envelope, TransportVerdicts

MAX_RECIPIENTS = 20

_LAST = "x-ses-receipt"
_BLOCK = frozenset(
    {
        "return-path",
        "received",
        "x-ses-spam-verdict",
        "x-ses-virus-verdict",
        "received-spf",
        "authentication-results",
        _LAST,
    }
)
_RECEIVED = re.compile(
    r"from .*\[(?:IPv6:)?(?P<peer>[0-9A-Fa-f.:]{3,45})\]\)"
    r" by inbound-smtp\.[a-z0-9-]+\.amazonaws\.com with [A-Z]+ id (?P<ses_id>[A-Za-z0-9]+)"
    r"(?: for <?(?P<recipient>[^\s;<>]+)>?)?; [^;]*"
)
_DMARC = re.compile(r'dmarc=(?P<dmarc>[a-z]+) header\.from=(?P<domain>[^\s;()"]*);')
_LONGEST_LINE = 900  # a longer one might be folded, wherever its words allow
_QUOTED_NAME = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKETED = re.compile(r"<([^<>\s]+)>")


@dataclass(frozen=True, slots=True)
class SesTrace:
    """What the block says."""

    peer: str
    mail_from: str
    recipient: str
    """Empty where SES names none, as it may when there are several."""
    verdicts: TransportVerdicts


def envelopes_of(raw: bytes, ses_id: str, mailbox: Mailbox, received_at: datetime) -> tuple[Envelope, ...]:
    """One envelope for each of our addresses that the mail went to; none if it went to nobody here.

    `ses_id` is SES's name for the mail, under which it lies in the bucket.
    """
    headers = read_headers(raw)
    trace = read_trace(raw, ses_id)
    peer, verdicts = (trace.peer, trace.verdicts) if trace else ("", None)
    mail_from = trace.mail_from if trace else sender_of(headers)[0]
    recipients = _recipients(headers, trace, mailbox)
    return tuple(Envelope(peer, mail_from, recipient, received_at, verdicts) for recipient in recipients)


def read_trace(raw: bytes, ses_id: str) -> SesTrace | None:
    """What SES says of this mail, or None where its words cannot be told from the sender's."""
    block = _block(raw)
    said = {name: " ".join(lines) for name, lines in block.items()}
    received = _RECEIVED.fullmatch(said.get("received", ""))
    if received is None or received["ses_id"] != ses_id:
        return None
    results = _results(block.get("authentication-results", []), said.get("received-spf", ""))
    return SesTrace(
        peer=received["peer"],
        mail_from=said.get("return-path", "").strip("<> ")[:MAX_ADDRESS],
        recipient=(received["recipient"] or "").lower(),
        verdicts=TransportVerdicts(
            dmarc=results["dmarc"] if results else "",
            dmarc_domain=results["domain"].lower() if results else "",
            spam=said.get("x-ses-spam-verdict", "").lower(),
            virus=said.get("x-ses-virus-verdict", "").lower(),
        ),
    )


def _block(raw: bytes) -> dict[str, list[str]]:
    """The fields from the top to X-SES-RECEIPT, line by line; empty if anything else is among them."""
    block: dict[str, list[str]] = {}
    last: list[str] = []
    for line in split(raw[:MAX_HEADER_BYTES])[0].replace(b"\r\n", b"\n").decode("utf-8", "replace").split("\n"):
        if line[:1] in (" ", "\t"):
            last.append(line.strip())
            continue
        if _LAST in block:
            return block
        name, colon, value = line.partition(":")
        if not colon or name.lower() not in _BLOCK or name.lower() in block:
            return {}
        last = block[name.lower()] = [value.strip()]
    return {}


def _results(lines: list[str], spf: str) -> re.Match[str] | None:
    """What SES says of DMARC: the last line, after those of DKIM, which come after those of SPF."""
    methods = next((at for at, line in enumerate(lines) if line.startswith(("dkim=", "dmarc="))), 0)
    *signatures, last = lines[methods:] or [""]
    if not spf or any(len(line) > _LONGEST_LINE or not line.isprintable() for line in lines):
        return None
    if " ".join(lines[:methods]) != f"amazonses.com; spf={spf}":
        return None
    return _DMARC.fullmatch(last) if all(line.startswith("dkim=") for line in signatures) else None


def _recipients(headers: Headers, trace: SesTrace | None, mailbox: Mailbox) -> tuple[str, ...]:
    """A recipient selects, it never authorises: what the sender wrote in To is good enough beside SES's word."""
    told = trace.recipient if trace else ""
    named = (told, *_addresses(headers))
    ours = tuple(dict.fromkeys(address for address in named if mailbox.accepts(address)))[:MAX_RECIPIENTS]
    return ours or (() if told else (mailbox.address,))


def _addresses(headers: Headers) -> Iterator[str]:
    for value in (*headers.all("to"), *headers.all("cc")):
        for part in _QUOTED_NAME.sub("", value[:MAX_FIELD_BYTES]).split(","):
            bracketed = _BRACKETED.search(part)
            yield (bracketed[1] if bracketed else part.strip()).lower()
