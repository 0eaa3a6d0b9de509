"""Without trusted peers: a DNS server on loopback with real keys, and mails of four providers.

They come by SMTP, from a mailbox on a real Dovecot, and by signed HTTP.
"""

from __future__ import annotations

import http.client
import re
import smtplib
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage

import pytest

from tests.acceptance.waiting import get, replies, text_of, wait_until
from tests.conftest import Up
from tests.integration.dovecot import PASSWORD, USER, running_dovecot
from tests.processes import own_port
from tests.signed_mail import Key, SigningProvider, Zone, letter, name_server
from webordinary.compose.embedded import open_embedded
from webordinary.config import Config
from webordinary.entrypoints.http_intake import signature_of
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Sender

KEPT, BROKEN, PLAIN = "ann@kept.example", "bob@broken.example", "carla@plain.example"


SECRET = "0123456789abcdef" * 4
Send = Callable[[bytes, str, str], None]
"""Hands a mail over: its bytes, envelope sender and recipient."""


def by_smtp(up: Callable[[], Up], raw: bytes, mail_from: str, recipient: str) -> None:
    with smtplib.SMTP(up().smtp_host, up().smtp_port, local_hostname="localhost", timeout=60) as smtp:
        smtp.sendmail(mail_from, [recipient], raw)


def by_http(port: int, raw: bytes, mail_from: str, recipient: str) -> None:
    now = str(int(time.time()))
    headers = {
        "X-WebOrdinary-Timestamp": now,
        "X-WebOrdinary-From": mail_from,
        "X-WebOrdinary-To": recipient,
        "X-WebOrdinary-Signature": signature_of(SECRET, now, mail_from, recipient, raw),
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/mail", raw, headers)
    with connection.getresponse() as answer:
        assert answer.status == 200, answer.read()
    connection.close()


def delivered(raw: bytes, mail_from: str, recipient: str) -> bytes:
    """As a mail server files it in a mailbox."""
    return f"Return-Path: <{mail_from}>\r\nDelivered-To: {recipient}\r\n".encode() + raw


@dataclass
class MailSender:
    up: Up
    providers: dict[str, SigningProvider]
    hand_over: Send
    sent: int = 0

    def mail(self, sender: str, title: str, recipient: str = "edit@localhost") -> tuple[str, bytes]:
        self.sent += 1
        message_id = f"<{self.sent}.{title}@mail.example>"
        text = f"Change the homepage title to {title}"
        return message_id, letter(sender, datetime.now(UTC), text, recipient, message_id)

    def signed(self, raw: bytes, domain: str) -> bytes:
        return self.providers[domain].sign(raw)

    def send(self, raw: bytes, mail_from: str, recipient: str = "edit@localhost") -> None:
        self.hand_over(raw, mail_from, recipient)

    def answers(self, message_id: str, count: int = 1) -> list[EmailMessage]:
        data = self.up.data
        wait_until(data, lambda: len(replies(data).get(message_id, ())) >= count, f"{count} mails about {message_id}")
        return replies(data)[message_id]


def transport(kind: str, closing: ExitStack, up: Callable[[], Up]) -> tuple[dict[str, str], Send]:
    """The settings that open one way in, and how a mail goes that way."""
    if kind == "imap":
        server = closing.enter_context(running_dovecot())
        names = {"HOST": "127.0.0.1", "PORT": str(server.port), "SECURITY": "none", "USER": USER, "PASSWORD": PASSWORD}
        settings = {f"WEBORDINARY_IMAP_{name}": value for name, value in names.items()}
        return settings, lambda raw, mail_from, recipient: server.put(delivered(raw, mail_from, recipient))
    if kind == "http":
        port = closing.enter_context(own_port())
        settings = {"WEBORDINARY_PUSH_PORT": str(port), "WEBORDINARY_PUSH_SECRET": SECRET}
        return settings, lambda raw, mail_from, recipient: by_http(port, raw, mail_from, recipient)
    return {}, lambda raw, mail_from, recipient: by_smtp(up, raw, mail_from, recipient)


IMAP = pytest.param("imap", marks=[pytest.mark.needs("dovecot", "openssl"), pytest.mark.xdist_group("dovecot")])


@pytest.fixture(params=["smtp", IMAP, "http"])
def world(request: pytest.FixtureRequest, start_up: Callable[..., Up]) -> Iterator[MailSender]:
    zone, key = Zone(), Key.ed25519()
    records = {
        "kept.example": b"v=DMARC1; p=reject",
        "broken.example": b"v=DMARC1; p=quarantine",
        "plain.example": None,
    }
    providers = {domain: SigningProvider(domain, key).publish(zone, record) for domain, record in records.items()}
    providers["evil.example"] = SigningProvider("evil.example", Key.ed25519()).publish(zone)
    with name_server(zone.records) as (address, _), ExitStack() as closing:
        settings, hand_over = transport(request.param, closing, lambda: up)
        up = start_up(env=settings | {"WEBORDINARY_DNS_SERVERS": address, "WEBORDINARY_TRUSTED_PEERS": ""})
        with open_embedded(Config(data=up.data)) as services:
            for user, sender in (("ann", KEPT), ("bob", BROKEN), ("carla", PLAIN)):
                services.directory.add_sender(Sender(sender, ProjectUser("amelia", user)), services.clock.now())
        yield MailSender(up, providers, hand_over)
        assert up.stop() == 0


def test_four_providers_each_end_as_they_must(world: MailSender) -> None:
    forwarded, raw = world.mail(KEPT, "Forwarded")
    hop = b"Received: from mx.kept.example by forwarder.example; now\r\n"
    world.send(hop + world.signed(raw, "kept.example"), "srs@forwarder.example")
    assert "Forwarded" in text_of(world.answers(forwarded)[0])

    plain, raw = world.mail(PLAIN, "Undeclared")
    world.send(world.signed(raw, "plain.example"), PLAIN)
    assert "Undeclared" in text_of(world.answers(plain)[0])
    assert "<title>Undeclared" in get(world.up)

    forged, raw = world.mail(KEPT, "Forged")
    world.send(world.signed(raw, "evil.example"), "eve@evil.example")
    [question] = world.answers(forged)
    assert (question["To"], question["Subject"]) == (KEPT, "Re: Did you write this?")

    broken, raw = world.mail(BROKEN, "Confirmed")
    world.send(world.signed(raw, "broken.example") + b"-- \r\nScanned by a gateway\r\n", BROKEN)
    [question] = world.answers(broken)
    assert question["To"] == BROKEN
    assert "Confirmed" in text_of(question)
    assert "<title>Undeclared" in get(world.up), "neither the forged mail nor the changed one was done"

    address = re.findall(r"<([^>]+)>", question["Reply-To"])[0]
    _, yes = world.mail(BROKEN, "x", address)
    world.send(yes.replace(b"Change the homepage title to x", b"Yes, that was me."), BROKEN, address)
    answered = world.answers(broken, 2)
    assert any("Confirmed" in text_of(mail) and "Did you write" not in text_of(mail) for mail in answered)
    assert "<title>Confirmed" in get(world.up)
    assert len(replies(world.up.data)[forged]) == 1, "the forger's mail got nothing but the question to its victim"


def test_a_replayed_signature_is_done_once_and_never_for_another_site(world: MailSender) -> None:
    first, raw = world.mail(KEPT, "Once")
    signed = world.signed(raw, "kept.example")
    world.send(signed, KEPT)
    assert "Once" in text_of(world.answers(first)[0])
    second, raw = world.mail(KEPT, "Twice")
    world.send(signed, "eve@evil.example")
    world.send(signed, "eve@evil.example", "edit+amelia@localhost")
    world.send(world.signed(raw, "kept.example"), KEPT)
    assert "Twice" in text_of(world.answers(second)[0])
    mails = world.answers(first, 2)
    assert sorted(mail["Subject"] for mail in mails) == ["Re: Did you write this?", "Re: Title"]
    assert "<title>Twice" in get(world.up)
