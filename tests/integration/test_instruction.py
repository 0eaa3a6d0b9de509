"""What a worker is told of a mail: the customer's own words, and never an older wish again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.harness.embedded import DONE, SCOTT, EmbeddedHarness, open_harness
from tests.photos import picture
from webordinary.compose.worker import instructions_of
from webordinary.mail.intake import accept
from webordinary.mail.write import CustomerMail, OutgoingFile, write_mail
from webordinary.model.jobs import JobOutcome, JobResult, Settlement
from webordinary.model.mail import Delivery, Instruction, TransportKind
from webordinary.model.names import job_id_of
from webordinary.workflow.start import start

WISH = "Change the title to Sale"


@pytest.mark.parametrize(("subject", "heard"), [(WISH, WISH), (f"Re: {WISH}", ""), (f"AW: Re: {WISH}", "")])
def test_the_subject_of_an_empty_answer_is_not_asked_for_again(tmp_path: Path, subject: str, heard: str) -> None:
    with open_harness(tmp_path / "data") as harness:
        services, now = harness.services, harness.services.clock.now()
        raw = write_mail(CustomerMail(SCOTT, "edit@localhost", subject, "", message_id="<1@example.com>"), now)
        delivery = Delivery(TransportKind.SMTP, "127.0.0.1", SCOTT, ("edit@localhost",), now)
        [mail] = accept(raw, delivery, mails=services.raw_mails, events=services.events)
        start(mail.email_id, harness.engine, services.raw_mails)
        harness.engine.run_ready()
        job = services.jobs.get(job_id_of(mail.email_id, 0))
        assert job
        instruction = instructions_of(services).of(job)
    assert (instruction.text, instruction.subject) == ("", heard)


ASKED = Settlement(JobOutcome.SUCCEEDED, JobResult("Which place?", question="Which place?"))
WANTED = "Please change pots to bowls"


@pytest.mark.parametrize(
    ("outcomes", "answer", "wish"),
    [
        ((ASKED,), "2. Best, Scott", WANTED),
        ((ASKED, ASKED), "Everywhere, please.", WANTED),
        ((DONE,), "2. Best, Scott", ""),
        ((ASKED,), "Change the heading of the home page to Pots", ""),
    ],
)
def test_an_answer_in_fewer_words_brings_the_wish_that_was_asked_about(
    tmp_path: Path, outcomes: tuple[Settlement, ...], answer: str, wish: str
) -> None:
    with open_harness(tmp_path / "data") as harness:
        email_id = harness.receive(WANTED)
        for number, outcome in enumerate(outcomes):
            harness.work(outcome)
            [reply] = [entry.reply for entry in harness.replies(email_id)]
            last = number == len(outcomes) - 1
            email_id = harness.receive(answer if last else "The third.", answers=reply.message_id)
        job = harness.services.jobs.get(job_id_of(email_id))
        assert job
        assert instructions_of(harness.services).of(job).wish == wish


def letter(harness: EmbeddedHarness, text: str, answers: str = "", photos: Sequence[str] = (), **about: str) -> str:
    """A mail of Scott's, which is read and gets its job; its id."""
    services, now = harness.services, harness.services.clock.now()
    files = [OutgoingFile(name, "image/png", picture("PNG")) for name in photos]
    to, subject = about.get("to", "edit@localhost"), about.get("subject", "Our site")
    raw = write_mail(
        CustomerMail(SCOTT, to, subject, text, files, f"<{text[:9]}@e.com>".replace(" ", ""), answers), now
    )
    delivery = Delivery(TransportKind.SMTP, "127.0.0.1", SCOTT, (to,), now)
    [mail] = accept(raw, delivery, mails=services.raw_mails, events=services.events)
    start(mail.email_id, harness.engine, services.raw_mails)
    harness.engine.run_ready()
    return mail.email_id


def heard(harness: EmbeddedHarness, email_id: str) -> Instruction:
    job = harness.services.jobs.get(job_id_of(email_id))
    assert job
    return instructions_of(harness.services).of(job)


def replied(harness: EmbeddedHarness, email_id: str, outcome: Settlement) -> str:
    """The Message-ID of our reply."""
    harness.work(outcome)
    [reply] = [entry.reply for entry in harness.replies(email_id)]
    return reply.message_id


@pytest.mark.parametrize(
    ("outcomes", "brought"),
    [((ASKED,), ["shop.png"]), ((ASKED, ASKED), ["shop.png"]), ((DONE,), [])],
    ids=["a yes", "a second answer", "nothing was asked"],
)
def test_an_answer_brings_the_photo_of_the_mail_that_was_asked_about(
    tmp_path: Path, outcomes: Sequence[Settlement], brought: list[str]
) -> None:
    with open_harness(tmp_path / "data") as harness:
        email_id = letter(harness, "Add this photo to the contact page. We took it last summer.", photos=["shop.png"])
        for number, outcome in enumerate(outcomes, 1):
            ours = replied(harness, email_id, outcome)
            is_last = number == len(outcomes)
            email_id = letter(harness, "Yes" if is_last else "Hm, yes", ours)
        assert [file.sent_as for file in heard(harness, email_id).attachments] == brought


def test_an_answer_to_a_mail_of_another_conversation_brings_neither_its_photo_nor_its_wish(tmp_path: Path) -> None:
    with open_harness(tmp_path / "data") as harness:
        other = harness.services.jobs.get(job_id_of(letter(harness, "Change the title to Sale")))
        assert other
        harness.work()
        asked = letter(harness, "Add this photo to the contact page. We took it last summer.", photos=["shop.png"])
        ours = replied(harness, asked, ASKED)
        told = heard(harness, letter(harness, "Yes", ours, to=f"edit+{other.thread_id}@localhost"))
        assert (told.attachments, told.wish) == ((), "")


@pytest.mark.parametrize(
    ("about", "answers", "replies"),
    [
        ({}, "", False),
        ({"subject": "Re: Our site"}, "", True),
        ({"to": "edit+0123456789abcdef@localhost"}, "", True),
        ({}, "<long-ago@localhost>", True),
    ],
    ids=["a new mail", "by its subject", "by its address", "to a mail that is not known any more"],
)
def test_a_publish_is_known_to_go_on_from_an_earlier_mail(
    tmp_path: Path, about: dict[str, str], answers: str, replies: bool
) -> None:
    with open_harness(tmp_path / "data") as harness:
        assert heard(harness, letter(harness, "publish", answers, **about)).replies is replies
