"""What an operator does with mails: find them, release or drop held ones. The command line and the page call these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from webordinary.compose.container import Container
from webordinary.mail.parsing.message import outline
from webordinary.mail.replies.answers import by_operator
from webordinary.mail.replies.compose import compose
from webordinary.model.errors import Permanent
from webordinary.model.events import Event, EventKind
from webordinary.model.jobs import NOT_UNDERSTOOD
from webordinary.model.snapshot import MailSummary
from webordinary.workflow.start import start_released

MAX_SEARCHED, MAX_ANSWER = 5000, 20_000
BY_OPERATOR = "operator"
"""The beginning of the kind of replies that an operator writes."""
_PAGE = 200
STATES = ("open", "held", "refused", "dropped", "answered", "dead")


@dataclass(frozen=True, slots=True)
class MailFilter:
    """Which mails are meant; what is empty does not matter."""

    state: str = ""
    sender: str = ""
    """A part of the sender's address."""
    project_id: str = ""
    since: datetime | None = None


def state_of(mail: MailSummary) -> str:
    """One word of STATES."""
    if mail.dead_reason is not None:
        return "dead"
    return mail.stopped or ("answered" if mail.answered_at or mail.ended else "open")


def find_mails(services: Container, wanted: MailFilter, limit: int) -> list[MailSummary]:
    """The newest mails that fit, among the last MAX_SEARCHED."""
    projects: dict[str, set[str]] = {}
    for sender in services.directory.senders():
        projects.setdefault(sender.address, set()).add(sender.key.project_id)
    found = (mail for mail in _recent(services, wanted.since) if _fits(mail, wanted, projects))
    return [mail for mail, _ in zip(found, range(limit), strict=False)]


def _recent(services: Container, since: datetime | None) -> Iterator[MailSummary]:
    before: str | None = None
    for _ in range(MAX_SEARCHED // _PAGE):
        page = services.overview.recent_mails(before, _PAGE)
        for mail in page:
            if since and mail.received_at < since:
                return
            yield mail
        if len(page) < _PAGE:
            return
        before = page[-1].email_id


def _fits(mail: MailSummary, wanted: MailFilter, projects: dict[str, set[str]]) -> bool:
    of_project = {mail.job.key.project_id} if mail.job else projects.get(mail.sender.lower(), set())
    return (
        (not wanted.state or state_of(mail) == wanted.state)
        and wanted.sender.lower() in mail.sender.lower()
        and (not wanted.project_id or wanted.project_id in of_project)
    )


def mails_for_a_person(services: Container, limit: int) -> list[MailSummary]:
    """The newest mails that no agent understood and no operator has answered, among the last MAX_SEARCHED."""
    found = (
        mail for mail in _recent(services, None) if _needs_a_person(mail) and not _answers(services, mail.email_id)
    )
    return [mail for mail, _ in zip(found, range(limit), strict=False)]


def _needs_a_person(mail: MailSummary) -> bool:
    result = mail.job.result if mail.job else None
    return result is not None and result.error == NOT_UNDERSTOOD


def _answers(services: Container, email_id: str) -> int:
    return sum(entry.reply.kind.startswith(BY_OPERATOR) for entry in services.outbox.of(email_id))


def answer_mail(services: Container, email_id: str, text: str, by: str) -> None:
    """Write to the customer in the conversation of a mail.

    Raises Permanent where the mail was not read or the answer is empty.
    """
    detail, mail = services.overview.mail(email_id), services.mailroom.parsed_mails.load(email_id)
    if mail is None or detail is None or not text.strip():
        raise Permanent(f"mail {email_id[:12]} cannot be answered: it was not read, or the answer has no words")
    now, thread = services.clock.now(), detail.summary.job.thread_id if detail.summary.job else ""
    kind = f"{BY_OPERATOR}-{_answers(services, email_id) + 1}"
    reply = compose(
        by_operator(text[:MAX_ANSWER]),
        email_id=email_id, mail=mail, mailbox=services.config.mailbox, sent_at=now, kind=kind, thread_id=thread,
    )  # fmt: skip
    services.outbox.put(reply, now)
    services.events.emit(Event(EventKind.OPERATOR_ANSWERED, email_id, data={"by": by}))


def release_mail(services: Container, email_id: str, by: str) -> None:
    """Let a held mail act for its sender, as if the sender had confirmed it. Idempotent until it is done.

    Raises Permanent where the mail is not held, or names no sender that it could act for.
    """
    mail = outline(services.raw_mails.head(email_id).raw)
    if not mail.sender or not services.directory.entries(mail.sender):
        why = mail.doubt or f"{mail.sender or 'its author'} is entitled to no project"
        raise Permanent(f"mail {email_id[:12]} cannot be released: {why}. Ask its sender to write again")
    if services.raw_mails.release(email_id):
        services.events.emit(Event(EventKind.MAIL_RELEASED, email_id, data={"by": by}))
    elif not services.raw_mails.is_released(email_id):
        raise Permanent(f"mail {email_id[:12]} is not held: see `webordinary mails show {email_id[:12]}`")
    start_released(email_id, services.workflows, services.raw_mails)


def drop_mail(services: Container, email_id: str, by: str) -> None:
    """A held mail will never be done; its sender is told nothing. Raises Permanent where the mail is not held."""
    if not services.raw_mails.drop(email_id):
        raise Permanent(f"mail {email_id[:12]} is not held: see `webordinary mails show {email_id[:12]}`")
    services.events.emit(Event(EventKind.MAIL_DROPPED, email_id, data={"by": by}))
