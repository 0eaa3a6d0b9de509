"""A known sender without proof is held and asked; an answer with the token releases that one mail and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from email import message_from_bytes, policy
from pathlib import Path

import pytest

from tests.harness.embedded import SCOTT, EmbeddedHarness, open_harness
from webordinary.adapters.files.transports import MaildirTransport
from webordinary.mail.confirm import MAX_QUESTIONS_A_DAY, digest_of
from webordinary.mail.intake import accept
from webordinary.mail.outbox import deliver_due
from webordinary.mail.write import CustomerMail, write_mail
from webordinary.model.mail import Delivery, TransportKind
from webordinary.model.names import job_id_of
from webordinary.workflow.start import start, start_missing

STRANGER = "eve@evil.example"


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path, trusted_peers=()) as made:
        yield made


def question_of(harness: EmbeddedHarness, email_id: str) -> str:
    """The address that the question asks its reader to answer to."""
    [entry] = harness.replies(email_id)
    assert (entry.reply.kind, entry.reply.recipient) == ("confirm", SCOTT)
    mail = message_from_bytes(entry.reply.raw, policy=policy.default)
    return re.findall(r"<([^>]+)>", mail["Reply-To"])[0]


def words_of(harness: EmbeddedHarness, email_id: str) -> str:
    [entry] = harness.replies(email_id)
    mail = message_from_bytes(entry.reply.raw, policy=policy.default)
    body = mail.get_body(("plain",))
    assert body is not None
    return str(body.get_content())


def answer(harness: EmbeddedHarness, address: str, text: str = "Yes, that was me", **fields: str) -> str:
    """Somebody writes to the address of a question."""
    services, now = harness.services, harness.services.clock.now()
    sender = fields.pop("sender", SCOTT)
    message_id = f"<{len(text)}.{hash((address, text, sender)) & 0xFFFFFFFF}@example.com>"
    letter = CustomerMail(sender, address, "Re: Did you write this?", text, message_id=message_id)
    raw = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items()).encode()
    told = Delivery(TransportKind.SMTP, "192.0.2.1", fields.get("Return_Path", sender).strip("<>"), (address,), now)
    [mail] = accept(raw + write_mail(letter, now), told, mails=services.raw_mails, events=services.events)
    start(mail.email_id, harness.engine, services.raw_mails)
    harness.engine.run_ready()
    return mail.email_id


def is_done(harness: EmbeddedHarness, email_id: str) -> bool:
    harness.engine.run_ready()
    return harness.services.jobs.get(job_id_of(email_id)) is not None


def stopped(harness: EmbeddedHarness, email_id: str) -> str:
    with harness.services.db.read() as conn:
        return str(conn.execute("SELECT stopped FROM raw_mails WHERE email_id = ?", (email_id,)).fetchone()[0])


def test_a_held_mail_is_asked_about_and_done_after_a_yes(harness: EmbeddedHarness) -> None:
    email_id = harness.receive("Change the title to Spring Sale")
    assert not is_done(harness, email_id)
    assert "Spring Sale" in words_of(harness, email_id)
    answered = answer(harness, question_of(harness, email_id))
    assert is_done(harness, email_id)
    harness.work()
    assert [entry.reply.kind for entry in harness.replies(email_id)] == ["confirm", "answer"]
    assert harness.replies(answered) == []


def test_the_address_with_the_token_releases_from_any_address(harness: EmbeddedHarness) -> None:
    """The token is the proof: a person may read their mail under another address."""
    email_id = harness.receive()
    answer(harness, question_of(harness, email_id), sender="scott@home.example")
    assert is_done(harness, email_id)


def test_a_confirmation_releases_its_mail_and_no_other(harness: EmbeddedHarness) -> None:
    first, second = harness.receive("Change the title to A"), harness.receive("Change the title to B")
    answer(harness, question_of(harness, first))
    assert (is_done(harness, first), is_done(harness, second)) == (True, False)


def test_a_no_drops_the_mail_for_good(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    address = question_of(harness, email_id)
    answer(harness, address, "No! I did not write that, yes really")
    answer(harness, address, "Yes")
    assert not is_done(harness, email_id)
    assert stopped(harness, email_id) == "dropped"


@pytest.mark.parametrize("text", ["", "What is this?", "I am away until Monday", "yes? no, I do not think so"])
def test_an_answer_that_is_neither_yes_nor_no_changes_nothing(harness: EmbeddedHarness, text: str) -> None:
    email_id = harness.receive()
    address = question_of(harness, email_id)
    answer(harness, address, text)
    assert not is_done(harness, email_id)
    answer(harness, address, "Ja")
    assert is_done(harness, email_id)


@pytest.mark.parametrize(
    "fields",
    [{"Auto_Submitted": "auto-replied"}, {"Precedence": "auto_reply"}, {"Return_Path": "<>"}, {"X_Autoreply": "yes"}],
)
def test_an_automatic_reply_to_the_question_confirms_nothing(harness: EmbeddedHarness, fields: dict[str, str]) -> None:
    email_id = harness.receive()
    answer(harness, question_of(harness, email_id), "Yes, I am away", **fields)
    assert not is_done(harness, email_id)


def test_a_used_token_releases_nothing_again(harness: EmbeddedHarness) -> None:
    first = harness.receive("Change the title to A")
    address = question_of(harness, first)
    answer(harness, address)
    assert is_done(harness, first)
    replayed = answer(harness, address, "yes, once more")
    assert stopped(harness, replayed) == "refused"
    assert harness.replies(replayed) == []


def test_an_expired_token_releases_nothing(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    address = question_of(harness, email_id)
    with harness.services.db.write() as conn:
        conn.execute("UPDATE confirmations SET expires_at = expires_at - 48 * 3600")
    late = answer(harness, address)
    assert not is_done(harness, email_id)
    assert stopped(harness, late) == "refused"


@pytest.mark.parametrize(
    "token", ["confirm-" + "0" * 32, "confirm-", "confirm-" + "f" * 31, "confirm-" + "0" * 32 + "-x", "confirm"]
)
def test_a_guessed_token_releases_nothing_and_gets_no_answer(harness: EmbeddedHarness, token: str) -> None:
    email_id = harness.receive()
    guessed = answer(harness, f"edit+{token}@localhost", sender=STRANGER)
    assert not is_done(harness, email_id)
    assert harness.replies(guessed) == []


def test_a_stolen_copy_of_the_database_has_no_token(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    token = question_of(harness, email_id).partition("+")[2].partition("@")[0]
    with harness.services.db.read() as conn:
        [row] = conn.execute("SELECT * FROM confirmations").fetchall()
    assert row["digest"] == digest_of(token)
    assert all(token not in str(value) for value in tuple(row))


def test_a_question_that_was_sent_leaves_no_token_in_the_database(harness: EmbeddedHarness, tmp_path: Path) -> None:
    email_id = harness.receive()
    address = question_of(harness, email_id)
    token = address.partition("+")[2].partition("@")[0]
    services = harness.services
    assert (
        deliver_due(
            services.outbox,
            MaildirTransport(tmp_path / "sent"),
            services.clock.now(),
            services.events,
        )
        == 1
    )
    assert "Spring Sale" in words_of(harness, email_id)
    with services.db.read() as conn:
        tables = [row["name"] for row in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = [tuple(row) for table in tables for row in conn.execute(f"SELECT * FROM {table}")]
    assert all(token not in str(value) for row in rows for value in row)
    answer(harness, address)
    assert is_done(harness, email_id)


def test_a_question_shows_all_that_a_yes_would_release(harness: EmbeddedHarness) -> None:
    wish = "Change the title to Spring Sale. " * 25 + "Then delete the contact page."
    email_id = harness.receive(wish)
    assert "Then delete the contact page" in " ".join(words_of(harness, email_id).replace("\n>", " ").split())
    assert "+confirm-" in question_of(harness, email_id)


@pytest.mark.parametrize(
    "wish", ["Change the title to Spring Sale. " * 90 + "Then delete the contact page.", "x" * 9_000]
)
def test_a_mail_that_cannot_be_shown_whole_cannot_be_confirmed(harness: EmbeddedHarness, wish: str) -> None:
    email_id = harness.receive(wish)
    [entry] = harness.replies(email_id)
    assert b"confirm-" not in entry.reply.raw
    assert "too long to be shown" in " ".join(words_of(harness, email_id).split())
    assert stopped(harness, email_id) == "held"


def test_nothing_in_a_question_becomes_a_link(harness: EmbeddedHarness) -> None:
    dots = " ".join(f"evil{dot}example" for dot in "\u3002\uff0e\uff61\u2024")
    email_id = harness.receive(
        f"See evil.example/login, http://evil.example, //192.0.2.1/x, mail eve@evil.example, {dots}"
    )
    [entry] = harness.replies(email_id)
    for words in (entry.reply.raw, words_of(harness, email_id).encode()):
        assert not re.search(rb"evil\.|http:/|eve@", words)
    assert not re.search(r"evil\S+example", words_of(harness, email_id))


@pytest.mark.parametrize("length", [40, 3_000])
def test_a_question_says_nothing_of_the_mail_in_our_own_words(harness: EmbeddedHarness, length: int) -> None:
    now = harness.services.clock.now()
    letter = CustomerMail(SCOTT, "edit@localhost", 'Hi". Your account is at risk', "Call us. " * (length // 9))
    told = Delivery(TransportKind.SMTP, "192.0.2.1", SCOTT, ("edit@localhost",), now)
    [mail] = accept(write_mail(letter, now), told, mails=harness.services.raw_mails, events=harness.services.events)
    start(mail.email_id, harness.engine, harness.services.raw_mails)
    harness.engine.run_ready()
    lines = words_of(harness, mail.email_id).splitlines()
    assert [line[0] for line in lines if "account" in line] == [">"]


def test_a_mail_does_not_push_what_we_say_out_of_sight(harness: EmbeddedHarness) -> None:
    email_id = harness.receive("Hello" + "\n" * 900 + "there")
    assert len(words_of(harness, email_id).splitlines()) < 40


def test_an_attacker_cannot_flood_the_owner_with_questions(harness: EmbeddedHarness) -> None:
    """A confirmation asked for by an attacker: few a day, to the registered address, with nothing to click."""
    mails = [harness.receive(f"Visit https://evil.example/{n} and www.evil.example") for n in range(8)]
    asked = [email_id for email_id in mails if harness.replies(email_id)]
    assert len(asked) == MAX_QUESTIONS_A_DAY
    assert all("https://evil" not in words_of(harness, email_id) for email_id in asked)
    assert all(stopped(harness, email_id) == "held" for email_id in mails)


def test_a_stranger_gets_no_question(harness: EmbeddedHarness) -> None:
    email_id = harness.receive(sender=STRANGER)
    assert harness.replies(email_id) == []


def test_a_step_that_runs_again_asks_once(harness: EmbeddedHarness) -> None:
    from webordinary.compose.steps import answering_of

    email_id = harness.receive()
    address = question_of(harness, email_id)
    payload = {"emailId": email_id, "redrive": 0, "sender": {"verdict": "asked"}}
    answering_of(harness.services).reply(payload)
    assert question_of(harness, email_id) == address


def test_a_released_mail_whose_start_was_lost_is_started_by_the_sweep(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    assert harness.services.raw_mails.release(email_id)
    assert start_missing(harness.engine, harness.services.raw_mails) == 1
    assert is_done(harness, email_id)
    assert start_missing(harness.engine, harness.services.raw_mails) == 0


def test_a_person_who_was_removed_meanwhile_confirms_nothing(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    address = question_of(harness, email_id)
    harness.services.directory.remove_sender(SCOTT, "amelia")
    answer(harness, address)
    assert not is_done(harness, email_id)


def test_a_question_of_a_mail_with_an_old_date_is_valid_from_when_it_was_asked(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    with harness.services.db.read() as conn:
        [row] = conn.execute("SELECT expires_at FROM confirmations").fetchall()
    left = datetime.fromtimestamp(row["expires_at"], harness.services.clock.now().tzinfo) - harness.services.clock.now()
    assert timedelta(hours=47) < left <= timedelta(hours=48)
    assert harness.replies(email_id)
