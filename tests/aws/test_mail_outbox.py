"""Replies on AWS: one deliverer at a time, and nothing lost where an answer is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.aws.emulator import RunningEmulator
from tests.extras import needs_extra

needs_extra("boto3", "aws")

from tests.aws.faulty_proxy import DROP_RESPONSE, faulty_proxy  # noqa: E402
from tests.aws.mail_tables import MailTables  # noqa: E402
from webordinary.adapters.aws import names  # noqa: E402
from webordinary.adapters.aws.blobs import INLINE_BYTES  # noqa: E402
from webordinary.adapters.aws.mail.outbox import AwsUndelivered  # noqa: E402
from webordinary.model.mail import Reply  # noqa: E402

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SILENCE_SECONDS = timedelta(minutes=2)


@pytest.fixture
def world(ministack: RunningEmulator) -> MailTables:
    return MailTables(ministack.endpoint)


def reply(email_id: str = "e1") -> Reply:
    return Reply(email_id, "answer", "scott@example.com", f"<{email_id}@localhost>", b"raw", "t1")


def test_a_reply_is_its_writers_alone_for_a_while(world: MailTables) -> None:
    outbox = world.outbox(SILENCE_SECONDS)
    outbox.put(reply(), NOON)
    assert outbox.due(NOON + SILENCE_SECONDS / 2, 10) == ()
    assert [entry.reply for entry in outbox.due(NOON + SILENCE_SECONDS, 10)] == [reply()]


def test_a_reply_that_is_due_is_given_to_one_deliverer(world: MailTables) -> None:
    for number in range(6):
        world.outbox().put(reply(f"e{number}"), NOON)
    with ThreadPoolExecutor(4) as pool:
        taken = [
            entry
            for found in pool.map(lambda _: world.outbox(SILENCE_SECONDS).due(NOON, 10), range(4))
            for entry in found
        ]
    assert sorted(entry.reply.email_id for entry in taken) == [f"e{number}" for number in range(6)]
    assert world.outbox(SILENCE_SECONDS).due(NOON, 10) == ()
    assert len(world.outbox(SILENCE_SECONDS).due(NOON + SILENCE_SECONDS, 10)) == 6  # whoever took them may have died


def test_a_failed_try_is_due_when_it_says_so(world: MailTables) -> None:
    outbox = world.outbox(SILENCE_SECONDS)
    outbox.put(reply(), NOON)
    outbox.mark_failed(reply(), "busy", NOON + timedelta(seconds=2))
    (entry,) = outbox.due(NOON + timedelta(seconds=2), 10)
    assert (entry.attempts, entry.next_try_at) == (1, NOON + timedelta(seconds=2))


def test_replies_that_failed_are_listed_and_can_be_sent_again(world: MailTables) -> None:
    outbox, undelivered = world.outbox(SILENCE_SECONDS), AwsUndelivered(world.items())
    for number, name in enumerate(("well", "waits", "given-up")):
        outbox.put(reply(name), NOON + timedelta(seconds=number))
    outbox.mark_failed(reply("waits"), "SES is busy", NOON + timedelta(hours=1))
    outbox.mark_failed(reply("given-up"), "the address is on the suppression list", None)
    given_up, waits = undelivered.all(10)
    assert (given_up.email_id, given_up.kind, given_up.next_try_at, given_up.attempts) == (
        "given-up",
        "answer",
        None,
        1,
    )
    assert given_up.error == "the address is on the suppression list"
    assert (waits.email_id, waits.next_try_at) == ("waits", NOON + timedelta(hours=1))
    assert "given-up" not in {entry.reply.email_id for entry in outbox.due(NOON + timedelta(days=1), 10)}
    again = NOON + timedelta(days=2)
    assert undelivered.send_again(given_up, again)
    (entry,) = [entry for entry in outbox.due(again, 10) if entry.reply.email_id == "given-up"]
    assert (entry.attempts, entry.given_up) == (0, False)
    outbox.mark_sent(entry.reply, again)
    assert not undelivered.send_again(given_up, again), "it has left"
    assert [one.email_id for one in undelivered.all(10)] == ["waits"]


def test_a_writer_whose_answer_was_lost_knows_its_own_reply(world: MailTables, ministack: RunningEmulator) -> None:
    with faulty_proxy(ministack.endpoint) as proxy:
        outbox = world.through(proxy.endpoint).outbox()
        proxy.inject(DROP_RESPONSE, "dynamodb:PutItem")
        assert outbox.put(reply(), NOON)
        assert not outbox.put(reply(), NOON)
        proxy.inject(DROP_RESPONSE, "dynamodb:UpdateItem")
        outbox.mark_sent(reply(), NOON, "<theirs@x>")
    (entry,) = world.outbox().of("e1")
    assert (entry.attempts, entry.sent_as) == (1, "<theirs@x>")


def test_an_item_never_comes_near_the_largest_that_a_table_takes(world: MailTables) -> None:
    for name, size in (("small", INLINE_BYTES), ("large", INLINE_BYTES + 1), ("huge", 5_000_000)):
        world.outbox().put(replace(reply(name), raw=b"x" * size), NOON)
        assert len(world.outbox().of(name)[0].reply.raw) == size
    assert len(world.objects(world.store_bucket)) == 2
    items = world.clients.dynamodb.scan(TableName=names.MAILS + world.suffix)["Items"]
    assert max(len(repr(item)) for item in items) < 4 * INLINE_BYTES + 2000


def test_of_what_is_settled_only_what_was_given_up_stays_in_the_index_and_is_not_due(world: MailTables) -> None:
    outbox = world.outbox()
    for name in ("sent", "given-up", "waiting"):
        outbox.put(reply(name), NOON)
    outbox.mark_sent(reply("sent"), NOON)
    outbox.mark_failed(reply("given-up"), "no such user", None)
    listed = world.clients.dynamodb.scan(TableName=names.MAILS + world.suffix, IndexName=names.DUE_INDEX)["Items"]
    assert {item["emailId"]["S"]: item["due"]["S"] for item in listed} == {"waiting": "reply", "given-up": "given-up"}
    assert [entry.reply.email_id for entry in outbox.due(NOON, 10)] == ["waiting"]
