"""What a worker is told of a mail: the customer's own words, and never an older wish again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.embedded import SCOTT, open_harness
from webordinary.compose.worker import instructions_of
from webordinary.mail.intake import accept
from webordinary.mail.write import CustomerMail, write_mail
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
