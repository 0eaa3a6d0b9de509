"""What a worker is told of a mail: the customer's own words, and never an older wish again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.embedded import DONE, SCOTT, open_harness
from webordinary.compose.worker import instructions_of
from webordinary.mail.intake import accept
from webordinary.mail.write import CustomerMail, write_mail
from webordinary.model.jobs import JobOutcome, JobResult, Settlement
from webordinary.model.mail import Delivery, TransportKind
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
