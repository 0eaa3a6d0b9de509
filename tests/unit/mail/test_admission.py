from __future__ import annotations

import pytest

from tests.unit.mail.letters import NOON, SCOTT, envelope, parsed
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.mails import SqliteThreads
from webordinary.mail.addresses import Mailbox
from webordinary.mail.auth import Admitted, AwaitsConfirmation, Refused, TrustedPeers, authenticate
from webordinary.mail.identify import Ambiguous, Identified, identify
from webordinary.model.errors import Permanent
from webordinary.model.names import ProjectUser, thread_id_of
from webordinary.model.projects import Sender, Thread

EDIT = Mailbox.parse("edit@localhost")
AMELIA = Sender(SCOTT, ProjectUser("amelia", "scott"))
BAKERY = Sender(SCOTT, ProjectUser("bakery", "scott"))
LOCAL = TrustedPeers(["127.0.0.1", "10.0.0.0/8", "::1"])


def test_a_known_sender_from_a_trusted_peer_is_admitted() -> None:
    assert authenticate(envelope(), parsed(), (AMELIA,), LOCAL) == Admitted()
    assert authenticate(envelope("10.1.2.3"), parsed(), (AMELIA,), LOCAL) == Admitted()
    assert authenticate(envelope("::1"), parsed(), (AMELIA,), LOCAL) == Admitted()


@pytest.mark.parametrize("peer", ["192.0.2.1", "", "localhost", "2001:db8::1"])
def test_a_known_sender_from_elsewhere_is_held(peer: str) -> None:
    verdict = authenticate(envelope(peer), parsed(), (AMELIA,), LOCAL)
    assert isinstance(verdict, AwaitsConfirmation)


def test_a_stranger_is_refused_even_from_a_trusted_peer() -> None:
    verdict = authenticate(envelope(), parsed(sender="eve@example.com"), (), LOCAL)
    assert isinstance(verdict, Refused)
    assert "eve@example.com" in verdict.reason


def test_machines_and_nameless_senders_are_refused() -> None:
    assert isinstance(authenticate(envelope(), parsed(automatic=True), (AMELIA,), LOCAL), Refused)
    assert isinstance(authenticate(envelope(mail_from=""), parsed(), (AMELIA,), LOCAL), Refused)
    assert isinstance(authenticate(envelope(), parsed(sender=""), (AMELIA,), LOCAL), Refused)


def test_with_nobody_trusted_everything_is_held() -> None:
    assert isinstance(authenticate(envelope(), parsed(), (AMELIA,), TrustedPeers([])), AwaitsConfirmation)


def test_a_network_that_is_none_is_named() -> None:
    with pytest.raises(Permanent, match="trusted peers"):
        TrustedPeers(["home"])


def test_a_first_mail_begins_a_thread_named_after_itself() -> None:
    found = identify(envelope(), parsed(), (AMELIA,), SqliteThreads(MemoryDatabase()), EDIT)
    assert found == Identified(Thread(thread_id_of("<1@example.com>"), AMELIA.key, "Title"), is_new=True)


def test_a_reply_to_our_answer_goes_on_in_its_thread() -> None:
    threads = SqliteThreads(MemoryDatabase())
    thread = threads.record(Thread("t1", BAKERY.key, "Bread"), "<0@example.com>", NOON)
    threads.add_message("t1", "<answer@localhost>")
    found = identify(envelope(), parsed(in_reply_to=("<answer@localhost>",)), (AMELIA, BAKERY), threads, EDIT)
    assert found == Identified(thread, is_new=False)


def test_the_address_of_a_thread_is_enough_to_go_on_in_it() -> None:
    threads = SqliteThreads(MemoryDatabase())
    thread = threads.record(Thread(thread_id_of("<0@x>"), BAKERY.key, "Bread"), "<0@x>", NOON)
    threads.record(Thread(thread_id_of("<9@x>"), AMELIA.key, "Other"), "<9@x>", NOON)
    to_it = envelope(recipient=f"edit+{thread.thread_id}@localhost")
    assert identify(to_it, parsed(references=("<9@x>",)), (AMELIA, BAKERY), threads, EDIT) == (
        Identified(thread, is_new=False)
    )


def test_the_address_of_a_button_selects_its_conversation_and_never_authorises() -> None:
    threads = SqliteThreads(MemoryDatabase())
    thread = threads.record(Thread(thread_id_of("<0@x>"), BAKERY.key, "Bread"), "<0@x>", NOON)
    pressed = envelope(recipient=f"edit+{thread.thread_id}.{'5' * 20}@localhost")
    assert identify(pressed, parsed(), (AMELIA, BAKERY), threads, EDIT) == Identified(thread, is_new=False)
    found = identify(pressed, parsed(), (AMELIA,), threads, EDIT)
    assert found == Ambiguous(("amelia",), ("edit+amelia@localhost",))


def test_the_address_of_a_thread_selects_and_never_authorises() -> None:
    threads = SqliteThreads(MemoryDatabase())
    thread = threads.record(Thread(thread_id_of("<0@x>"), ProjectUser("museum", "ann"), "Secret"), "<0@x>", NOON)
    to_it = envelope(recipient=f"edit+{thread.thread_id}@localhost")
    found = identify(to_it, parsed(), (AMELIA,), threads, EDIT)
    assert found == Ambiguous(("amelia",), ("edit+amelia@localhost",))
    unknown = identify(envelope(recipient="edit+0123456789abcdef@localhost"), parsed(), (AMELIA,), threads, EDIT)
    assert isinstance(unknown, Identified)
    assert (unknown.key, unknown.is_new) == (AMELIA.key, True)


def test_a_stranger_to_a_project_cannot_join_its_threads() -> None:
    threads = SqliteThreads(MemoryDatabase())
    root = "<0@example.com>"
    threads.record(Thread(thread_id_of(root), ProjectUser("museum", "ann"), "Secret"), root, NOON)
    named = envelope(recipient="edit+amelia@localhost")
    found = identify(named, parsed(references=(root,)), (AMELIA,), threads, EDIT)
    assert isinstance(found, Identified)
    assert (found.key, found.is_new) == (AMELIA.key, True)
    assert found.thread.thread_id != thread_id_of(root)


def test_words_about_a_site_that_somebody_left_do_not_change_their_other_one() -> None:
    threads = SqliteThreads(MemoryDatabase())
    threads.record(Thread("t1", BAKERY.key, "Bread"), "<answer@localhost>", NOON)
    reply = parsed(in_reply_to=("<answer@localhost>",))
    assert identify(envelope(), reply, (AMELIA,), threads, EDIT) == Ambiguous(("amelia",), ("edit+amelia@localhost",))


def test_a_reply_that_overtook_its_root_is_in_the_same_thread() -> None:
    threads = SqliteThreads(MemoryDatabase())
    late = identify(envelope(), parsed(references=("<root@x>",)), (AMELIA,), threads, EDIT)
    assert isinstance(late, Identified)
    threads.record(late.thread, "<1@example.com>", NOON)
    root = identify(envelope(), parsed(message_id="<root@x>"), (AMELIA,), threads, EDIT)
    assert root == Identified(late.thread, is_new=False)


def test_identifying_again_gives_the_same_answer() -> None:
    threads = SqliteThreads(MemoryDatabase())
    first = identify(envelope(), parsed(), (AMELIA,), threads, EDIT)
    assert isinstance(first, Identified)
    threads.record(first.thread, "<1@example.com>", NOON)
    again = identify(envelope(), parsed(), (AMELIA,), threads, EDIT)
    assert isinstance(again, Identified)
    assert again.thread == first.thread


def test_the_address_chooses_among_several_projects() -> None:
    found = identify(
        envelope(recipient="edit+bakery@localhost"), parsed(), (AMELIA, BAKERY), SqliteThreads(MemoryDatabase()), EDIT
    )
    assert isinstance(found, Identified)
    assert found.key == BAKERY.key


def test_a_token_never_authorises_and_is_never_passed_over() -> None:
    found = identify(
        envelope(recipient="edit+museum@localhost"), parsed(), (AMELIA,), SqliteThreads(MemoryDatabase()), EDIT
    )
    assert found == Ambiguous(("amelia",), ("edit+amelia@localhost",), "museum")


def test_who_has_several_projects_and_names_none_is_asked() -> None:
    found = identify(envelope(), parsed(), (AMELIA, BAKERY), SqliteThreads(MemoryDatabase()), EDIT)
    assert found == Ambiguous(("amelia", "bakery"), ("edit+amelia@localhost", "edit+bakery@localhost"))


def test_one_mail_to_two_projects_is_two_threads() -> None:
    threads = SqliteThreads(MemoryDatabase())
    keys = set()
    for recipient in ("edit+amelia@localhost", "edit+bakery@localhost"):
        found = identify(envelope(recipient=recipient), parsed(), (AMELIA, BAKERY), threads, EDIT)
        assert isinstance(found, Identified)
        keys.add((threads.record(found.thread, "<1@example.com>", NOON).key, found.thread.thread_id))
    assert len(keys) == 2
