"""Authentication-Results of the operator's own mail provider (RFC 8601).

Anyone can write such a field. It counts only under these conditions, else there is no verdict and our own check runs:
the transport took the mail from that provider; the field names the pinned authserv-id; it is the topmost
Authentication-Results field of all; above it are no fields of the author and no Received field of another organisation.
A provider must remove fields that claim its own id from mail that comes in (RFC 8601, section 5), or at least put its
own on top of them: pin no other provider.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import ip_address, ip_network

from webordinary.mail.dmarc import organisation
from webordinary.mail.parsing.headers import Headers, read_headers
from webordinary.model.mail import Delivery, TransportKind, TransportVerdicts

_FIELD = "authentication-results"
_OF_AUTHOR = frozenset(
    {"from", "sender", "reply-to", "to", "cc", "subject", "date", "message-id", "mime-version", "content-type"}
)
_MAX_RESULTS = 4096
_BY = re.compile(r"(?<!\S)by\s+(?=\[?([A-Za-z0-9.:_-]{1,253}))", re.I)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\\.|[()]|[^"\\()]+')
_DMARC = re.compile(r"dmarc\s*=\s*([a-z]+)(?=\s|$)(.*)", re.I | re.S)
_HEADER_FROM = re.compile(r"(?:^|\s)header\.from\s*=\s*([^\s;\"]+)", re.I)


class PinnedProvider:
    """Reads the verdicts of the provider that hands its mail to us.

    Mailbox, drop folder and signed POST are filled by the provider alone. SMTP is open to everyone, so there the peer
    must be one of the `peers`.
    """

    def __init__(self, authserv_ids: Sequence[str], peers: Sequence[str]) -> None:
        self._ids = frozenset(one.lower() for one in authserv_ids)
        self._peers = tuple(ip_network(peer) for peer in peers)

    def verdicts(self, raw: bytes, delivery: Delivery) -> TransportVerdicts | None:
        """The provider's verdicts, or None where the mail has none that its sender could not have written."""
        if not self._ids or not self._hands_over(delivery):
            return None
        headers = read_headers(raw)
        said = "" if headers.defect else self._topmost(headers)
        return _dmarc_in(said) if said else None

    def _hands_over(self, delivery: Delivery) -> bool:
        if delivery.transport is not TransportKind.SMTP:
            return True
        try:
            peer = ip_address(delivery.peer)
        except ValueError:
            return False
        return any(peer.version == network.version and peer in network for network in self._peers)

    def _topmost(self, headers: Headers) -> str:
        """The results in the topmost field, without comments, if the provider wrote it."""
        for name, value in headers.fields:
            if name in _OF_AUTHOR or (name == "received" and self._is_foreign(value)):
                return ""
            if name == _FIELD:
                said = without_comments(value)
                named, _, results = said.partition(";")
                return results if (named.split() or [""])[0].lower() in self._ids else ""
        return ""

    def _is_foreign(self, received: str) -> bool:
        """Whether another organisation took the mail after the provider did. A HELO name may be `by`: all count."""
        hosts = [host.lower() for host in _BY.findall(without_comments(received))]
        ours = {organisation(one) for one in self._ids}
        return not hosts or any(_is_public(host) and organisation(host) not in ours for host in hosts)


def _is_public(host: str) -> bool:
    """A machine without a public name is inside."""
    return "." in host and not host.replace(".", "").isdecimal() and host.partition(".")[0] != "localhost"


def without_comments(value: str) -> str:
    """A structured field without its comments, which may be nested; empty if it is damaged or too long."""
    if len(value) > _MAX_RESULTS:
        return ""
    kept, depth, read = [], 0, 0
    for token in _TOKEN.finditer(value):
        read += len(token[0])
        if token[0] == "(":
            depth += 1
        elif token[0] == ")":
            depth -= 1
        elif not depth:
            kept.append(token[0])
        if depth < 0:
            return ""
    return " ".join(kept) if depth == 0 and read == len(value) else ""


def _dmarc_in(results: str) -> TransportVerdicts | None:
    """The one DMARC result; a field that seems to have two of them says nothing."""
    unquoted = re.sub(r'"(?:[^"\\]|\\.)*"', '"', results)
    found = [match for part in unquoted.split(";") if (match := _DMARC.match(part.strip()))]
    if len(found) != 1:
        return None
    domains = _HEADER_FROM.findall(found[0][2])
    if len(domains) != 1:
        return None
    return TransportVerdicts(dmarc=found[0][1].lower(), dmarc_domain=domains[0].lower().rpartition("@")[2])
