"""The promises of the ports of mail, over every adapter."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, Thread
from typing import TYPE_CHECKING

import pytest

from webordinary.adapters.files.stores import LocalBlobs
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.mails import (
    SqliteAttachmentManifest,
    SqliteConfirmations,
    SqliteDirectory,
    SqliteHourlyRates,
    SqliteParsedMails,
    SqliteRawMails,
    SqliteThreads,
)
from webordinary.adapters.sqlite.outbox import SqliteOutbox
from webordinary.mail.auth import AwaitsConfirmation, Refused
from webordinary.mail.confirm import VALID, SenderQuestion
from webordinary.mail.parsing.headers import HEAD_BYTES
from webordinary.mail.ports import (
    AttachmentManifest,
    Blobs,
    Confirmations,
    Directory,
    HourlyRates,
    Outbox,
    ParsedMails,
    RawMails,
    Threads,
    UnknownMail,
    change_project,
)
from webordinary.model.errors import Permanent
from webordinary.model.mail import (
    Attachment,
    AttachmentKind,
    Command,
    Email,
    Envelope,
    ParsedMail,
    RefusedAttachment,
    Reply,
    TransportVerdicts,
)
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, Sender, SenderRole
from webordinary.model.projects import Thread as MailThread

if TYPE_CHECKING:
    from tests.aws.mail_tables import MailTables

NOON = datetime(2026, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SCOTT = ProjectUser("amelia", "scott")
ANN = ProjectUser("bakery", "ann")


@dataclass(frozen=True)
class MailBackend:
    raw: RawMails
    parsed: ParsedMails
    manifest: AttachmentManifest
    blobs: Blobs
    threads: Threads
    directory: Directory
    outbox: Outbox
    confirmations: Confirmations
    rates: HourlyRates


@pytest.fixture(params=["sqlite in memory", "sqlite", "aws", "aws whose answers are lost"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MailBackend]:
    if request.param.startswith("aws"):
        from webordinary.adapters.aws.mail.mails import AwsConfirmations, AwsHourlyRates

        lost = "_whose_answers_are_lost" if request.param != "aws" else ""
        world: MailTables = request.getfixturevalue(f"aws_mail{lost}")
        yield MailBackend(
            world.raw_mails(), world.parsed_mails(), world.manifest(), world.blobs(), world.threads(),
            world.directory(), world.outbox(), AwsConfirmations(world.items()),
            AwsHourlyRates(world.items()),
        )  # fmt: skip
        return
    db: Database = request.getfixturevalue("database" if request.param == "sqlite in memory" else "file_database")
    yield MailBackend(
        SqliteRawMails(db, tmp_path), SqliteParsedMails(db), SqliteAttachmentManifest(db),
        LocalBlobs(tmp_path / "blobs"), SqliteThreads(db), SqliteDirectory(db), SqliteOutbox(db),
        SqliteConfirmations(db), SqliteHourlyRates(db),
    )  # fmt: skip


def email(name: str, at: datetime = NOON, raw: bytes = b"Subject: x\r\n\r\nhi\xff\r\n") -> Email:
    return Email(name * 64, Envelope("127.0.0.1", "scott@example.com", "edit@localhost", at), raw)


def mail(**changes: object) -> ParsedMail:
    plain = ParsedMail(
        message_id="<1@example.com>", sender="scott@example.com", sender_name="Scott Ö", subject="Größe",
        sent_at=NOON, in_reply_to=("<0@example.com>",), references=("<r@example.com>", "<0@example.com>"),
        text="change it", elided="> old", command=Command.UNDO, attachment_count=2, automatic=False,
        refused_attachments=(RefusedAttachment("x.exe", "a program"),),
    )  # fmt: skip
    return replace(plain, **changes)  # type: ignore[arg-type]


def reply(email_id: str = "e1", kind: str = "answer") -> Reply:
    return Reply(email_id, kind, "scott@example.com", f"<{email_id}.{kind}@localhost>", b"\x00raw\xff")


# held mails and questions


def test_a_held_mail_is_released_once_and_its_workflow_is_due_again(backend: MailBackend) -> None:
    raw, held = backend.raw, "a" * 64
    raw.store(email("a"))
    raw.mark_started(held)
    assert not raw.release(held)
    raw.mark_placed(held, AwaitsConfirmation("nothing proves it"))
    assert (raw.is_released(held), raw.without_workflow(10)) == (False, ())
    assert [raw.release(held), raw.release(held), raw.drop(held)] == [True, False, False]
    assert raw.is_released(held)
    assert raw.without_workflow(10) == (held,)
    raw.mark_started(held)
    assert raw.without_workflow(10) == ()


def test_a_mail_is_open_until_it_is_closed(backend: MailBackend) -> None:
    backend.raw.store(email("a"))
    assert not backend.raw.is_closed("a" * 64)


def test_a_dropped_or_refused_mail_is_never_released(backend: MailBackend) -> None:
    for name, verdict in (("a", AwaitsConfirmation("unproven")), ("b", Refused("a stranger"))):
        backend.raw.store(email(name))
        backend.raw.mark_placed(name * 64, verdict)
    assert [backend.raw.drop("a" * 64), backend.raw.drop("b" * 64)] == [True, False]
    assert [backend.raw.release(name * 64) for name in "ab"] == [False, False]


def test_only_a_refusal_is_forgotten_when_a_mail_is_judged_again(backend: MailBackend) -> None:
    raw = backend.raw
    for name, verdict in (("a", Refused("a stranger")), ("b", AwaitsConfirmation("unproven"))):
        raw.store(email(name))
        raw.mark_placed(name * 64, verdict)
        raw.reconsider(name * 64)
    raw.mark_placed("a" * 64, AwaitsConfirmation("unproven"))
    assert [raw.release(name * 64) for name in "ab"] == [True, True], "both are held, the second still"


def test_a_token_finds_its_mail_until_it_is_used_or_expires(backend: MailBackend) -> None:
    asked = backend.confirmations
    assert asked.ask(SenderQuestion("d1", "mail1", "scott@example.com", NOON), 3)
    assert asked.ask(SenderQuestion("d2", "mail2", "scott@example.com", NOON), 3)
    assert (asked.find("d1", NOON), asked.find("d3", NOON)) == ("mail1", "")
    assert [asked.find("d1", NOON + VALID - MINUTE), asked.find("d1", NOON + VALID)] == ["mail1", ""]
    asked.use("d1", NOON)
    asked.use("d1", NOON)
    assert [asked.find("d1", NOON), asked.find("d2", NOON)] == ["", "mail2"]


def test_an_address_is_asked_about_few_mails_on_one_day(backend: MailBackend) -> None:
    ask = backend.confirmations.ask
    scott, ann, tomorrow = "scott@example.com", "ann@example.com", NOON + timedelta(days=1)
    assert [ask(SenderQuestion(f"d{n}", f"mail{n}", scott, NOON), 2) for n in range(4)] == [True, True, False, False]
    assert ask(SenderQuestion("again", "mail1", scott, NOON), 2), "a step that runs again asks about the same mail"
    assert ask(SenderQuestion("other", "mail9", ann, NOON), 2)
    assert ask(SenderQuestion("later", "mail3", scott, tomorrow), 2)
    assert backend.confirmations.find("d2", NOON) == ""


def test_an_hour_has_room_for_so_many_mails_of_a_scope(backend: MailBackend) -> None:
    admit, later = backend.rates.admit, NOON + timedelta(hours=1)
    assert [admit("project amelia", mail, 2, NOON) for mail in ("a", "b", "c", "a")] == [True, True, False, True]
    assert admit("project bakery", "c", 2, NOON)
    assert admit("project amelia", "c", 2, later)
    counted = backend.rates.counted
    assert list(counted("project amelia", NOON, NOON)) == ["a", "b"]
    assert list(counted("project amelia", NOON, later)) == ["a", "b", "c"]
    assert list(counted("project bakery", later, later)) == []


# raw mails


def test_a_stored_mail_is_loaded_byte_for_byte(backend: MailBackend) -> None:
    assert backend.raw.store(email("a"))
    assert backend.raw.load("a" * 64) == email("a")


@pytest.mark.parametrize("size", [0, 100, HEAD_BYTES + 1, HEAD_BYTES + 5000])
def test_the_head_of_a_mail_is_enough_to_read_its_header(backend: MailBackend, size: int) -> None:
    whole = email("a", raw=b"x" * size)
    backend.raw.store(whole)
    assert backend.raw.head("a" * 64) == replace(whole, raw=whole.raw[: HEAD_BYTES + 1])
    with pytest.raises(UnknownMail, match="no mail"):
        backend.raw.head("f" * 64)


def test_a_mail_that_comes_again_stays_as_it_first_came(backend: MailBackend) -> None:
    backend.raw.store(email("a"))
    assert not backend.raw.store(email("a", at=NOON + MINUTE, raw=b"other trace headers"))
    assert backend.raw.load("a" * 64) == email("a")


def test_of_many_deliveries_of_one_mail_at_once_exactly_one_is_new(backend: MailBackend) -> None:
    together, stored = Barrier(6), list[bool]()

    def deliver() -> None:
        together.wait()
        stored.append(backend.raw.store(email("a")))

    threads = [Thread(target=deliver) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(stored) == [False] * 5 + [True]


def test_an_unknown_mail_is_said_to_be_unknown(backend: MailBackend) -> None:
    with pytest.raises(UnknownMail, match="no mail"):
        backend.raw.load("f" * 64)
    with pytest.raises(UnknownMail, match="no mail"):
        backend.raw.envelope("f" * 64)


def test_what_the_transport_knew_and_found_is_kept(backend: MailBackend) -> None:
    plain = email("a", raw=b"x" * 100_000)
    found = TransportVerdicts(dmarc="pass", dmarc_domain="bücher.example", spam="gray", virus="pass")
    checked = replace(plain, envelope=replace(plain.envelope, mail_from="jörg@bücher.example", verdicts=found))
    backend.raw.store(checked)
    backend.raw.store(email("b"))
    assert backend.raw.envelope("a" * 64) == checked.envelope
    assert backend.raw.load("a" * 64) == checked
    assert backend.raw.envelope("b" * 64).verdicts is None


def test_mails_without_workflow_are_listed_oldest_first_until_started(backend: MailBackend) -> None:
    for name, minutes in (("a", 2), ("b", 1), ("c", 3)):
        backend.raw.store(email(name, at=NOON + minutes * MINUTE))
    assert backend.raw.without_workflow(2) == ("b" * 64, "a" * 64)
    backend.raw.mark_started("b" * 64)
    backend.raw.mark_started("b" * 64)
    assert backend.raw.without_workflow(10) == ("a" * 64, "c" * 64)


@pytest.mark.parametrize("backend", ["sqlite in memory", "sqlite"], indirect=True)  # on AWS nothing arrives in order
def test_a_mail_waits_for_an_earlier_one_of_its_sender_that_has_no_place_yet(backend: MailBackend) -> None:
    for name, minutes in (("a", 1), ("b", 2)):
        backend.raw.store(email(name, at=NOON + minutes * MINUTE))
    assert backend.raw.waits_for_earlier("b" * 64, NOON)
    assert not backend.raw.waits_for_earlier("a" * 64, NOON)
    assert not backend.raw.waits_for_earlier("b" * 64, NOON + 2 * MINUTE)
    backend.raw.mark_placed("a" * 64)
    backend.raw.mark_placed("a" * 64)
    assert not backend.raw.waits_for_earlier("b" * 64, NOON)


# readings, manifests, blobs


def test_a_reading_survives_word_for_word(backend: MailBackend) -> None:
    backend.parsed.save("e1", mail(), NOON)
    assert backend.parsed.load("e1") == mail()
    backend.parsed.save("e2", mail(sent_at=None, refused_attachments=()), NOON)
    assert backend.parsed.load("e2") == mail(sent_at=None, refused_attachments=())


def test_the_first_reading_stays(backend: MailBackend) -> None:
    backend.parsed.save("e1", mail(), NOON)
    backend.parsed.save("e1", mail(text="another"), NOON + MINUTE)
    assert backend.parsed.load("e1") == mail()


def test_a_mail_that_was_never_read_has_no_reading(backend: MailBackend) -> None:
    assert backend.parsed.load("e1") is None


def test_a_reading_of_any_length_and_alphabet_survives(backend: MailBackend) -> None:
    long = mail(text="Ä€😀" * 300_000, subject="日本語", sender="ann@bücher.example")
    backend.parsed.save("e1", long, NOON)
    assert backend.parsed.load("e1") == long


def test_a_manifest_keeps_the_order_of_the_mail(backend: MailBackend) -> None:
    photo = Attachment("mug.jpg", "image/jpeg", AttachmentKind.IMAGE, 3, "ab" * 32)
    program = RefusedAttachment("x.exe", "it is a program")
    backend.manifest.save("e1", 1, program)
    backend.manifest.save("e1", 0, photo)
    backend.manifest.save("e1", 0, photo)
    assert backend.manifest.of("e1") == (photo, program)
    assert backend.manifest.of("e2") == ()


def test_the_same_bytes_have_the_same_name(backend: MailBackend) -> None:
    digest = backend.blobs.put(b"photo")
    assert backend.blobs.put(b"photo") == digest
    assert backend.blobs.get(digest) == b"photo"


def test_unknown_bytes_are_said_to_be_unknown(backend: MailBackend) -> None:
    with pytest.raises(Permanent, match="restore a backup"):
        backend.blobs.get("0" * 64)


# threads


def test_a_thread_is_found_by_any_of_its_messages(backend: MailBackend) -> None:
    thread = MailThread("t1", SCOTT, "title")
    backend.threads.record(thread, "<1@x>", NOON)
    backend.threads.add_message("t1", "<reply@localhost>")
    assert backend.threads.find(("<unknown@x>", "<reply@localhost>")) == thread
    assert backend.threads.find(("<1@x>",)) == thread
    assert backend.threads.find(("<unknown@x>",)) is None
    assert backend.threads.get("t1") == thread
    assert backend.threads.get("t2") is None


def test_a_mail_is_found_by_its_own_message_and_by_our_answer_to_it(backend: MailBackend) -> None:
    backend.threads.record(MailThread("t1", SCOTT, "title"), "<1@x>", NOON, "mail-1")
    backend.threads.record(MailThread("t1", SCOTT, "title"), "<2@x>", NOON, "mail-2")
    backend.threads.add_message("t1", "<reply@localhost>", "mail-1")
    backend.threads.add_message("t1", "<reply@localhost>", "mail-2")
    assert backend.threads.mail_of(("<unknown@x>", "<2@x>", "<1@x>")) == "mail-2"
    assert backend.threads.mail_of(("<reply@localhost>",)) == "mail-1"
    assert backend.threads.mail_of(("<unknown@x>",)) == ""
    assert backend.threads.mail_of(()) == ""


def test_a_thread_is_found_behind_hundreds_of_strange_messages(backend: MailBackend) -> None:
    thread = backend.threads.record(MailThread("t1", SCOTT, "Größe"), "<1@bücher.example>", NOON)
    strangers = [f"<{number}@strange.example>" for number in range(130)]
    assert backend.threads.find((*strangers, *strangers, "<1@bücher.example>")) == thread
    assert backend.threads.find((*strangers, "<" + "x" * 5000 + "@x>")) is None
    assert backend.threads.find(()) is None


def test_the_first_known_message_decides_the_thread(backend: MailBackend) -> None:
    backend.threads.record(MailThread("t1", SCOTT, "one"), "<1@x>", NOON)
    backend.threads.record(MailThread("t2", ANN, "two"), "<2@x>", NOON)
    found = backend.threads.find(("<2@x>", "<1@x>"))
    assert found
    assert found.thread_id == "t2"


def test_recording_a_thread_again_changes_nothing(backend: MailBackend) -> None:
    thread = MailThread("t1", SCOTT, "title")
    backend.threads.record(thread, "<1@x>", NOON)
    assert backend.threads.record(MailThread("t1", ANN, "stolen"), "<2@x>", NOON) == thread
    assert backend.threads.find(("<2@x>",)) == thread


def test_a_message_never_changes_its_thread(backend: MailBackend) -> None:
    backend.threads.record(MailThread("t1", SCOTT, "one"), "<1@x>", NOON)
    backend.threads.record(MailThread("t2", ANN, "two"), "<1@x>", NOON)
    backend.threads.add_message("t2", "<1@x>")
    found = backend.threads.find(("<1@x>",))
    assert found
    assert found.thread_id == "t1"


def test_a_message_cannot_join_a_thread_that_is_not_there(backend: MailBackend) -> None:
    with pytest.raises(Permanent, match="not recorded"):
        backend.threads.add_message("t1", "<1@x>")


def test_a_thread_remembers_the_agents_session(backend: MailBackend) -> None:
    backend.threads.record(MailThread("t1", SCOTT, "one"), "<1@x>", NOON)
    backend.threads.save_session("t1", "session-7")
    found = backend.threads.get("t1")
    assert found
    assert found.agent_session == "session-7"


# directory


def test_an_address_is_entitled_whatever_its_case(backend: MailBackend) -> None:
    amelia = Project("amelia", "/origins/amelia.git", agent="builtin")
    backend.directory.add_project(amelia, NOON)
    backend.directory.add_sender(Sender("Scott@Example.com", SCOTT), NOON)
    backend.directory.add_sender(Sender("scott@example.com", SCOTT), NOON)
    assert backend.directory.entries("SCOTT@example.COM") == (Sender("scott@example.com", SCOTT),)
    assert backend.directory.entries("stranger@example.com") == ()
    assert backend.directory.senders() == (Sender("scott@example.com", SCOTT),)


def test_adding_a_project_again_replaces_its_settings(backend: MailBackend) -> None:
    backend.directory.add_project(Project("amelia", "/a"), NOON)
    backend.directory.add_project(Project("amelia", "/b", builder="hugo"), NOON)
    backend.directory.add_project(Project("acme", "/c"), NOON)
    assert backend.directory.project("amelia") == Project("amelia", "/b", builder="hugo")
    assert [project.project_id for project in backend.directory.projects()] == ["acme", "amelia"]
    assert backend.directory.project("none") is None


def test_settings_are_changed_only_where_they_are_what_was_read(backend: MailBackend) -> None:
    amelia = Project("amelia", "/a", agent="claude", daily_cap_usd=2.5)
    wishes = ("British spelling", "“Grüße”, never 'MfG'")
    assert not backend.directory.change_project(amelia, replace(amelia, wishes=wishes)), "there is no such project"
    assert backend.directory.project("amelia") is None
    backend.directory.add_project(amelia, NOON)
    assert backend.directory.change_project(amelia, replace(amelia, wishes=wishes))
    assert not backend.directory.change_project(amelia, replace(amelia, paused=True)), "lost: the wishes"
    changed = replace(amelia, wishes=wishes)
    assert backend.directory.project("amelia") == changed
    assert backend.directory.change_project(changed, replace(changed, paused=True))
    assert backend.directory.project("amelia") == replace(changed, paused=True)


def test_two_changes_of_settings_at_once_are_both_kept(backend: MailBackend) -> None:
    backend.directory.add_project(Project("amelia", "/a"), NOON)
    between = iter([True])

    def pause(project: Project) -> Project:
        if next(between, False):
            change_project(backend.directory, "amelia", lambda one: replace(one, wishes=("British spelling",)))
        return replace(project, paused=True)

    changed = Project("amelia", "/a", paused=True, wishes=("British spelling",))
    assert change_project(backend.directory, "amelia", pause) == changed
    assert backend.directory.project("amelia") == changed


def test_an_address_that_is_removed_changes_nothing_of_that_project_any_more(backend: MailBackend) -> None:
    for name in ("amelia", "acme"):
        backend.directory.add_project(Project(name, "/a"), NOON)
        backend.directory.add_sender(Sender("scott@example.com", ProjectUser(name, "scott")), NOON)
    for _ in range(2):
        backend.directory.remove_sender("Scott@Example.com", "acme")
        assert backend.directory.entries("scott@example.com") == (Sender("scott@example.com", SCOTT),)


def test_the_role_of_a_sender_is_kept_when_the_address_is_added_again(backend: MailBackend) -> None:
    backend.directory.add_project(Project("amelia", "/a"), NOON)
    assert not backend.directory.set_role("scott@example.com", "amelia", SenderRole.EDITOR)
    assert backend.directory.entries("scott@example.com") == (), "a role entitles no address"
    backend.directory.add_sender(Sender("scott@example.com", SCOTT), NOON)
    assert backend.directory.set_role("Scott@Example.com", "amelia", SenderRole.EDITOR)
    backend.directory.add_sender(Sender("scott@example.com", SCOTT), NOON)
    editor = Sender("scott@example.com", SCOTT, SenderRole.EDITOR)
    assert backend.directory.entries("scott@example.com") == backend.directory.senders() == (editor,)


def test_a_project_goes_with_everybody_who_could_change_it_and_nobody_else(backend: MailBackend) -> None:
    for name in ("amelia", "acme"):
        backend.directory.add_project(Project(name, "/a"), NOON)
        backend.directory.add_sender(Sender("scott@example.com", ProjectUser(name, "scott")), NOON)
    backend.directory.add_sender(Sender("ann@example.com", ProjectUser("acme", "ann")), NOON)
    for _ in range(2):
        backend.directory.remove_project("acme")
        assert [project.project_id for project in backend.directory.projects()] == ["amelia"]
        assert backend.directory.senders() == (Sender("scott@example.com", SCOTT),)
        assert backend.directory.entries("ann@example.com") == ()


def test_nobody_is_entitled_to_a_project_that_is_not_there(backend: MailBackend) -> None:
    with pytest.raises(Permanent, match="add it first"):
        backend.directory.add_sender(Sender("scott@example.com", SCOTT), NOON)


# outbox


def test_a_mail_gets_one_reply_of_a_kind(backend: MailBackend) -> None:
    assert backend.outbox.put(reply(), NOON)
    assert not backend.outbox.put(replace(reply(), raw=b"other"), NOON + MINUTE)
    assert [entry.reply for entry in backend.outbox.of("e1")] == [reply()]
    assert backend.outbox.put(reply(kind="held"), NOON)


def test_a_reply_is_due_until_it_is_sent(backend: MailBackend) -> None:
    backend.outbox.put(reply("e1"), NOON)
    backend.outbox.put(reply("e2"), NOON + MINUTE)
    assert [entry.reply.email_id for entry in backend.outbox.due(NOON, 10)] == ["e1"]
    assert [entry.reply.email_id for entry in backend.outbox.due(NOON + MINUTE, 10)] == ["e1", "e2"]
    assert [entry.reply.email_id for entry in backend.outbox.due(NOON + MINUTE, 1)] == ["e1"]
    backend.outbox.mark_sent(reply("e1"), NOON + MINUTE)
    assert [entry.reply.email_id for entry in backend.outbox.due(NOON + MINUTE, 10)] == ["e2"]
    assert backend.outbox.of("e1")[0].sent_at == NOON + MINUTE


def test_a_failed_reply_waits_for_its_next_try(backend: MailBackend) -> None:
    backend.outbox.put(reply(), NOON)
    backend.outbox.mark_failed(reply(), "relay asleep", NOON + MINUTE)
    assert backend.outbox.due(NOON, 10) == ()
    (entry,) = backend.outbox.due(NOON + MINUTE, 10)
    assert (entry.attempts, entry.last_error, entry.given_up) == (1, "relay asleep", False)


def test_a_reply_that_is_given_up_is_never_due_and_stays_visible(backend: MailBackend) -> None:
    backend.outbox.put(reply(), NOON)
    backend.outbox.mark_failed(reply(), "no such user", None)
    assert backend.outbox.due(NOON + 1000 * MINUTE, 10) == ()
    assert backend.outbox.of("e1")[0].given_up


def test_a_reply_of_any_size_is_kept_byte_for_byte(backend: MailBackend) -> None:
    large = replace(reply(), raw=bytes(range(256)) * 4000, recipient="ann@bücher.example", thread_id="t1")
    backend.outbox.put(large, NOON)
    assert [entry.reply for entry in backend.outbox.due(NOON, 10)] == [large]
    assert [entry.reply for entry in backend.outbox.of("e1")] == [large]


def test_the_name_under_which_a_reply_left_and_its_return_are_remembered(backend: MailBackend) -> None:
    backend.outbox.put(reply(), NOON)
    backend.outbox.mark_sent(reply(), NOON, "<0100@email.amazonses.com>")
    backend.outbox.mark_sent(reply(), NOON + MINUTE, "<another@email.amazonses.com>")
    backend.outbox.mark_bounced(reply(), "no such user")
    (entry,) = backend.outbox.of("e1")
    assert (entry.sent_as, entry.sent_at, entry.attempts) == ("<0100@email.amazonses.com>", NOON, 1)
    assert (entry.bounced, entry.given_up) == ("no such user", False)
    assert backend.outbox.due(NOON + 1000 * MINUTE, 10) == ()


@pytest.mark.parametrize("size", [10, 40_000])
def test_a_secret_of_the_receiver_is_kept_only_until_the_reply_was_sent(backend: MailBackend, size: int) -> None:
    secret = replace(reply(), raw=b"the secret" + b"." * size)
    backend.outbox.put(secret, NOON)
    backend.outbox.mark_sent(secret, NOON, "<0100@email.amazonses.com>", kept=b"none")
    (entry,) = backend.outbox.of("e1")
    assert (entry.reply.raw, entry.sent_as) == (b"none", "<0100@email.amazonses.com>")


def test_what_becomes_of_a_reply_that_was_never_written_changes_nothing(backend: MailBackend) -> None:
    backend.outbox.mark_sent(reply(), NOON)
    backend.outbox.mark_failed(reply(), "late", NOON)
    backend.outbox.mark_bounced(reply(), "no such user")
    assert backend.outbox.of("e1") == ()
    assert backend.outbox.put(reply(), NOON)


def test_a_late_failure_does_not_unsend_a_reply(backend: MailBackend) -> None:
    backend.outbox.put(reply(), NOON)
    backend.outbox.mark_sent(reply(), NOON)
    backend.outbox.mark_failed(reply(), "late", NOON)
    assert backend.outbox.due(NOON + MINUTE, 10) == ()


# what only files can do wrong


def test_a_mail_whose_row_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    db = Database(tmp_path / "webordinary.db")
    db.migrate()
    mails = SqliteRawMails(db, tmp_path)
    with db.write() as conn:
        conn.execute("CREATE TRIGGER no BEFORE INSERT ON raw_mails BEGIN SELECT RAISE(ABORT, 'row refused'); END")
    with pytest.raises(sqlite3.IntegrityError, match="row refused"):
        mails.store(email("a"))
    assert [file for file in (tmp_path / "mail").rglob("*") if file.is_file()] == []
    db.close()


def test_a_blob_is_never_looked_for_outside_its_folder(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="SHA-256"):
        LocalBlobs(tmp_path).path("../../etc/passwd")
