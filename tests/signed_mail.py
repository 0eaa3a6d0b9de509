"""Mails with real DKIM signatures, and the DNS zone that their keys are in."""

from __future__ import annotations

import base64
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime

import dkim
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import nacl.signing

from webordinary.mail.dmarc import DnsFailed

FIELDS = (b"from", b"to", b"cc", b"subject", b"date", b"message-id", b"mime-version", b"content-type")


@dataclass(frozen=True)
class Key:
    """A key pair as a provider has it; `record` is what its DNS says."""

    private: bytes
    record: bytes
    algorithm: bytes

    @classmethod
    def ed25519(cls) -> Key:
        key = nacl.signing.SigningKey.generate()
        public = base64.b64encode(bytes(key.verify_key))
        return cls(base64.b64encode(bytes(key)), b"v=DKIM1; k=ed25519; p=" + public, b"ed25519-sha256")

    @classmethod
    def rsa(cls, bits: int = 2048) -> Key:
        private = _openssl("genrsa", "-traditional", str(bits))
        public = _openssl("rsa", "-pubout", "-outform", "DER", given=private)
        return cls(private, b"v=DKIM1; k=rsa; p=" + base64.b64encode(public), b"rsa-sha256")


def _openssl(*arguments: str, given: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *arguments], input=given, capture_output=True, check=True).stdout


@dataclass
class Zone:
    """See Dns. Answers from a table and counts what was asked."""

    records: dict[str, Sequence[bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    broken: bool = False

    def txt(self, name: str) -> tuple[bytes, ...]:
        self.asked.append(name)
        if self.broken:
            raise DnsFailed(f"{name}: no answer")
        return tuple(self.records.get(name, ()))


class InProcessVerifier:
    """See SignatureVerifier."""

    def verified(self, raw: bytes, keys: Mapping[int, bytes]) -> frozenset[int]:
        return frozenset(place for place, record in keys.items() if _holds(raw, place, record))


def _holds(raw: bytes, place: int, record: bytes) -> bool:
    try:
        return bool(dkim.DKIM(raw).verify(place, dnsfunc=lambda _, timeout=0: record))
    except dkim.DKIMException:
        return False


@dataclass(frozen=True)
class SigningProvider:
    """A mail provider that signs for a domain."""

    domain: str
    key: Key
    selector: str = "s1"

    def publish(self, zone: Zone, dmarc: bytes | None = b"v=DMARC1; p=reject") -> SigningProvider:
        zone.records[f"{self.selector}._domainkey.{self.domain}"] = (self.key.record,)
        if dmarc is not None:
            zone.records[f"_dmarc.{self.domain}"] = (dmarc,)
        return self

    def sign(self, raw: bytes, fields: Sequence[bytes] = FIELDS, *, length: bool = False) -> bytes:
        present = {line.partition(b":")[0].lower() for line in raw.partition(b"\r\n\r\n")[0].split(b"\r\n")}
        signature: bytes = dkim.sign(
            raw, self.selector.encode(), self.domain.encode(), self.key.private,
            canonicalize=(b"relaxed", b"relaxed"), signature_algorithm=self.key.algorithm,
            include_headers=[name for name in fields if name in present or name in FIELDS], length=length,
        )  # fmt: skip
        return signature + raw


def letter(
    sender: str,
    sent_at: datetime,
    text: str = "Change the title to Spring Sale",
    recipient: str = "edit@localhost",
    message_id: str = "<1@example.com>",
    content_type: str = "text/plain; charset=utf-8",
    **more: str,
) -> bytes:
    """A mail as a mail program writes it."""
    fields = {
        "From": sender, "To": recipient, "Subject": "Title", "Date": format_datetime(sent_at), "Message-ID": message_id,
        "MIME-Version": "1.0", "Content-Type": content_type, **more,
    }  # fmt: skip
    header = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
    return f"{header}\r\n{text}\r\n".encode()


@contextmanager
def name_server(records: Mapping[str, Sequence[bytes]]) -> Iterator[tuple[str, list[str]]]:
    """A name server on loopback: its address, and the names that it was asked for."""
    asked: list[str] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as served:
        served.bind(("127.0.0.1", 0))

        def serve() -> None:
            while True:
                data, peer = served.recvfrom(4096)
                if not data:
                    return
                served.sendto(_answer(data, records, asked), peer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{served.getsockname()[1]}", asked
        finally:
            served.sendto(b"", served.getsockname())
            thread.join()


def _answer(data: bytes, records: Mapping[str, Sequence[bytes]], asked: list[str]) -> bytes:
    query = dns.message.from_wire(data)
    name = query.question[0].name
    text = name.to_text(omit_final_dot=True).lower()
    asked.append(text)
    reply = dns.message.make_response(query)
    reply.flags |= dns.flags.RA
    if text.startswith("broken."):
        reply.set_rcode(dns.rcode.SERVFAIL)
    elif text not in records:
        reply.set_rcode(dns.rcode.NXDOMAIN)
    else:
        quoted = [
            " ".join(f'"{one[at : at + 200].decode()}"' for at in range(0, len(one), 200)) for one in records[text]
        ]
        reply.answer.append(dns.rrset.from_text_list(name, 60, "IN", dns.rdatatype.TXT, quoted))
    return reply.to_wire()
