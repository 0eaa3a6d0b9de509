"""One mail through a whole account: sent as a customer would, followed until its answer has left."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from webordinary.adapters.aws.clients import translated
from webordinary.compose.aws import AwsContainer
from webordinary.mail.addresses import with_token
from webordinary.mail.write import CustomerMail, write_mail
from webordinary.model.errors import Permanent, Transient
from webordinary.model.jobs import JobOutcome
from webordinary.model.snapshot import JobSummary, MailSummary

RECENT = 50
CLOCKS_DIFFER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class SmokeTest:
    """When it was where; `received_at` is when SES took it in."""

    email_id: str
    sent_at: datetime
    received_at: datetime
    answered_at: datetime
    outcome: str
    words: str
    """How it was answered: a question back is an answer, too."""


def smoke(
    services: AwsContainer,
    sender: str,
    text: str,
    seconds: float,
    report: Callable[[str], None],
    wait: Callable[[], None],
) -> SmokeTest:
    """Send it and follow it. Raises Permanent where no answer can come, Transient where none came in time."""
    entries = services.directory.entries(sender)
    if not entries:
        raise Permanent(f"{sender} may change no site: add it with `webordinary project add … --backend aws`")
    mailbox = services.config.mailbox
    recipient = with_token(mailbox, entries[0].key.project_id) if len(entries) > 1 else mailbox
    subject = f"Smoke test {secrets.token_hex(6)}"
    sent_at = services.clock.now()
    mail = CustomerMail(
        sender, recipient, subject, text, message_id=f"<{secrets.token_hex(16)}@{sender.partition('@')[2]}>"
    )
    _send(services, write_mail(mail, sent_at), sender, recipient)
    report(f"sent from {sender} to {recipient}")
    return _follow(services, subject, sent_at, seconds, report, wait)


def _send(services: AwsContainer, raw: bytes, sender: str, recipient: str) -> None:
    """Through SES and the internet; an emulator's SES delivers no mail, so there it is put where SES would put it."""
    if services.config.aws_endpoint:
        services.send_mail(raw, sender, recipient)
        return
    with translated(f"sending as {sender}; is the address, or its domain, verified in SES?"):
        services.clients.ses.send_email(
            FromEmailAddress=sender, Destination={"ToAddresses": [recipient]}, Content={"Raw": {"Data": raw}}
        )


def _follow(
    services: AwsContainer,
    subject: str,
    sent_at: datetime,
    seconds: float,
    report: Callable[[str], None],
    wait: Callable[[], None],
) -> SmokeTest:
    email_id, others = "", set[str]()
    while (services.clock.now() - sent_at).total_seconds() < seconds:
        if not email_id:
            mails = services.overview.recent_mails(None, RECENT)
            mails = [
                mail for mail in mails if mail.email_id not in others and mail.received_at > sent_at - CLOCKS_DIFFER
            ]
            email_id = next((mail.email_id for mail in mails if _subject_of(services, mail) == subject), "")
            others |= {mail.email_id for mail in mails if mail.subject or mail.stopped}
            if email_id:
                report(f"taken as mail {email_id[:12]}")
        detail = services.overview.mail(email_id) if email_id else None
        if detail and detail.summary.stopped:  # a held mail may have been answered by a question to its sender
            _refuse_stopped(detail.summary)
        answered = [one.sent_at for one in services.outbox.of(email_id) if one.sent_at] if detail else []
        if detail and answered:
            job = detail.summary.job
            outcome = str(job.outcome) if job else "no job"
            return SmokeTest(email_id, sent_at, detail.summary.received_at, answered[0], outcome, _words(job))
        wait()
    where = f"mail {email_id[:12]} was taken but not answered" if email_id else "the mail did not come in"
    raise Transient(f"{where} within {seconds:.0f} s: run `webordinary doctor --backend aws`")


def _subject_of(services: AwsContainer, mail: MailSummary) -> str | None:
    """The subject; that of a mail that was not admitted is read from its header, as such mails are not parsed."""
    if mail.subject or not mail.stopped:
        return mail.subject
    return services.mail_deps.read_outline(mail.email_id).mail.subject


def _refuse_stopped(mail: MailSummary) -> None:
    why = f": {mail.stopped_because}" if mail.stopped_because else ""
    raise Permanent(
        f"mail {mail.email_id[:12]} was taken but is {mail.stopped}{why}; "
        f"see `webordinary mails show {mail.email_id[:12]} --backend aws`"
    )


def _words(job: JobSummary | None) -> str:
    if job is None:
        return "without a job"
    if job.outcome is None:
        return "that it waits"
    if job.outcome is JobOutcome.SUCCEEDED:
        return "with a question" if job.result and job.result.question else "as asked for"
    return (job.result.error if job.result else None) or str(job.outcome)
