"""May this mail act for its sender? Judged by what the transport knows, never by what the mail claims."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address, ip_network
from typing import ClassVar, Protocol

from webordinary.mail.addresses import MAX_ADDRESS, Mailbox, addresses_in, ascii_address
from webordinary.mail.parsing.headers import MAX_HEADER_BYTES, Headers, author_of, read_headers, split
from webordinary.model.errors import Permanent
from webordinary.model.mail import Envelope, ParsedMail, TransportVerdicts
from webordinary.model.projects import Sender


@dataclass(frozen=True, slots=True)
class Admitted:
    """The sender is proven and entitled."""


@dataclass(frozen=True, slots=True)
class AwaitsConfirmation:
    """The sender may not be the person in the header: the mail is kept for a person, and nothing is done."""

    reason: str
    word: ClassVar[str] = "held"


@dataclass(frozen=True, slots=True)
class Refused:
    """Not for us. No reply is sent: a stranger's address may be forged, a machine would answer back."""

    reason: str
    word: ClassVar[str] = "refused"


Verdict = Admitted | AwaitsConfirmation | Refused


Load = Callable[[], bytes]
"""Reads the whole mail, for a policy that needs more than its header."""


class SenderPolicy(Protocol):
    """Decides about a sender that is known and a mail that a person wrote."""

    def doubt(self, envelope: Envelope, mail: ParsedMail, load: Load) -> AwaitsConfirmation | Refused | None:
        """None when the sender is proven, else what becomes of the mail."""


class TrustedPeers:
    """Trusts only the hosts of the operator's own networks, such as their mail server."""

    def __init__(self, networks: Sequence[str]) -> None:
        try:
            self._networks = tuple(ip_network(network, strict=False) for network in networks)
        except ValueError as problem:
            raise Permanent(f"trusted peers: {problem}; write them like 127.0.0.1 or 10.0.0.0/8") from problem

    def doubt(self, envelope: Envelope, mail: ParsedMail, load: Load) -> AwaitsConfirmation | None:
        try:
            peer = ip_address(envelope.peer)
        except ValueError:
            return AwaitsConfirmation(f"the peer {envelope.peer!r} has no address to be trusted by")
        if any(peer.version == network.version and peer in network for network in self._networks):
            return None
        return AwaitsConfirmation(f"{peer} is no trusted peer, and nothing else proves that {mail.sender} wrote this")


class ProofChain:
    """See SenderPolicy. The verdict of the transport counts first, then the operator's own hosts, then our own check.

    A DMARC failure that the transport reports is final. Where the transport has no opinion, the next one is asked.
    """

    def __init__(self, *policies: SenderPolicy) -> None:
        self._policies = policies

    def doubt(self, envelope: Envelope, mail: ParsedMail, load: Load) -> AwaitsConfirmation | Refused | None:
        verdicts = envelope.verdicts
        if verdicts and verdicts.dmarc in (_GOOD, "fail"):
            return _unproven(verdicts, mail)
        doubt: AwaitsConfirmation | Refused | None = AwaitsConfirmation("nothing here can prove a sender")
        for policy in self._policies:
            doubt = policy.doubt(envelope, mail, load)
            if doubt is None:
                return None
        return doubt


def authenticate(
    envelope: Envelope, mail: ParsedMail, known: Sequence[Sender], policy: SenderPolicy, load: Load = bytes
) -> Verdict:
    """`known` is what the directory says about the address in From; `load` reads the whole mail."""
    if mail.automatic or not envelope.mail_from:
        return Refused("this mail was written by a machine (auto-reply, bounce or list mail)")
    if mail.doubt:
        return AwaitsConfirmation(f"nothing proves who wrote this: {mail.doubt}")
    if not mail.sender:
        return Refused("this mail does not name exactly one author in From")
    if not known:
        return not_entitled(mail)
    return policy.doubt(envelope, mail, load) or Admitted()


def not_entitled(mail: ParsedMail) -> Refused:
    """The verdict on a sender that the directory does not know."""
    return Refused(f"{mail.sender} is entitled to no project: add them with `webordinary project add`")


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


@dataclass(frozen=True, slots=True)
class SesTrace:
    """The fields of SES's header block."""

    peer: str
    mail_from: str
    recipient: str
    """Empty where SES names none, as it may when there are several."""
    verdicts: TransportVerdicts


def envelopes_of(raw: bytes, ses_id: str, mailbox: Mailbox, received_at: datetime) -> tuple[Envelope, ...]:
    """One envelope for each of our addresses that the mail went to; none if it went to no address of ours.

    `ses_id` is SES's name for the mail, under which it lies in the bucket.
    """
    headers = read_headers(raw)
    trace = read_trace(raw, ses_id)
    peer = trace.peer if trace else ""
    verdicts = trace.verdicts if trace and not headers.defect else None
    mail_from = trace.mail_from if trace else author_of(headers).address
    recipients = _recipients(headers, trace, mailbox)
    return tuple(Envelope(peer, mail_from, recipient, received_at, verdicts) for recipient in recipients)


def read_trace(raw: bytes, ses_id: str) -> SesTrace | None:
    """SES's verdicts on this mail; None where they could be the sender's own header fields."""
    block = _block(raw)
    values = {name: " ".join(lines) for name, lines in block.items()}
    received = _RECEIVED.fullmatch(values.get("received", ""))
    if received is None or received["ses_id"] != ses_id:
        return None
    results = _results(block.get("authentication-results", []), values.get("received-spf", ""))
    return SesTrace(
        peer=received["peer"],
        mail_from=values.get("return-path", "").strip("<> ")[:MAX_ADDRESS],
        recipient=(received["recipient"] or "").lower(),
        verdicts=TransportVerdicts(
            dmarc=results["dmarc"] if results else "",
            dmarc_domain=results["domain"].lower() if results else "",
            spam=values.get("x-ses-spam-verdict", "").lower(),
            virus=values.get("x-ses-virus-verdict", "").lower(),
        ),
    )


def _block(raw: bytes) -> dict[str, list[str]]:
    """The fields from the top to X-SES-RECEIPT, line by line; empty if anything else is among them."""
    block: dict[str, list[str]] = {}
    last: list[str] = []
    for line in split(raw[:MAX_HEADER_BYTES])[0].decode("utf-8", "replace").split("\r\n"):
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
    traced = trace.recipient if trace else ""
    named = (traced, *addresses_in((*headers.all("to"), *headers.all("cc"))))
    ours = tuple(dict.fromkeys(address for address in named if mailbox.accepts(address)))[:MAX_RECIPIENTS]
    return ours or (() if traced else (mailbox.address,))


_GOOD = "pass"
_HARMLESS = (_GOOD, "gray")  # SES is not sure that it is no spam; DMARC says who wrote it


class SesVerdicts:
    """See SenderPolicy. Asks for an aligned DMARC pass of exactly the domain in From; SPF or DKIM alone prove less."""

    def doubt(self, envelope: Envelope, mail: ParsedMail, load: Load) -> AwaitsConfirmation | Refused | None:
        verdicts = envelope.verdicts
        if verdicts is None:
            return AwaitsConfirmation(
                "SES left no verdicts on this mail that a sender could not have written: "
                "check that mail reaches the bucket through the receipt rule alone, and that the rule adds no headers"
            )
        if verdicts.virus == "fail":
            return Refused("SES found a virus in this mail")
        if verdicts.spam == "fail":
            return AwaitsConfirmation("SES takes this mail for spam")  # of a known sender: SES errs, so ask
        return _unproven(verdicts, mail) or _unscanned(verdicts)


def _unproven(verdicts: TransportVerdicts, mail: ParsedMail) -> AwaitsConfirmation | None:
    if verdicts.dmarc != _GOOD:
        found = verdicts.dmarc or "nothing that can be read"
        return AwaitsConfirmation(
            f"the mail provider says of DMARC: {found}; without a pass nothing proves that {mail.sender} wrote this"
        )
    domain = ascii_address(mail.sender).rpartition("@")[2].lower()
    if not domain or verdicts.dmarc_domain != domain:
        return AwaitsConfirmation(
            f"the mail provider has proven {verdicts.dmarc_domain or 'no domain'}, and From names {mail.sender}"
        )
    return None


def _unscanned(verdicts: TransportVerdicts) -> AwaitsConfirmation | None:
    if verdicts.virus == _GOOD and verdicts.spam in _HARMLESS:
        return None
    found = f"spam {verdicts.spam or 'unsaid'}, virus {verdicts.virus or 'unsaid'}"
    return AwaitsConfirmation(
        f"SES did not scan this mail to the end ({found}): switch on scanning in the receipt rule"
    )
