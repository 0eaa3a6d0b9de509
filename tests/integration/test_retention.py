"""What is left of a mail after its retention: nothing, in rows and in files; and what must stay."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from string import ascii_letters

import pytest

from tests.conftest import Up
from tests.harness.embedded import EmbeddedHarness, open_harness
from tests.integration.test_smtp_intake import letter
from webordinary.adapters.files import transports
from webordinary.adapters.files.transports import MaildirTransport
from webordinary.compose.background import forget_mails
from webordinary.mail.outbox import deliver_due
from webordinary.model.errors import Transient
from webordinary.model.mail import Attachment, AttachmentKind

TABLES = ("raw_mails", "parsed_mails", "attachments", "outbox", "thread_messages")
FOLDERS = ("mail", "blobs", "outbox")


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path / "data", unadmitted_mail_mb=1) as harness:
        yield harness


def forget(harness: EmbeddedHarness, days: float) -> int:
    """What the hourly sweep does with mails, so many days from now."""
    services = harness.services
    now = services.clock.now() + timedelta(days=days)
    before = now - timedelta(days=services.config.retention_days)
    services.jobs.forget(before)
    services.executions.prune(before)
    return forget_mails(services, before, now)


def attach(harness: EmbeddedHarness, email_id: str, content: bytes) -> str:
    digest = harness.services.blobs.put(content)
    photo = Attachment("mug.png", "image/png", AttachmentKind.IMAGE, len(content), digest)
    harness.services.mail_deps.manifest.save(email_id, 0, photo)
    return digest


def deliver(harness: EmbeddedHarness) -> None:
    services = harness.services
    transport = MaildirTransport(services.config.data / "outbox")
    deliver_due(services.outbox, transport, services.clock.now(), services.events)


def rows(harness: EmbeddedHarness) -> dict[str, int]:
    with harness.services.db.read() as conn:
        return {table: conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}


def files(harness: EmbeddedHarness) -> list[Path]:
    folders = (harness.services.config.data / name for name in FOLDERS)
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


def test_a_finished_mail_is_forgotten_with_its_attachments_and_replies(harness: EmbeddedHarness) -> None:
    attach(harness, harness.receive(), b"a photo of a mug")
    harness.work()
    deliver(harness)
    assert all(rows(harness).values())
    assert len(files(harness)) == 3
    assert forget(harness, days=29) == 0
    assert all(rows(harness).values())
    assert len(files(harness)) == 3
    assert forget(harness, days=31) == 1
    assert not any(rows(harness).values())
    assert files(harness) == []


def test_a_reply_to_a_forgotten_mail_goes_on_in_its_thread(harness: EmbeddedHarness) -> None:
    harness.receive(message_id="<root@example.com>")
    thread_id = harness.work().job.thread_id
    deliver(harness)
    assert forget(harness, days=31) == 1
    known = harness.services.threads.get(thread_id)
    assert known
    assert known.subject == ""
    harness.receive("Change the title to Summer Sale", answers="<root@example.com>")
    assert harness.work().job.thread_id == thread_id


def test_a_mail_with_an_open_job_an_unsent_reply_or_a_dead_letter_stays(harness: EmbeddedHarness) -> None:
    harness.give_up()
    harness.receive("Change the title to Summer Sale")
    harness.work()
    harness.receive("Change the title to Autumn Sale")
    with harness.services.db.write() as conn:  # the dead letter's own reply has left
        conn.execute("UPDATE outbox SET sent_at = created_at WHERE outbox_id = 1")
    assert forget(harness, days=31) == 0
    assert rows(harness)["raw_mails"] == 3
    deliver(harness)
    assert forget(harness, days=31) == 1


def test_mails_that_were_not_admitted_are_forgotten_after_three_days(harness: EmbeddedHarness) -> None:
    stranger = harness.receive(sender="stranger@example.org")
    mine = harness.receive()
    assert harness.services.raw_mails.unadmitted_bytes() > 4096
    assert forget(harness, days=2.9) == 0
    assert forget(harness, days=3.1) == 1
    assert harness.services.raw_mails.unadmitted_bytes() == 0
    names = [file.stem for file in files(harness)]
    assert stranger not in names
    assert mine in names


def test_a_sweep_is_bounded_and_the_next_one_goes_on(harness: EmbeddedHarness) -> None:
    for number in range(5):
        harness.receive(sender=f"stranger{number}@example.org")
    later = harness.services.clock.now() + timedelta(days=4)
    assert [harness.services.retention.forget(later, later, limit=3) for _ in range(3)] == [3, 2, 0]


def test_the_webp_copy_of_a_photo_is_kept_as_long_as_its_mail(harness: EmbeddedHarness) -> None:
    copy = harness.services.blobs.put(b"the same as WebP")
    photo = Attachment(
        "mug.png", "image/png", AttachmentKind.IMAGE, 7, harness.services.blobs.put(b"a photo"), webp=copy
    )
    harness.services.mail_deps.manifest.save(harness.receive(), 0, photo)
    later = harness.services.clock.now() + timedelta(days=1)
    assert harness.services.blobs.forget(later, harness.services.retention.attached()) == 0
    assert harness.services.blobs.path(copy).exists()


def test_a_file_that_another_mail_came_with_is_kept(harness: EmbeddedHarness) -> None:
    digest = attach(harness, harness.receive(), b"the same photo")
    other = harness.services.blobs.put(b"another photo")
    later = harness.services.clock.now() + timedelta(days=1)
    assert harness.services.blobs.forget(later, harness.services.retention.attached()) == 1
    assert harness.services.blobs.get(digest) == b"the same photo"
    assert not harness.services.blobs.path(other).exists()


def test_a_file_that_comes_again_is_as_young_as_a_new_one(harness: EmbeddedHarness) -> None:
    blobs, now = harness.services.blobs, harness.services.clock.now()
    digest = blobs.put(b"photo")
    os.utime(blobs.path(digest), (0, 0))
    blobs.put(b"photo")
    assert blobs.forget(now - timedelta(days=1), ()) == 0
    assert blobs.get(digest) == b"photo"
    os.utime(blobs.path(digest), (0, 0))
    assert blobs.forget(now - timedelta(days=1), ()) == 1


def test_strangers_are_told_to_come_again_when_their_quota_is_full_and_a_customer_is_not(
    start_up: Callable[..., Up],
) -> None:
    up = start_up("--unadmitted-mail-mb", "1", "--workers", "0")

    def send(number: int, sender: str, size: int = 200_000) -> str:
        raw = letter("x " * (size // 2), message_id=f"<{number}@example.org>").replace(
            b"scott@example.com", sender.encode()
        )
        return transports.send(raw, sender, "edit@localhost", up.smtp_host, up.smtp_port)

    assert "accepted" in send(1, "stranger@example.org")
    assert "accepted" in send(2, "stranger@example.org")
    with pytest.raises(Transient, match="452"):
        send(3, "stranger@example.org")
    assert "accepted" in send(4, "scott@example.com")
    assert up.stop() == 0


def test_the_database_reuses_the_room_of_what_was_forgotten(harness: EmbeddedHarness) -> None:
    services, sizes = harness.services, []
    for _ in range(3):
        for _ in range(20):
            harness.receive("Change the title\n\n> " + "".join(random.choices(ascii_letters, k=3000)))
            harness.work()
        deliver(harness)
        services.mail_index.catch_up()
        with services.db.read() as conn:
            sizes.append(conn.execute("PRAGMA page_count").fetchone()[0])
        assert forget(harness, days=31) == 20
        services.event_log.forget(services.clock.now() + timedelta(days=1))
    assert sizes[2] < sizes[0] * 1.1, sizes


def test_the_search_keeps_no_words_of_forgotten_mails(harness: EmbeddedHarness) -> None:
    for word in ("Quixotically", "Zephyrs"):
        harness.receive(f"Change the title to {word}")
        harness.work()
    deliver(harness)
    harness.services.mail_index.catch_up()
    assert b"quixotic" in index_of_the_search(harness)
    assert forget(harness, days=31) == 2
    assert b"quixotic" not in index_of_the_search(harness)


def index_of_the_search(harness: EmbeddedHarness) -> bytes:
    with harness.services.db.read() as conn:
        return b"".join(row["block"] for row in conn.execute("SELECT block FROM mail_search_data"))
