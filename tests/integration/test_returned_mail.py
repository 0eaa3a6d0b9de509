"""A reply that comes back is noted on its mail and told to the operator once; forged reports do nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.harness.embedded import SCOTT, EmbeddedHarness, open_harness
from webordinary.compose.background import alert_mailer
from webordinary.mail.intake import accept
from webordinary.mail.ports import OutboxEntry
from webordinary.model.mail import Delivery, TransportKind
from webordinary.workflow.start import start

REPORT = """From: MAILER-DAEMON@mx.example\r
To: edit@localhost\r
Subject: Undelivered Mail Returned to Sender\r
Message-ID: <report@mx.example>\r
MIME-Version: 1.0\r
Content-Type: multipart/report; report-type={kind}; boundary="b0"\r
\r
--b0\r
Content-Type: text/plain\r
\r
I'm sorry to have to inform you that your message could not be delivered.\r
\r
--b0\r
Content-Type: message/{kind}\r
\r
Reporting-MTA: dns; mx.example\r
\r
Final-Recipient: rfc822; {recipient}\r
Action: {action}\r
Status: 5.1.1\r
Diagnostic-Code: smtp; 550 5.1.1 no such user\r
\r
--b0\r
Content-Type: text/rfc822-headers\r
\r
Message-ID: {message_id}\r
Subject: Re: Mail 1\r
\r
--b0--\r
"""


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path, operator="ops@example.org") as made:
        yield made


def answered(harness: EmbeddedHarness) -> OutboxEntry:
    """A mail whose answer has left."""
    email_id = harness.receive()
    harness.work()
    [entry] = harness.replies(email_id)
    harness.services.outbox.mark_sent(entry.reply, datetime.now(UTC))
    return entry


def report(harness: EmbeddedHarness, entry: OutboxEntry, **changes: str) -> str | None:
    """A report arrives; what the reply is noted with then."""
    fields = {
        "message_id": entry.reply.message_id, "recipient": SCOTT, "action": "failed", "kind": "delivery-status",
        **changes,
    }  # fmt: skip
    services, now = harness.services, harness.services.clock.now()
    told = Delivery(TransportKind.SMTP, "192.0.2.1", "", ("edit@localhost",), now)
    raw = REPORT.format(**fields).encode()
    [mail] = accept(raw, told, mails=services.raw_mails, events=services.events)
    start(mail.email_id, harness.engine, services.raw_mails)
    harness.engine.run_ready()
    assert harness.replies(mail.email_id) == []
    return harness.replies(entry.reply.email_id)[0].bounced


def test_a_bounce_is_noted_on_the_reply_and_told_once(harness: EmbeddedHarness) -> None:
    entry = answered(harness)
    noted = report(harness, entry)
    assert noted is not None
    assert "550 5.1.1 no such user" in noted
    harness.services.events.close()
    mailer, now = alert_mailer(harness.services), harness.services.clock.now()
    assert [mailer.run_once(now), mailer.run_once(now)] == [1, 0]


def test_a_complaint_is_noted(harness: EmbeddedHarness) -> None:
    noted = report(harness, answered(harness), kind="feedback-report")
    assert noted is not None
    assert noted.startswith("complaint")


@pytest.mark.parametrize(
    "changes",
    [
        {"action": "delayed"},
        {"message_id": "<0123456789abcdef0123456789abcdef@localhost>"},
        {"message_id": "<1@example.com>"},
        {"recipient": "eve@evil.example"},
        {"kind": "disposition-notification", "action": "displayed"},
    ],
)
def test_a_delay_a_receipt_and_a_forged_report_change_nothing(
    harness: EmbeddedHarness, changes: dict[str, str]
) -> None:
    assert report(harness, answered(harness), **changes) is None


def test_a_reply_that_never_left_cannot_bounce(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    harness.work()
    [entry] = harness.replies(email_id)
    assert report(harness, entry) is None
