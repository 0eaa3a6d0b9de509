"""May this mail act for its sender? Judged by what the transport knows, never by what the mail claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import ClassVar, Protocol

from webordinary.model.errors import Permanent
from webordinary.model.mail import Envelope, ParsedMail
from webordinary.model.projects import Sender


@dataclass(frozen=True, slots=True)
class Admitted:
    """The sender is who they say, and we know them."""


@dataclass(frozen=True, slots=True)
class Held:
    """A known sender, but it may be somebody else writing: kept for a person, and nothing is done."""

    reason: str
    word: ClassVar[str] = "held"


@dataclass(frozen=True, slots=True)
class Refused:
    """Not for us. Nobody gets a reply: a stranger's address may be forged, a machine would answer back."""

    reason: str
    word: ClassVar[str] = "refused"


Verdict = Admitted | Held | Refused


class SenderPolicy(Protocol):
    """Decides about a sender that is known and a mail that a person wrote."""

    def doubt(self, envelope: Envelope, mail: ParsedMail) -> Held | Refused | None:
        """None when the sender is proven, else what becomes of the mail."""


class TrustedPeers:
    """Believes the hosts of the operator's own networks, such as their mail server, and nobody else."""

    def __init__(self, networks: Sequence[str]) -> None:
        try:
            self._networks = tuple(ip_network(network, strict=False) for network in networks)
        except ValueError as problem:
            raise Permanent(f"trusted peers: {problem}; write them like 127.0.0.1 or 10.0.0.0/8") from problem

    def doubt(self, envelope: Envelope, mail: ParsedMail) -> Held | None:
        """See SenderPolicy."""
        try:
            peer = ip_address(envelope.peer)
        except ValueError:
            return Held(f"the peer {envelope.peer!r} has no address to be trusted by")
        if any(peer.version == network.version and peer in network for network in self._networks):
            return None
        return Held(f"{peer} is no trusted peer, and nothing else proves that {mail.sender} wrote this")


def authenticate(envelope: Envelope, mail: ParsedMail, known: Sequence[Sender], policy: SenderPolicy) -> Verdict:
    """`known` is what the directory says about the address in From."""
    if mail.automatic or not envelope.mail_from:
        return Refused("this mail was written by a machine (auto-reply, bounce or list mail)")
    if not mail.sender:
        return Refused("this mail does not name exactly one author in From")
    if not known:
        return Refused(f"{mail.sender} is entitled to no project: add them with `webordinary project add`")
    return policy.doubt(envelope, mail) or Admitted()
