"""Break-ins by mail, without trusted peers: 33 tricks with From and 25 hijacks of another customer's conversation.

The attacker signs for evil.example with a valid key, and is a customer of the bakery where that helps.
"""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import count
from pathlib import Path

import pytest

from tests.harness.embedded import AMELIA_SCOTT, SCOTT, EmbeddedHarness, open_harness
from tests.integration.dovecot import PASSWORD, USER, running_dovecot
from tests.processes import own_port
from tests.signed_mail import Key, SigningProvider, Zone, letter, name_server
from webordinary.compose.background import mail_readers
from webordinary.entrypoints.http_intake import signature_of
from webordinary.entrypoints.server import push_server
from webordinary.mail.intake import accept
from webordinary.model.mail import Delivery, TransportKind
from webordinary.model.names import ProjectUser, job_id_of
from webordinary.model.projects import Project, Sender, Thread
from webordinary.workflow.start import start

EVE = "eve@evil.example"
NUMBERS = count()


@pytest.fixture(scope="module")
def key() -> Key:
    return Key.ed25519()


@pytest.fixture
def zone() -> Zone:
    return Zone()


@pytest.fixture
def harness(tmp_path: Path, zone: Zone) -> Iterator[EmbeddedHarness]:
    with (
        name_server(zone.records) as (address, _),
        open_harness(tmp_path, trusted_peers=(), dns_servers=(address,)) as made,
    ):
        yield made


@pytest.fixture
def evil(zone: Zone, key: Key) -> SigningProvider:
    return SigningProvider("evil.example", key).publish(zone)


def arrive(harness: EmbeddedHarness, raw: bytes, recipient: str = "edit@localhost", mail_from: str = EVE) -> str:
    services = harness.services
    told = Delivery(TransportKind.SMTP, "192.0.2.66", mail_from, (recipient,), services.clock.now())
    [mail] = accept(raw, told, mails=services.raw_mails, events=services.events)
    start(mail.email_id, harness.engine, services.raw_mails)
    harness.engine.run_ready()
    return mail.email_id


FROM_TRICKS = {
    "the plain address": [f"From: {SCOTT}"],
    "the address with a name": [f"From: Scott <{SCOTT}>"],
    "two From fields, theirs first": [f"From: {EVE}", f"From: {SCOTT}"],
    "two From fields, ours first": [f"From: {SCOTT}", f"From: {EVE}"],
    "a list": [f"From: {EVE}, {SCOTT}"],
    "a list with ours first": [f"From: {SCOTT}, {EVE}"],
    "a list with names": [f"From: Eve <{EVE}>, Scott <{SCOTT}>"],
    "ours as the display name": [f"From: {SCOTT} <{EVE}>"],
    "ours as a quoted display name": [f'From: "{SCOTT}" <{EVE}>'],
    "ours as a bracketed display name": [f'From: "<{SCOTT}>" <{EVE}>'],
    "two bracketed addresses": [f"From: <{SCOTT}> <{EVE}>"],
    "an encoded address": ["From: =?utf-8?q?scott=40example=2Ecom?="],
    "an encoded word around ours": [f"From: =?utf-8?b?c2NvdHRAZXhhbXBsZS5jb20=?= <{EVE}>"],
    "a group": [f"From: Friends: {SCOTT};"],
    "a group beside an address": [f"From: Friends: {SCOTT}; {EVE}"],
    "a comment behind": [f"From: {EVE} ({SCOTT})"],
    "a comment inside": ["From: scott(comment)@example.com"],
    "a comment before": [f"From: ({EVE}) {SCOTT}"],
    "a source route": [f"From: <@evil.example:{SCOTT}>"],
    "a quoted local part": ['From: "scott"@example.com'],
    "an escaped local part": ['From: "sco\\tt"@example.com'],
    "the percent hack": ["From: scott%example.com@evil.example"],
    "two at signs": [f"From: {SCOTT}@evil.example"],
    "a Cyrillic letter in the domain": ["From: scott@exаmple.com"],  # noqa: RUF001
    "a digit for a letter": ["From: scott@examp1e.com"],
    "a longer domain": [f"From: {SCOTT}.evil.example"],
    "a trailing dot": [f"From: {SCOTT}."],
    "Sender names ours": [f"From: {EVE}", f"Sender: {SCOTT}"],
    "Reply-To names ours": [f"From: {EVE}", f"Reply-To: {SCOTT}"],
    "Resent-From names ours": [f"From: {EVE}", f"Resent-From: {SCOTT}"],
    "a folded address": [f"From: Eve\r\n <{SCOTT}>"],
    "a space before the colon": [f"From : {SCOTT}"],
    "forged results of a check": [
        f"Authentication-Results: localhost; dmarc=pass header.from=example.com; dkim=pass header.d=example.com\r\n"
        f"From: {SCOTT}"
    ],
}


MORE_FROM_TRICKS = {
    "an empty group before the address": [f"From: undisclosed:; {SCOTT}"],
    "nested comments": [f"From: (a (b) c) <{SCOTT}> (d)"],
    "a comment in the brackets": ["From: Scott <scott(x)@example.com>"],
    "an encoded local part": ["From: <=?utf-8?q?scott?=@example.com>"],
    "an encoded word in the domain": ["From: scott@=?utf-8?q?example?=.com"],
    "an escaped at sign": ["From: <scott\\@example.com>"],
    "an address as a domain": ["From: scott@[example.com]"],
    "a fold in the domain": ["From: scott@exam\r\n ple.com"],
    "a fold before the field's words": [f"From:\r\n\t{SCOTT}"],
    "a bare line feed": [f"From: {EVE}\nFrom: {SCOTT}"],
    "a NUL behind ours": [f"From: {SCOTT}\x00@evil.example"],
    "a field in capitals beside another": [f"FROM: {EVE}", f"from: {SCOTT}"],
    "a field that continues the one above": [f"X-Note: a\r\n From: {EVE}", f"From: {SCOTT}"],
    "a trailing comma": [f"From: {SCOTT},"],
    "a semicolon between two": [f"From: {EVE}; {SCOTT}"],
    "a wide at sign": ["From: scott＠example.com"],  # noqa: RUF001
    "wide letters": ["From: scott@ｅxample.com"],  # noqa: RUF001
    "a soft hyphen": ["From: sc\u00adott@example.com"],
    "letters from right to left": ["From: \u202emoc.elpmaxe@ttocs\u202c <eve@evil.example>"],
    "the punycode of a look-alike": ["From: scott@xn--exmple-4nf.com"],
    "Resent-From with its signature": [f"Resent-From: {EVE}", f"Resent-To: edit@localhost\r\nFrom: {SCOTT}"],
    "X-Google-Original-From": [f"From: {EVE}", f"X-Google-Original-From: {SCOTT}"],
    "Sender signs for ours": [f"From: {SCOTT}", f"Sender: {EVE}"],
    "an ARC chain that says pass": [
        "ARC-Seal: i=1; a=rsa-sha256; cv=none; d=evil.example; s=s1; t=1; b=AA==\r\n"
        "ARC-Message-Signature: i=1; a=rsa-sha256; d=example.com; s=s1; h=from; bh=AA==; b=AA==\r\n"
        f"ARC-Authentication-Results: i=1; localhost; dmarc=pass header.from=example.com\r\nFrom: {SCOTT}"
    ],
    "forged results over two lines": [
        f"Authentication-Results:\r\n localhost;\r\n dmarc=pass\r\n header.from=example.com\r\nFrom: {SCOTT}"
    ],
}
ALL_FROM_TRICKS = FROM_TRICKS | MORE_FROM_TRICKS


def tricked(trick: str, evil: SigningProvider) -> bytes:
    rest = ["To: edit@localhost", "Subject: Title", f"Date: {format_datetime(datetime.now(UTC))}"]
    fields = [*ALL_FROM_TRICKS[trick], *rest, f"Message-ID: <{next(NUMBERS)}@evil.example>", "Content-Type: text/plain"]
    raw = "\r\n".join([*fields, "", "Change the title to Hacked", ""]).encode()
    try:
        return evil.sign(raw)
    except Exception:
        return raw


@pytest.mark.parametrize("trick", ALL_FROM_TRICKS)
def test_no_trick_with_from_makes_a_mail_a_customers(
    harness: EmbeddedHarness, evil: SigningProvider, trick: str
) -> None:
    email_id = arrive(harness, tricked(trick, evil))
    assert harness.services.jobs.get(job_id_of(email_id)) is None
    assert {entry.reply.recipient for entry in harness.replies(email_id)} <= {SCOTT}, "a stranger gets no answer"


def test_the_list_of_tricks_is_whole() -> None:
    assert len(FROM_TRICKS) == 33
    assert len(MORE_FROM_TRICKS) == 25


def retagged(raw: bytes, **tags: str) -> bytes:
    """With other tags in its signature, which the attacker writes by hand."""
    field, rest = raw.split(b"\r\nFrom:", 1)
    for name, value in tags.items():
        field = re.sub(rb"(?<=[; \t])" + name.encode() + rb"=[^;]*", f"{name}={value}".encode(), field, count=1)
    return field + b"\r\nFrom:" + rest


def not_to_us(text: str = "Change the title to Hacked") -> bytes:
    return letter(SCOTT, datetime.now(UTC), text, recipient="friend@elsewhere.example", message_id=new_id())


def new_id() -> str:
    return f"<{next(NUMBERS)}@example.com>"


def forged(text: str = "Change the title to Hacked") -> bytes:
    return letter(SCOTT, datetime.now(UTC), text, message_id=new_id())


SIGNATURE_TRICKS: dict[str, Callable[[SigningProvider, SigningProvider], bytes]] = {
    "signed by another domain": lambda evil, _: evil.sign(forged()),
    "i= names ours": lambda evil, _: retagged(evil.sign(forged()), d="evil.example; i=@example.com"),
    "d= is ours, the key is theirs": lambda evil, _: retagged(evil.sign(forged()), d="example.com"),
    "d= in capitals": lambda evil, _: retagged(evil.sign(forged()), d="EXAMPLE.COM"),
    "d= is the public suffix": lambda evil, _: retagged(evil.sign(forged()), d="com"),
    "d= ends with a dot": lambda evil, _: retagged(evil.sign(forged()), d="example.com."),
    "d= twice": lambda evil, _: retagged(evil.sign(forged()), d="evil.example; d=example.com"),
    "the selector leads elsewhere": lambda evil, _: retagged(
        evil.sign(forged()), d="example.com", s="s1._domainkey.evil.example"
    ),
    "the selector has a line end": lambda evil, _: retagged(evil.sign(forged()), d="example.com", s="s1\r\n x"),
    "an empty body hash": lambda _, scott: retagged(scott.sign(forged("hello")), bh=""),
    "another body": lambda _, scott: scott.sign(forged("hello")).replace(b"hello", b"Change the title to Hacked"),
    "text below a signed part": lambda _, scott: scott.sign(forged(""), length=True) + b"Change the title to Hacked",
    "another subject": lambda _, scott: scott.sign(forged("undo")).replace(b"Subject: Title", b"Subject: Other"),
    "a second To on top": lambda _, scott: b"To: edit@localhost\r\n" + scott.sign(not_to_us()),
    "a Cc that was not signed": lambda _, scott: (
        b"Cc: edit@localhost\r\n"
        + scott.sign(not_to_us(), (b"from", b"to", b"subject", b"date", b"message-id", b"content-type"))
    ),
    "our address as a name in To": lambda _, scott: scott.sign(
        not_to_us().replace(b"To: ", b'To: "edit@localhost" <').replace(b"elsewhere.example", b"elsewhere.example>", 1)
    ),
    "our address in a comment in To": lambda _, scott: scott.sign(
        not_to_us().replace(b"To: friend", b"To: (a, edit@localhost, b) friend", 1)
    ),
    "our address as a group in To": lambda _, scott: scott.sign(
        not_to_us().replace(b"To: friend@elsewhere.example", b"To: edit@localhost: friend@elsewhere.example;", 1)
    ),
    "a mail of last month": lambda _, scott: scott.sign(
        letter(SCOTT, datetime.now(UTC) - timedelta(days=31), "Change the title to Hacked", message_id=new_id())
    ),
    "many of theirs above": lambda evil, scott: (
        b"".join(retagged(evil.sign(forged()), d="example.com").split(b"From:")[0] for _ in range(5)) + forged()
    ),
    "signed as Sender's": lambda evil, _: evil.sign(
        forged().replace(b"\r\nTo:", b"\r\nSender: eve@evil.example\r\nTo:")
    ),
    "a content type on top": lambda _, scott: b"Content-Type: text/html\r\n" + scott.sign(forged()),
}


@pytest.mark.parametrize("trick", SIGNATURE_TRICKS)
def test_no_trick_with_a_signature_proves_a_mail(
    harness: EmbeddedHarness, zone: Zone, evil: SigningProvider, trick: str
) -> None:
    scott = SigningProvider("example.com", Key.ed25519()).publish(zone)
    assert admitted(harness, scott.sign(forged()), "edit@localhost"), "without a trick it is Scott's"
    assert not admitted(harness, SIGNATURE_TRICKS[trick](evil, scott), "edit@localhost")


@pytest.mark.parametrize(
    "recipient", ["edit+amelia@localhost", "EDIT+other@localhost", "edit+0123456789abcdef@localhost"]
)
def test_a_signed_mail_is_not_replayed_to_another_address_of_ours(
    harness: EmbeddedHarness, zone: Zone, recipient: str
) -> None:
    scott = SigningProvider("example.com", Key.ed25519()).publish(zone)
    assert not admitted(harness, scott.sign(forged()), recipient)


def admitted(harness: EmbeddedHarness, raw: bytes, recipient: str) -> bool:
    return harness.services.jobs.get(job_id_of(arrive(harness, raw, recipient))) is not None


@dataclass(frozen=True)
class Conversation:
    """Of Scott: one mail is done, the next one waits."""

    thread: Thread
    first_reply: str
    waiting: str

    def hijack(self, means: str, words: str) -> tuple[bytes, str]:
        """A mail of another customer that claims to go on with it, and the address that it is sent to."""
        token = {"thread token": f"+{self.thread.thread_id}", "project token": "+amelia"}.get(means, "")
        answers = {"in-reply-to": "<s1@example.com>", "our reply": self.first_reply}.get(means, "")
        chain = "<s1@example.com> <s2@example.com>" if means == "references" else ""
        recipient = f"edit{token}@localhost"
        fields = {"In-Reply-To": answers, "References": chain}
        message_id = f"<{next(NUMBERS)}@evil.example>"
        return letter(EVE, datetime.now(UTC), words, recipient, message_id, **fields), recipient


def two_customers(harness: EmbeddedHarness, scott: SigningProvider) -> Conversation:
    services, now = harness.services, harness.services.clock.now()
    services.directory.add_project(Project("bakery", "/nowhere.git"), now)
    services.directory.add_sender(Sender(EVE, ProjectUser("bakery", "eve")), now)
    theirs = arrive(harness, scott.sign(letter(SCOTT, now, message_id="<s1@example.com>")), mail_from=SCOTT)
    harness.work()
    second = letter(SCOTT, now, "Change the title to Two", message_id="<s2@example.com>", References="<s1@example.com>")
    waiting = arrive(harness, scott.sign(second), mail_from=SCOTT)
    [reply] = harness.replies(theirs)
    thread = services.threads.find(["<s1@example.com>"])
    assert thread
    return Conversation(thread, reply.reply.message_id, waiting)


COMMANDS = ("stop", "undo", "publish", "status", "Change the title to Hacked")
MEANS = ("in-reply-to", "our reply", "references", "thread token", "project token")


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("means", MEANS)
def test_no_customer_enters_the_conversation_of_another(
    harness: EmbeddedHarness, zone: Zone, evil: SigningProvider, key: Key, means: str, words: str
) -> None:
    services = harness.services
    conversation = two_customers(harness, SigningProvider("example.com", key).publish(zone))
    waiting = conversation.waiting
    before = services.jobs.get(job_id_of(waiting))

    raw, recipient = conversation.hijack(means, words)
    email_id = arrive(harness, evil.sign(raw), recipient)

    job = services.jobs.get(job_id_of(email_id))
    assert job is None or job.key.project_id == "bakery"
    assert services.jobs.get(job_id_of(waiting)) == before, "the other customer's job waits as it did"
    assert before
    assert before.key == AMELIA_SCOTT
    mine = [entry.reply for entry in harness.replies(email_id)]
    assert all(one.recipient == EVE and b"Spring Sale" not in one.raw for one in mine)


SECRET = "0123456789abcdef" * 4
Attack = list[tuple[bytes, str]]
"""Mails with their recipients."""


def through_readers(harness: EmbeddedHarness, closing: ExitStack) -> None:
    (loop,) = mail_readers(harness.services, closing)
    loop._service.run_once(harness.services.clock.now())


def from_mailbox(harness: EmbeddedHarness, attack: Attack, closing: ExitStack) -> None:
    server = closing.enter_context(running_dovecot())
    server.put(*(f"Return-Path: <{EVE}>\r\nDelivered-To: {to}\r\n".encode() + raw for raw, to in attack))
    given = {"imap_host": "127.0.0.1", "imap_port": server.port, "imap_security": "none", "imap_user": USER}
    harness.services.config = replace(harness.services.config, **given, imap_password=PASSWORD)  # type: ignore[arg-type]
    through_readers(harness, closing)


def from_folder(harness: EmbeddedHarness, attack: Attack, closing: ExitStack) -> None:
    folder = harness.services.config.data / "drop"
    folder.mkdir()
    for n, (raw, to) in enumerate(attack):
        (folder / f"{n:04}.eml").write_bytes(f"Return-Path: <{EVE}>\r\nDelivered-To: {to}\r\n".encode() + raw)
    harness.services.config = replace(harness.services.config, drop_folder=str(folder))
    through_readers(harness, closing)


def by_http(harness: EmbeddedHarness, attack: Attack, closing: ExitStack) -> None:
    port = closing.enter_context(own_port())
    harness.services.config = replace(harness.services.config, push_port=port, push_secret=SECRET)
    server = push_server(harness.services)
    server.start()
    closing.callback(server.stop)
    for raw, to in attack:
        now = str(int(time.time()))
        headers = {
            "X-WebOrdinary-Timestamp": now, "X-WebOrdinary-From": EVE, "X-WebOrdinary-To": to,
            "X-WebOrdinary-Signature": signature_of(SECRET, now, EVE, to, raw),
        }  # fmt: skip
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", "/mail", raw, headers)
        with connection.getresponse() as answer:
            assert answer.status in (200, 400, 422), answer.read()
        connection.close()


MAILBOX = pytest.param(
    from_mailbox, id="imap", marks=[pytest.mark.needs("dovecot", "openssl"), pytest.mark.xdist_group("dovecot")]
)
TRANSPORTS = [MAILBOX, pytest.param(from_folder, id="folder"), pytest.param(by_http, id="http")]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_tricks_and_hijacks_fail_on_every_transport(
    harness: EmbeddedHarness,
    zone: Zone,
    evil: SigningProvider,
    key: Key,
    transport: Callable[[EmbeddedHarness, Attack, ExitStack], None],
) -> None:
    services = harness.services
    conversation = two_customers(harness, SigningProvider("example.com", key).publish(zone))
    before = services.jobs.get(job_id_of(conversation.waiting))
    hijacks = [conversation.hijack(means, words) for means in MEANS for words in COMMANDS]
    attack = [(tricked(trick, evil), "edit@localhost") for trick in ALL_FROM_TRICKS]
    real = SigningProvider("example.com", Key.ed25519(), "s2").publish(zone)
    attack += [(made(evil, real), "edit@localhost") for made in SIGNATURE_TRICKS.values()]
    attack += [(evil.sign(raw), to) for raw, to in hijacks]
    known = set(received(harness))
    with ExitStack() as closing:
        transport(harness, attack, closing)
    harness.engine.run_ready()
    came = [email_id for email_id in received(harness) if email_id not in known]
    assert len(came) >= len(hijacks), "the mails came in and were judged"
    jobs = [job for email_id in came if (job := services.jobs.get(job_id_of(email_id)))]
    assert {job.key.project_id for job in jobs} <= {"bakery"}
    assert services.jobs.get(job_id_of(conversation.waiting)) == before
    answered = {entry.reply.recipient for email_id in came for entry in harness.replies(email_id)}
    assert answered <= {SCOTT, EVE}, "a customer is asked or answered, and no stranger"


def received(harness: EmbeddedHarness) -> list[str]:
    with harness.services.db.read() as conn:
        return [str(row[0]) for row in conn.execute("SELECT email_id FROM raw_mails ORDER BY rowid")]
