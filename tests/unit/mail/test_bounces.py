from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.fakes.events import EventRecorder
from tests.unit.mail.letters import NOON
from tests.unit.mail.test_delivery import REPLY
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.mails import SqliteThreads
from webordinary.adapters.sqlite.outbox import SqliteOutbox
from webordinary.mail.outbox import (
    MAX_REASON,
    DeliveryNotification,
    ReplyFate,
    read_notification,
    ses_message_id,
    take_notice,
)
from webordinary.model.errors import Permanent
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Thread

SES_ID = "0100017d38b57c61-f1af1c03-d81e-4101-b7df-4efaac95b71e-000000"


def notification(what: str, *, tags: bool = True, kind: str = "eventType", **details: object) -> str:
    """As SES publishes it, shortened."""
    mail: dict[str, Any] = {
        "timestamp": "2026-05-01T12:00:00.000Z",
        "source": "edit@example.org",
        "sourceArn": "arn:aws:ses:us-east-1:000000000000:identity/example.org",
        "messageId": SES_ID,
        "destination": ["scott@example.com"],
        "headersTruncated": False,
        "commonHeaders": {"from": ["WebOrdinary <edit@example.org>"], "messageId": SES_ID},
    }
    if tags:
        mail["tags"] = {"ses:configuration-set": ["webordinary"], "email": ["e1"], "kind": ["answer"]}
    return json.dumps({kind: what, what.lower(): details, "mail": mail})


BOUNCE = notification(
    "Bounce",
    bounceType="Permanent",
    bounceSubType="General",
    feedbackId="0100017d",
    bouncedRecipients=[
        {
            "emailAddress": "scott@example.com",
            "action": "failed",
            "status": "5.1.1",
            "diagnosticCode": "smtp; 550 5.1.1 user unknown",
        }
    ],
)
COMPLAINT = notification("Complaint", complainedRecipients=[{"emailAddress": "x"}], complaintFeedbackType="abuse")


def taken(text: str, outbox: SqliteOutbox) -> EventRecorder:
    events, notice = EventRecorder(), read_notification(text)
    assert notice
    take_notice(notice, "us-east-1", outbox, events, NOON)
    return events


def sent() -> SqliteOutbox:
    outbox = SqliteOutbox(MemoryDatabase())
    outbox.put(REPLY, NOON)
    outbox.mark_sent(REPLY, NOON, f"<{SES_ID}@email.amazonses.com>")
    return outbox


def test_ses_names_a_mail_after_its_region() -> None:
    assert ses_message_id(SES_ID, "us-east-1") == f"<{SES_ID}@email.amazonses.com>"
    assert ses_message_id(SES_ID, "eu-west-1") == f"<{SES_ID}@eu-west-1.amazonses.com>"
    assert ses_message_id("whole@email.amazonses.com", "eu-west-1") == "<whole@email.amazonses.com>"


def test_a_bounce_is_noted_in_words_where_the_operator_sees_it() -> None:
    outbox = sent()
    (event,) = taken(BOUNCE, outbox)
    reason = "bounced for good (General): smtp; 550 5.1.1 user unknown"
    assert (event.kind, event.email_id, event.data["reason"]) == ("ReplyBounced", "e1", reason)
    (entry,) = outbox.of("e1")
    assert (entry.bounced, entry.sent_at) == (reason, NOON)
    assert outbox.due(NOON, 10) == ()  # nothing is written because of it, so nothing can go round


def test_a_bounce_that_is_told_twice_is_noted_once() -> None:
    outbox = sent()
    taken(BOUNCE, outbox)
    assert taken(BOUNCE, outbox) == []
    assert [event.kind for event in taken(COMPLAINT, outbox)] == ["ReplyBounced"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (COMPLAINT, r"complaint: .* \(abuse\)"),
        (notification("Complaint", complainedRecipients=[]), "no reason given"),
        (notification("Reject", reason="Bad content"), "rejected by SES: Bad content"),
        (notification("Bounce", bounceType="Transient", bounceSubType="MailboxFull"), r"for now \(MailboxFull\): no"),
        (notification("Bounce", kind="notificationType", bounceType="Permanent"), "for good"),
    ],
)
def test_what_came_back_is_worded(text: str, words: str) -> None:
    (event,) = taken(text, sent())
    assert re.search(words, event.data["reason"])


def test_a_bounce_of_no_reply_that_we_know_is_still_told() -> None:
    (event,) = taken(notification("Bounce", tags=False, bounceType="Permanent"), SqliteOutbox(MemoryDatabase()))
    assert event.email_id is None
    assert event.data["ses_id"] == SES_ID
    (event,) = taken(BOUNCE, SqliteOutbox(MemoryDatabase()))
    assert event.email_id == "e1"


@pytest.mark.parametrize("what", ["Send", "Delivery"])
def test_a_reply_in_doubt_that_ses_knows_is_not_sent_again(what: str) -> None:
    database = MemoryDatabase()
    outbox, threads = SqliteOutbox(database), SqliteThreads(database)
    threads.record(Thread("t1", ProjectUser("amelia", "scott"), "Title"), "<1@example.com>", NOON)
    outbox.put(REPLY, NOON)
    outbox.mark_failed(REPLY, "no answer", NOON)
    taken(notification(what), outbox)
    assert outbox.due(NOON, 10) == ()
    assert outbox.of("e1")[0].sent_as == f"<{SES_ID}@email.amazonses.com>"
    assert threads.find((f"<{SES_ID}@email.amazonses.com>",))
    assert taken(notification(what), outbox) == []


def test_a_reply_in_doubt_that_came_back_had_left() -> None:
    outbox = SqliteOutbox(MemoryDatabase())
    outbox.put(REPLY, NOON)
    taken(BOUNCE, outbox)
    assert outbox.due(NOON, 10) == ()


def test_what_we_have_no_use_for_is_passed_over() -> None:
    assert read_notification(notification("Open")) is None
    assert read_notification(notification("DeliveryDelay")) is None


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "not json", '{"mail": {}}', '{"eventType": "Bounce", "mail": {"messageId": "x"}}']
)
def test_what_is_no_notification_is_said_so(text: str) -> None:
    with pytest.raises(Permanent, match="no notification of SES"):
        read_notification(text)


def test_reasons_are_bounded() -> None:
    recipients = [{"diagnosticCode": "x" * 10_000}] * 50
    notice = read_notification(notification("Bounce", bounceType="Permanent", bouncedRecipients=recipients))
    assert isinstance(notice, DeliveryNotification)
    assert notice.fate is ReplyFate.BOUNCED
    assert len(notice.reason) == MAX_REASON
