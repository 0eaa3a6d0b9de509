"""Mails that SES put into the bucket become accepted mails."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.aws.emulator import RunningEmulator
from tests.extras import needs_extra

needs_extra("boto3", "aws")

from tests.aws.faulty_proxy import DROP_REQUEST, DROP_RESPONSE, THROTTLED, faulty_proxy  # noqa: E402
from tests.aws.mail_tables import MailTables  # noqa: E402
from tests.fakes.events import EventRecorder  # noqa: E402
from tests.unit.mail.letters import SCOTT, parsed, raw_mail  # noqa: E402
from webordinary.adapters.aws import names  # noqa: E402
from webordinary.adapters.aws.mail.emulated import Reception, as_received  # noqa: E402
from webordinary.adapters.aws.mail.mails import (  # noqa: E402
    NOTE_DAYS,
    UNNOTED_AFTER,
    AwsIntake,
    AwsRawMails,
    MailItems,
    ses_id_of,
)
from webordinary.mail.addresses import Mailbox  # noqa: E402
from webordinary.mail.auth import (  # noqa: E402
    Admitted,
    AwaitsConfirmation,
    Refused,
    SesVerdicts,
    authenticate,
)
from webordinary.mail.intake import name_of  # noqa: E402
from webordinary.mail.parsing.message import parse  # noqa: E402
from webordinary.model.errors import Permanent  # noqa: E402
from webordinary.model.names import ProjectUser  # noqa: E402
from webordinary.model.projects import Sender  # noqa: E402

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
EDIT = Mailbox.parse("edit@example.org")


@pytest.fixture
def world(ministack: RunningEmulator) -> MailTables:
    return MailTables(ministack.endpoint)


def received(world: MailTables, raw: bytes | None = None, recipient: str = "edit@example.org") -> str:
    seen = Reception(SCOTT, recipient)
    return world.put_raw(seen.ses_id, as_received(raw or raw_mail(), seen))


def intake(mails: AwsRawMails, events: EventRecorder | None = None) -> AwsIntake:
    return AwsIntake(mails, EDIT, events if events is not None else EventRecorder())


def test_a_mail_in_the_bucket_is_accepted_with_what_ses_found(world: MailTables) -> None:
    events, mails = EventRecorder(), world.raw_mails()
    key = received(world)
    (accepted,) = intake(mails, events).take(key, NOON)
    email = world.raw_mails().load(accepted.email_id)
    assert accepted.is_new
    assert accepted.email_id == name_of(email.raw, "edit@example.org")
    assert email.envelope.received_at == NOON
    entitled = Sender(SCOTT, ProjectUser("amelia", "scott"))
    assert authenticate(email.envelope, parse(email.raw), (entitled,), SesVerdicts()) == Admitted()
    assert [event.kind for event in events] == ["MailReceived"]
    assert mails.without_workflow(10) == (accepted.email_id,)


def test_a_mail_that_is_told_of_twice_or_comes_twice_is_one(world: MailTables) -> None:
    events, mails = EventRecorder(), world.raw_mails()
    key, other = received(world), received(world)
    (first,) = intake(mails, events).take(key, NOON)
    (again,) = intake(mails, events).take(key, NOON + timedelta(minutes=1))
    (twin,) = intake(mails, events).take(other, NOON)
    assert (first.email_id, again.is_new, twin.is_new) == (again.email_id, False, False)
    assert twin.email_id == first.email_id
    assert len(events) == 1
    assert world.raw_mails().envelope(first.email_id).received_at == NOON
    later = datetime.now(UTC) + timedelta(hours=1)
    assert mails.unnoted(100, later).keys == ()


def test_each_of_our_addresses_gets_its_own(world: MailTables) -> None:
    mails = world.raw_mails()
    key = received(world, raw_mail(to="edit+amelia@example.org, edit+bakery@example.org"))
    accepted = intake(mails).take(key, NOON)
    recipients = {mails.envelope(one.email_id).recipient for one in accepted}
    assert recipients == {"edit@example.org", "edit+amelia@example.org", "edit+bakery@example.org"}
    assert len(mails.without_workflow(10)) == 3


def test_what_is_no_mail_of_ours_is_left_alone(world: MailTables) -> None:
    events, mails = EventRecorder(), world.raw_mails()
    for key in ("raw/AMAZON_SES_SETUP_NOTIFICATION", "raw/", "stored/x", "raw/../x", "x"):
        assert intake(mails, events).take(key, NOON) == ()
        assert ses_id_of(key) == ""
    assert events == []
    elsewhere = received(world, raw_mail(to="hello@example.org"), recipient="hello@example.org")
    assert intake(mails, events).take(elsewhere, NOON) == ()
    assert [event.kind for event in events] == ["MailRefused"]
    assert mails.unnoted(10, datetime.now(UTC) + timedelta(hours=1)).keys == ()


def test_a_mail_that_expired_in_the_bucket_is_said_so(world: MailTables) -> None:
    mails = world.raw_mails()
    key = received(world)
    (accepted,) = intake(mails).take(key, NOON)
    world.clients.s3.delete_object(Bucket=world.raw_bucket, Key=key)
    with pytest.raises(Permanent, match="expired"):
        world.raw_mails().load(accepted.email_id)
    assert world.raw_mails().envelope(accepted.email_id).mail_from == SCOTT


def test_mails_that_nobody_was_told_of_are_found_by_looking(world: MailTables) -> None:
    mails = world.raw_mails()
    keys = sorted(received(world, raw_mail(message_id=f"<{number}@x>")) for number in range(7))
    world.put_raw("AMAZON_SES_SETUP_NOTIFICATION", b"hello")
    intake(mails).take(keys[2], NOON)
    now = datetime.now(UTC)
    assert mails.unnoted(100, now).keys == ()  # the intake may be at them
    later, found, after = now + UNNOTED_AFTER + timedelta(minutes=1), list[str](), ""
    for _ in range(4):
        page = mails.unnoted(3, later, after)
        assert len(page.keys) <= 3
        found, after = found + list(page.keys), page.after
        if not after:
            break
    assert sorted(found) == keys[:2] + keys[3:]
    assert after == ""


def test_a_lost_answer_loses_no_mail_and_tells_of_it_once(world: MailTables, ministack: RunningEmulator) -> None:
    with faulty_proxy(ministack.endpoint) as proxy:
        events, mails = EventRecorder(), world.through(proxy.endpoint).raw_mails()
        proxy.inject(DROP_RESPONSE, "dynamodb:TransactWriteItems")
        proxy.inject(THROTTLED, "dynamodb:TransactWriteItems")
        proxy.inject(DROP_REQUEST, "s3:GET")
        (accepted,) = intake(mails, events).take(received(world), NOON)
        assert accepted.is_new
        assert [event.kind for event in events] == ["MailReceived"]
        proxy.inject(DROP_RESPONSE, "dynamodb:UpdateItem")
        mails.mark_started(accepted.email_id)
    assert world.raw_mails().without_workflow(10) == ()


def test_a_lost_answer_does_not_make_a_stranger_of_our_own_write(world: MailTables, ministack: RunningEmulator) -> None:
    with faulty_proxy(ministack.endpoint) as proxy:
        other = world.through(proxy.endpoint)
        proxy.inject(DROP_RESPONSE, "s3:PUT")
        proxy.inject(DROP_RESPONSE, "dynamodb:PutItem")
        key = received(world)
        email = world.raw_mails().load(intake(world.raw_mails()).take(key, NOON)[0].email_id)
        assert other.raw_mails().store(type(email)("a" * 64, email.envelope, email.raw))
        assert not other.raw_mails().store(type(email)("a" * 64, email.envelope, email.raw))


def test_one_look_brings_a_mail_and_its_reading(world: MailTables, ministack: RunningEmulator) -> None:
    (accepted,) = intake(world.raw_mails()).take(received(world), NOON)
    world.parsed_mails().save(accepted.email_id, parsed(), NOON)
    with faulty_proxy(ministack.endpoint) as proxy:
        other = world.through(proxy.endpoint)
        items = other.items()
        mails, readings = other.raw_mails(items), other.parsed_mails(items)
        for _ in range(3):
            assert mails.envelope(accepted.email_id).mail_from == SCOTT
            assert readings.load(accepted.email_id) == parsed()
        assert proxy.calls == {"dynamodb:Query": 1}


def test_the_reconciler_does_not_start_a_mail_twice_because_the_index_is_late(world: MailTables) -> None:
    mails = world.raw_mails()
    (accepted,) = intake(mails).take(received(world), NOON)
    mails.mark_started(accepted.email_id)
    world.raw_mails().note("raw/" + "c" * 40, [mails.load(accepted.email_id)])
    assert mails.without_workflow(10) == ()


def test_stored_mails_of_one_name_keep_their_own_bytes(world: MailTables) -> None:
    mails = world.raw_mails()
    (accepted,) = intake(mails).take(received(world), NOON)
    email = mails.load(accepted.email_id)
    assert not mails.store(type(email)(email.email_id, email.envelope, b"X-Trace: 2\r\n" + email.raw))
    assert world.raw_mails().load(email.email_id) == email


def test_mails_that_were_never_admitted_go_early_and_beyond_their_quota_at_once(world: MailTables) -> None:
    """A day's share is a third of the quota, and refused mails have a half of that."""
    size = len(as_received(raw_mail(), Reception(SCOTT, "edit@example.org")))
    mails = AwsRawMails(world.clients.s3, world.raw_bucket, world.items(), unadmitted_bytes=6 * (2 * size + 50))
    keys = [received(world, raw_mail(message_id=f"<{number}@example.com>")) for number in range(5)]
    ids = [intake(mails).take(key, NOON)[0].email_id for key in keys]
    mails.mark_placed(ids[3])
    for email_id in (ids[0], ids[1], ids[1], ids[2]):
        mails.mark_placed(email_id, Refused("a stranger"))
    mails.mark_placed(ids[4], AwaitsConfirmation("nothing proves it"))
    assert world.objects(world.raw_bucket) == sorted([keys[0], keys[1], keys[3], keys[4]])
    assert [tags_of(world, key) for key in (keys[0], keys[1], keys[3], keys[4])] == ["no", "no", "", "no"]


def tags_of(world: MailTables, key: str) -> str:
    found = world.clients.s3.get_object_tagging(Bucket=world.raw_bucket, Key=key)["TagSet"]
    return {tag["Key"]: tag["Value"] for tag in found}.get("admitted", "")


def test_what_belongs_to_a_mail_expires_by_the_retention_and_its_note_after_the_object(world: MailTables) -> None:
    """An object whose note has expired would be taken for a mail that nobody has read yet."""
    items = MailItems(world.dynamo, lambda: NOON, names.MAILS + world.suffix, keep_days=60)
    key = received(world)
    (accepted,) = intake(world.raw_mails(items)).take(key, NOON)
    (mail,) = items.beginning("test", accepted.email_id, "mail")
    (note,) = items.beginning("test", f"raw#{ses_id_of(key)}", "raw")
    day = 86_400
    assert (mail["expiresAt"] - NOON.timestamp()) / day == 60
    assert (note["expiresAt"] - NOON.timestamp()) / day == 60 + NOTE_DAYS
