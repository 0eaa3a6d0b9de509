"""Our own proof of a sender: a DKIM signature of the domain in From, aligned as DMARC asks (RFC 6376, RFC 7489).

DMARC accepts an aligned SPF pass too. We do not check SPF: it says nothing about a forwarded mail, and no SPF library
is maintained. An aligned DKIM pass alone is a DMARC pass.

A signature counts only if it fixes what the mail means to us. It covers the whole body (no `l=`), the fields that say
who asks for what (`SIGNED`), and it names our mailbox in a signed To or Cc: a mail that the sender wrote to another
person proves nothing here. Its signed Date is recent, so that a mail which we have forgotten is not done again.

DNS is asked only about domains of entitled senders, and only if a signature could be aligned. Failures mean no proof.

PinnedProvider: Authentication-Results of the operator's own mail provider (RFC 8601).

Anyone can write such a field. It counts only under these conditions, else there is no verdict and our own check runs:
the transport took the mail from that provider; the field names the pinned authserv-id; it is the topmost
Authentication-Results field of all; above it are no fields of the author and no Received field of another organisation.
A provider must remove fields that claim its own id from mail that comes in (RFC 8601, section 5), or at least put its
own on top of them: pin no other provider.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from ipaddress import ip_address, ip_network
from typing import Protocol

from webordinary.mail.addresses import addresses_in, ascii_address
from webordinary.mail.auth import AwaitsConfirmation
from webordinary.mail.parsing.headers import Headers, read_headers, sent_at_of, split
from webordinary.model.errors import Transient
from webordinary.model.mail import Delivery, Envelope, ParsedMail, TransportKind, TransportVerdicts

MAX_SIGNATURES = 3
"""Aligned signatures that are looked at; a mail carries one, or two of different key types."""
MAX_RECORD = 4096
MAX_CLOCK_SKEW = timedelta(days=1)
SIGNED = ("from", "to", "subject", "date", "message-id")
SINGLE = frozenset(
    {*SIGNED, "sender", "reply-to", "cc", "in-reply-to", "references"}
    | {"mime-version", "content-type", "content-transfer-encoding"}
)
"""Fields that a mail has once; a second one is read by some programs and not by others."""
_KEY_TYPES = {"rsa-sha256": "rsa", "ed25519-sha256": "ed25519"}
_DOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?)*")
_BOUNDARY = re.compile(r'boundary\s*=\s*(?:"([^"]{1,200})"|([^\s;"]{1,200}))', re.I)


class DnsFailed(Transient):
    """A name server gave no answer in time: whether there is a record is unknown."""


class Dns(Protocol):
    """The DNS: cached, bounded in time and in the number of lookups at once."""

    def txt(self, name: str) -> tuple[bytes, ...]:
        """The TXT records of a name, each in one piece; empty where there are none. Raises DnsFailed."""


class SignatureVerifier(Protocol):
    """The cryptography of DKIM, within limits on processor time and memory."""

    def verified(self, raw: bytes, keys: Mapping[int, bytes]) -> frozenset[int]:
        """Which of these signatures hold. `keys` has the key record of each, by its place among DKIM-Signature fields.

        A mail that exceeds a limit has no valid signature.
        """


@dataclass(frozen=True, slots=True)
class Signature:
    """One DKIM-Signature field: its place among them, and its tags."""

    place: int
    tags: Mapping[str, str]

    @property
    def domain(self) -> str:
        """The domain that signed."""
        return self.tags.get("d", "").lower()

    @property
    def signed(self) -> frozenset[str]:
        """The names of the fields that it covers."""
        return frozenset(name.strip() for name in self.tags.get("h", "").lower().split(":"))

    @property
    def key_name(self) -> str:
        """Where the DNS has its key."""
        return f"{self.tags['s'].lower()}._domainkey.{self.domain}"


class AlignedSignature:
    """See SenderPolicy. Asks for a DKIM signature that is aligned with From and fixes the meaning of the mail.

    Signed mails older than `max_age` prove nothing: it must not exceed the time for which mails are remembered.
    """

    def __init__(self, dns: Dns, verifier: SignatureVerifier, max_age: timedelta = timedelta(days=7)) -> None:
        self._dns, self._verifier, self._max_age = dns, verifier, max_age

    def doubt(self, envelope: Envelope, mail: ParsedMail, load: Callable[[], bytes]) -> AwaitsConfirmation | None:
        """`load` reads the whole mail; it is called only if a signature could be aligned."""
        domain = ascii_address(mail.sender).rpartition("@")[2].lower()
        try:
            reason = self._unproven(envelope, domain, load)
        except DnsFailed as problem:
            reason = f"the DNS did not answer ({problem})"
        return AwaitsConfirmation(f"nothing proves that {mail.sender} wrote this: {reason}") if reason else None

    def _unproven(self, envelope: Envelope, domain: str, load: Callable[[], bytes]) -> str:
        """Why the mail proves nothing; empty if it does prove its sender."""
        raw = load()
        headers = read_headers(raw)
        related = [one for one in signatures(headers) if may_align(one.domain, domain)][:MAX_SIGNATURES]
        if not related:
            return f"it has no DKIM signature of {domain}"
        if reason := self._unfit(headers, envelope):
            return reason
        strict = is_strict(dmarc_record(domain, self._dns))
        judged = [
            (one, weakness(one, raw, headers, envelope) or misalignment(one, domain, strict=strict)) for one in related
        ]
        sound = [one for one, reason in judged if not reason]
        return self._verified(raw, sound) if sound else judged[0][1]

    def _unfit(self, headers: Headers, envelope: Envelope) -> str:
        if twice := sorted(name for name, times in _counted(headers).items() if times > 1 and name in SINGLE):
            return f"it has more than one {twice[0].title()} field"
        sent_at = sent_at_of(headers)
        if sent_at is None or not -MAX_CLOCK_SKEW <= envelope.received_at - sent_at <= self._max_age:
            return f"its Date is not of the last {self._max_age.days} days: it may be an old mail sent again"
        return ""

    def _verified(self, raw: bytes, sound: Sequence[Signature]) -> str:
        keys = {one.place: record for one in sound if (record := self._key(one))}
        if not keys:
            return f"{sound[0].key_name} has no usable key in the DNS"
        if self._verifier.verified(raw, keys):
            return ""
        return f"the signature of {sound[0].domain} does not match: the mail was changed on its way, or is forged"

    def _key(self, signature: Signature) -> bytes:
        records = [record for record in self._dns.txt(signature.key_name) if b"p=" in record.replace(b" ", b"")]
        usable = len(records) == 1 and len(records[0]) <= MAX_RECORD and _is_usable(records[0], signature)
        return records[0] if usable else b""


def signatures(headers: Headers) -> Iterator[Signature]:
    """Every DKIM-Signature field that can be read, from the top."""
    for place, value in enumerate(headers.all("dkim-signature")):
        if tags := tags_of(value):
            yield Signature(place, tags)


def tags_of(value: str) -> dict[str, str]:
    """A list of `name=value;` (RFC 6376, section 3.2); empty if it is none."""
    tags: dict[str, str] = {}
    for piece in value.strip().removesuffix(";").split(";"):
        name, equals, content = piece.partition("=")
        if not equals or name.strip() in tags:
            return {}
        tags[name.strip()] = content.strip()
    return tags


def weakness(signature: Signature, raw: bytes, headers: Headers, envelope: Envelope) -> str:
    """Why this signature would prove nothing even if it is valid; empty for a sound one."""
    tags, now = signature.tags, envelope.received_at.timestamp()
    if tags.get("a") not in _KEY_TYPES or not (_DOMAIN.fullmatch(signature.domain) and "s" in tags):
        return f"its signature by {tags.get('a', 'an unnamed method')} is none that is accepted"
    if not _DOMAIN.fullmatch(signature.key_name):
        return "its signature names no key"
    if "l" in tags:
        return "its signature leaves the end of the mail open (l=)"
    if missing := [name for name in SIGNED if name not in signature.signed]:
        return f"its signature leaves {missing[0].title()} open"
    if "x" in tags and not (tags["x"].isdecimal() and int(tags["x"][:12]) >= now):
        return "its signature has expired"
    if envelope.recipient not in set(_signed_recipients(signature, headers)):
        return f"{envelope.recipient} is not among the recipients that were signed: it may be a mail to another person"
    if "content-type" not in signature.signed and not _has_one_reading(raw, headers):
        return "its signature leaves Content-Type open, and the body can be read in several ways"
    return ""


def _signed_recipients(signature: Signature, headers: Headers) -> Iterator[str]:
    yield from addresses_in(headers.all("to"))
    if "cc" in signature.signed:
        yield from addresses_in(headers.all("cc"))


def _has_one_reading(raw: bytes, headers: Headers) -> bool:
    """Whether the signed body fits one Content-Type only: Gmail and Yahoo do not sign that field.

    A multipart body must begin with its boundary, so that another boundary does not fit; other bodies must not look
    like a multipart one, and must be plain text.
    """
    kind = headers.first("content-type").partition(";")[0].strip().lower()
    first_line = split(raw)[1][:300].partition(b"\r\n")[0].rstrip(b" \t")
    if not kind.startswith("multipart/"):
        return kind in ("", "text/plain") and not first_line.startswith(b"--")
    boundary = _BOUNDARY.search(headers.first("content-type"))
    return boundary is not None and first_line == b"--" + (boundary[1] or boundary[2]).encode("utf-8", "replace")


def _counted(headers: Headers) -> Counter[str]:
    return Counter(name for name, _ in headers.fields)


def _is_usable(record: bytes, signature: Signature) -> bool:
    """Whether the owner of the domain lets this key sign such mails; a key in testing (t=y) proves nothing."""
    key, tags = tags_of(record.decode("ascii", "replace")), signature.tags
    flags, services, hashes = (_words(key.get(tag, usual)) for tag, usual in (("t", ""), ("s", "*"), ("h", "sha256")))
    return (
        key.get("v", "DKIM1") == "DKIM1"
        and key.get("k", "rsa") == _KEY_TYPES[tags["a"]]
        and key.get("p", "") != ""
        and "sha256" in hashes
        and bool({"*", "email"} & services)
        and "y" not in flags
        and ("s" not in flags or tags.get("i", "@" + signature.domain).lower().endswith("@" + signature.domain))
    )


def _words(value: str) -> set[str]:
    return {word.strip() for word in value.split(":")}


def may_align(signer: str, domain: str) -> bool:
    """Relaxed alignment: both belong to one organisation."""
    return signer == domain or (organisation(domain) != "" and organisation(signer) == organisation(domain))


def misalignment(signature: Signature, domain: str, *, strict: bool) -> str:
    """Why a signature that may align does not; empty if it does."""
    if not strict or signature.domain == domain:
        return ""
    return f"it is signed by {signature.domain}, and no DMARC record of {domain} lets that speak for it"


@cache
def _public_suffixes() -> Callable[[str], str | None]:
    from publicsuffixlist import PublicSuffixList  # noqa: PLC0415 - slow to load, and AWS never needs it

    suffixes: Callable[[str], str | None] = PublicSuffixList().privatesuffix
    return suffixes


def organisation(domain: str) -> str:
    """The domain that was registered (`example.co.uk`); empty for a public suffix."""
    return _public_suffixes()(domain) or ""


def dmarc_record(domain: str, dns: Dns) -> Mapping[str, str] | None:
    """The DMARC record that counts for a domain: its own, else that of its organisation; None without one."""
    for owner in dict.fromkeys((domain, organisation(domain))):
        found = [tags for record in (dns.txt(f"_dmarc.{owner}") if owner else ()) if (tags := _dmarc_tags(record))]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _dmarc_tags(record: bytes) -> dict[str, str]:
    tags = tags_of(record[:MAX_RECORD].decode("ascii", "replace"))
    return tags if next(iter(tags.items()), None) == ("v", "DMARC1") else {}


def is_strict(record: Mapping[str, str] | None) -> bool:
    """Without a DMARC record only the very domain in From may sign; with one, as its owner says (adkim)."""
    return record is None or record.get("adkim", "r").lower() != "r"


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
        field = "" if headers.defect else self._topmost(headers)
        return _dmarc_in(field) if field else None

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
                field = without_comments(value)
                named, _, results = field.partition(";")
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
