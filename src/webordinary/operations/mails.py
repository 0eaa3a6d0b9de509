"""What an operator does with mails: find, export, answer, release, retry. The page and the commands call these."""

from __future__ import annotations

import csv
import io
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from webordinary.compose.container import Container
from webordinary.compose.steps import brand_of
from webordinary.mail.confirm import ConfirmationAnswer, digest_of_link
from webordinary.mail.parsing.message import outline
from webordinary.mail.ports import Directory, UnknownMail, change_project
from webordinary.mail.replies.answers import by_operator
from webordinary.mail.replies.compose import BY_OPERATOR, compose
from webordinary.model.errors import OVER_LIMIT, Permanent
from webordinary.model.events import Event, EventKind
from webordinary.model.mail import ParsedMail
from webordinary.model.names import ProjectUser
from webordinary.model.projects import AGENTS, WITH_A_PROGRAM, Sender
from webordinary.model.snapshot import MailFilter, MailPage, MailState, MailSummary, state_of
from webordinary.operations.access import SignInThrottle, network_of
from webordinary.operations.ports import MailIndex, Overview
from webordinary.workflow.reading import settle_question
from webordinary.workflow.start import start_released

MAX_SEARCHED, MAX_EXPORTED, MAX_ANSWER = 1000, 100_000, 20_000
"""The beginning of the kind of replies that an operator writes."""
_PAGE = 200
STATES = tuple(state.value for state in MailState)
_FORMULA = re.compile(r'(\A|[;,\t\r\n|])(?=[\s"]*[=+\-@\uff1d\uff0b\uff0d\uff20])')
"""Where a spreadsheet would begin a cell that it runs, whichever character separates cells in its country."""
NEEDS_PERSON = (MailState.HELD, MailState.NOT_UNDERSTOOD, MailState.FAILED, MailState.DEAD)


COUNTED_SECONDS = 10.0
"""Maximum age of counts."""


class ScannedMails:
    """The MailIndex of a backend without an index: reads the last MAX_SEARCHED mails."""

    reach = f"Only the last {MAX_SEARCHED} mails are searched, by sender and subject. Counts are of the last {_PAGE}."

    def __init__(self, overview: Overview, directory: Directory) -> None:
        self._overview, self._directory = overview, directory
        self._guard = threading.Lock()
        self._counted, self._counted_at = Counter[tuple[str, MailState]](), float("-inf")

    def find(self, mail_filter: MailFilter, limit: int, offset: int = 0, before: str = "") -> MailPage:
        """See MailIndex. It reads on until the page is full, so `total` is what it has seen."""
        projects: dict[str, set[str]] = {}
        for sender in self._directory.senders():
            projects.setdefault(sender.address, set()).add(sender.key.project_id)
        fitting = (mail for mail in self._recent(mail_filter.since, before) if _fits(mail, mail_filter, projects))
        found = list(islice(fitting, offset + limit + 1))
        return MailPage(tuple(found[offset : offset + limit]), len(found), counted=len(found) <= offset + limit)

    def counts(self, project_id: str = "") -> Mapping[MailState, int]:
        """See MailIndex: of the last mails of one page, because each costs calls; one look serves a list of sites."""
        with self._guard:
            if time.monotonic() - self._counted_at > COUNTED_SECONDS:
                seen = islice(self._recent(None, ""), _PAGE)
                self._counted = Counter((_project_of(mail), state_of(mail)) for mail in seen)
                self._counted_at = time.monotonic()
        found = Counter[MailState]()
        for (project, state), number in self._counted.items():
            found[state] += number if project_id in ("", project) else 0
        return +found

    def counts_by_site(self, project_ids: Sequence[str]) -> Mapping[str, Mapping[MailState, int]]:
        """See MailIndex."""
        return {project_id: self.counts(project_id) for project_id in project_ids}

    def _recent(self, since: datetime | None, before: str) -> Iterator[MailSummary]:
        last: str | None = before or None
        for _ in range(MAX_SEARCHED // _PAGE):
            page = self._overview.recent_mails(last, _PAGE)
            for mail in page:
                if since and mail.received_at < since:
                    return
                yield mail
            if len(page) < _PAGE:
                return
            last = page[-1].email_id


def _project_of(mail: MailSummary) -> str:
    return mail.job.key.project_id if mail.job else ""


def _fits(mail: MailSummary, mail_filter: MailFilter, projects: Mapping[str, set[str]]) -> bool:
    of_project = {_project_of(mail)} if mail.job else projects.get(mail.sender.lower(), set())
    words = f"{mail.sender} {mail.subject or ''}".lower()
    return (
        (not mail_filter.state or state_of(mail) == mail_filter.state)
        and mail_filter.sender.lower() in mail.sender.lower()
        and (not mail_filter.project_id or mail_filter.project_id in of_project)
        and (not mail_filter.user_id or (mail.job is not None and mail.job.key.user_id == mail_filter.user_id))
        and (not mail_filter.until or mail.received_at < mail_filter.until)
        and all(word in words for word in mail_filter.text.lower().split())
    )


COLUMNS = ("mail", "received_at", "state", "site", "person", "sender", "subject", "answered_at", "reason")


def plain(mail: MailSummary) -> dict[str, str]:
    """One mail as a row of an export."""
    result = mail.job.result if mail.job else None
    values = (
        mail.email_id,
        mail.received_at.isoformat(timespec="seconds"),
        state_of(mail).value,
        _project_of(mail),
        mail.job.key.user_id if mail.job else "",
        mail.sender,
        mail.subject or "",
        mail.answered_at.isoformat(timespec="seconds") if mail.answered_at else "",
        mail.dead_reason or mail.stopped_because or (result.error if result else "") or "",
    )
    return dict(zip(COLUMNS, values, strict=True))


def export_mails(index: MailIndex, mail_filter: MailFilter, *, as_csv: bool) -> Iterator[str]:
    """The mails that fit as CSV or as lines of JSON, a page at a time, MAX_EXPORTED at most."""
    if as_csv:
        yield _csv_line(COLUMNS)
    before, left = "", MAX_EXPORTED
    while left > 0:
        page = index.find(mail_filter, min(_PAGE, left), before=before).mails
        rows = map(plain, page)
        yield "".join(_csv_line(row.values()) if as_csv else json.dumps(row) + "\n" for row in rows)
        if len(page) < _PAGE:
            return
        before, left = page[-1].email_id, left - len(page)


def _csv_line(values: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow([_FORMULA.sub(r"\1'", value) for value in values])
    return line.getvalue()


def _answers(services: Container, email_id: str) -> int:
    return sum(entry.reply.kind.startswith(BY_OPERATOR) for entry in services.outbox.of(email_id))


class AnsweredAlready(Permanent):
    """An operator has answered this mail; another answer may say the same again."""


def answer_mail(services: Container, email_id: str, text: str, by: str, *, again: bool = True) -> int:
    """Write to the customer in the conversation of a mail; returns how many answers of operators it has now.

    Raises Permanent where the mail was not read or the answer is empty, and AnsweredAlready for a second one unless
    `again` says that it is meant.
    """
    detail, mail = services.overview.mail(email_id), services.mail_deps.parsed_mails.load(email_id)
    if mail is None or detail is None:
        raise Permanent(f"mail {email_id[:12]} cannot be answered: it was not read, so it has no conversation")
    if not text.strip():
        raise Permanent("the answer has no words: write what the customer should read")
    if (number := _answers(services, email_id) + 1) > 1 and not again:
        raise AnsweredAlready(
            f"mail {email_id[:12]} was answered by an operator already: send yours only if it adds something"
        )
    now, thread = services.clock.now(), detail.summary.job.thread_id if detail.summary.job else ""
    kind = f"{BY_OPERATOR}-{number}"
    reply = compose(
        by_operator(text[:MAX_ANSWER]),
        email_id=email_id, mail=mail, mailbox=services.config.mailbox, sent_at=now, kind=kind, thread_id=thread,
        brand=brand_of(services.config),
    )  # fmt: skip
    services.outbox.put(reply, now)
    services.events.emit(Event(EventKind.OPERATOR_ANSWERED, email_id, data={"by": by}))
    return number


def why_unreleasable(services: Container, email_id: str) -> str:
    """Why no one can let a held mail act for its sender: it names none that is certain. Empty if one can."""
    try:
        mail = outline(services.raw_mails.head(email_id).raw)
    except UnknownMail:
        return "it is past its retention"
    if mail.sender and services.directory.entries(mail.sender):
        return ""
    return mail.doubt or f"{mail.sender or 'its author'} is entitled to no project"


def release_mail(services: Container, email_id: str, by: str) -> None:
    """Let a held mail act for its sender, as if the sender had confirmed it. Idempotent until it is done.

    Raises Permanent where the mail is not held, or names no sender that it could act for.
    """
    if why := why_unreleasable(services, email_id):
        raise Permanent(f"mail {email_id[:12]} cannot be released: {why}. Ask its sender to write again")
    if services.raw_mails.release(email_id):
        services.events.emit(Event(EventKind.MAIL_RELEASED, email_id, data={"by": by}))
    elif not services.raw_mails.is_released(email_id):
        raise Permanent(f"mail {email_id[:12]} is not held: see `webordinary mails show {email_id[:12]}`")
    start_released(email_id, services.workflows, services.raw_mails)


class SenderQuestions:
    """Questions to senders of held mails, answered on a page: the token in its link is the proof, as in an answer."""

    def __init__(self, services: Container) -> None:
        self._services = services
        self._throttle = SignInThrottle(services.clock.monotonic)

    def held_mail(self, token: str, client: str) -> ParsedMail | None:
        """The mail that is asked about; None where the link is unknown, used or too old. Raises TooManyTries."""
        s, key, digest = self._services, f"client {network_of(client)}", digest_of_link(token)
        self._throttle.begin(key)
        email_id = s.mail_deps.confirmations.find(digest, s.clock.now()) if digest else ""
        if not email_id:
            return None
        self._throttle.succeeded(key)
        return s.mail_deps.shown_whole(email_id)

    def answer(self, token: str, answer: ConfirmationAnswer) -> bool:
        """Release or drop that mail and nothing else; False where the link is worth nothing."""
        s = self._services
        return settle_question(digest_of_link(token), answer, s.mail_deps, s.events, self._released, s.clock.now())

    def _released(self, email_id: str) -> None:
        start_released(email_id, self._services.workflows, self._services.raw_mails)


def drop_mail(services: Container, email_id: str, by: str) -> None:
    """Drop a held mail without a reply. Raises Permanent where the mail is not held."""
    if not services.raw_mails.drop(email_id):
        raise Permanent(f"mail {email_id[:12]} is not held: see `webordinary mails show {email_id[:12]}`")
    services.events.emit(Event(EventKind.MAIL_DROPPED, email_id, data={"by": by}))


RETRIED = (MailState.FAILED, MailState.NOT_UNDERSTOOD, MailState.ASKED, MailState.CANCELLED, MailState.CLOSED)


def is_over_limit(mail: MailSummary) -> bool:
    """Whether a mail was refused for an hourly limit alone: its sender may change the site."""
    return state_of(mail) is MailState.REFUSED and OVER_LIMIT in (mail.stopped_because or "")


def may_retry(mail: MailSummary) -> bool:
    """Whether a mail ended undone and can be done again; what the operator does again has no hourly limit."""
    return is_over_limit(mail) or (mail.job is not None and state_of(mail) in RETRIED)


def agents_of(services: Container) -> tuple[str, ...]:
    """The agents that a site can be given here."""
    return tuple(one for one in AGENTS if services.config.agent_command or one not in WITH_A_PROGRAM)


def retry_mail(services: Container, email_id: str, by: str, agent: str = "") -> str:
    """Do a mail once more that ended without what it asked for; returns the name of its execution.

    The customer gets a second reply. Idempotent while the mail has not ended again. Raises Permanent in other states.
    With `agent`, its site is edited by that agent from now on.
    """
    mail = _mail(services, email_id)
    if not may_retry(mail):
        raise Permanent(f"mail {email_id[:12]} is {state_of(mail)}: only one that ended without success is done again")
    if agent:
        project = services.directory.project(_project_of(mail))
        if agent not in agents_of(services) or project is None:
            raise Permanent(f"there is no agent {agent!r} here: take one of {', '.join(agents_of(services))}")
        change_project(services.directory, project.project_id, lambda one: replace(one, agent=agent))
    job_id = mail.job.job_id if mail.job else ""
    _, _, redrives = job_id.partition("-r")
    number = int(redrives or 0) + 1
    name = f"{email_id}-r{number}"
    if services.workflows.start(name, {"emailId": email_id, "redrive": number}):
        services.events.emit(Event(EventKind.MAIL_RETRIED, email_id, job_id or None, data={"by": by}))
    return name


def close_mail(services: Container, email_id: str, by: str) -> None:
    """Close a mail that needs a person, without a reply. Idempotent."""
    state = state_of(_mail(services, email_id))
    if state not in (MailState.FAILED, MailState.NOT_UNDERSTOOD, MailState.REFUSED, MailState.CLOSED):
        raise Permanent(f"mail {email_id[:12]} is {state}: it needs no person")
    services.raw_mails.note_closed(email_id)
    services.events.emit(Event(EventKind.MAIL_CLOSED, email_id, data={"by": by}))


def renamed(services: Container, address: str, key: ProjectUser) -> str:
    """The short name that an address has on the site now, if it would change; empty if not.

    Raises Permanent where another address has the new one: two people would share their conversations.
    """
    address = address.strip().lower()
    people = [one for one in services.directory.senders() if one.key.project_id == key.project_id]
    known = next((one.key.user_id for one in people if one.address == address), key.user_id)
    if known == key.user_id:
        return ""
    if other := next((one.address for one in people if one.key == key), ""):
        raise Permanent(f"{address} is {known} on {key.project_id}, and {key.user_id} is {other}: take another name")
    return known


def entitle(services: Container, address: str, key: ProjectUser, by: str) -> None:
    """From now on an address may change a site as one of its users. Idempotent."""
    if services.directory.project(key.project_id) is None:
        raise Permanent(f"there is no site {key.project_id!r}: see `webordinary project list`")
    if known := renamed(services, address, key):
        raise Permanent(
            f"{address.strip()} may change {key.project_id} already, as {known}: to give another short name, run "
            f"`webordinary project add {key.project_id} --user {key.user_id} --sender {address.strip()}`"
        )
    services.provision(key)
    services.directory.add_sender(Sender(address.strip().lower(), key), services.clock.now())
    services.events.emit(Event(EventKind.SITE_ADDED, key=key, data={"by": by}))


def author_of(services: Container, email_id: str) -> str:
    """The one address in From of a mail, which need not be parsed; empty where there is none, or no mail any more."""
    try:
        return outline(services.raw_mails.head(email_id).raw).sender
    except UnknownMail:
        return ""


def let_in(services: Container, email_id: str, key: ProjectUser, by: str) -> None:
    """Let the author of a refused mail change a site, and do that mail as if it came now: at most once.

    It is judged again, so that without a proof of its sender it is held. Raises Permanent in other states.
    """
    state, author = state_of(_mail(services, email_id)), author_of(services, email_id)
    if state is not MailState.REFUSED:
        raise Permanent(f"mail {email_id[:12]} is {state}: only a refused mail is let in")
    if not author:
        raise Permanent(f"mail {email_id[:12]} names no author who could be let in")
    entitle(services, author, key, by)
    services.raw_mails.load(email_id)  # without it the mail could only be given up
    if services.workflows.start(f"{email_id}-r1", {"emailId": email_id, "redrive": 1}):
        services.events.emit(Event(EventKind.MAIL_RETRIED, email_id, data={"by": by}))


def _mail(services: Container, email_id: str) -> MailSummary:
    detail = services.overview.mail(email_id)
    if detail is None:
        raise Permanent(f"there is no mail {email_id[:12]}: it is past its retention, or never came")
    return detail.summary
