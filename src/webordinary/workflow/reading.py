"""The steps from a raw mail to a recorded job."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from webordinary.mail.addresses import Mailbox
from webordinary.mail.auth import (
    Admitted,
    AwaitsConfirmation,
    Load,
    Refused,
    SenderPolicy,
    Verdict,
    authenticate,
    not_entitled,
)
from webordinary.mail.confirm import (
    MAX_PARSED_BYTES,
    MAX_SHOWN,
    ConfirmationAnswer,
    answer_in,
    digest_in,
    is_answer,
    says_yes,
)
from webordinary.mail.identify import Ambiguous, identify
from webordinary.mail.parsing.attachments import store_attachments
from webordinary.mail.parsing.message import outline
from webordinary.mail.ports import (
    AttachmentManifest,
    Blobs,
    Confirmations,
    Directory,
    EarlierMailFirst,
    HourlyRates,
    MailParser,
    ParsedMails,
    RawMails,
    Threads,
)
from webordinary.model.errors import OVER_LIMIT, HourlyLimitReached, Permanent
from webordinary.model.events import Event, EventKind, Events
from webordinary.model.jobs import Job, NewJob
from webordinary.model.mail import QUEUED_COMMANDS, Command, Envelope, ParsedMail
from webordinary.model.names import ProjectUser, job_id_of
from webordinary.model.projects import Sender, SenderRole, Thread
from webordinary.pool.ports import Jobs

Payload = dict[str, Any]

ASKED, CONFIRMING = "asked", "confirming"
"""Verdicts: the sender of a held mail is asked; this mail answers such a question."""
CONFIRMED = "confirmed"
"""The route of a mail that answers a question: it gets no reply."""
MOST_ANSWERED = 3
"""Earlier mails of a conversation that are read for the language of a mail that is too short to tell it."""
LIMITED = "limited"
"""The route of a mail beyond its sender's hourly limit."""
MOST_LIMITED = 100
"""Mails beyond the limit that a person is told of by name, each hour."""


def limited_scope(key: str) -> str:
    """Where the mails of a ProjectUser are counted that were not done for the hourly limit."""
    return f"{key} beyond the limit"


NOT_THEIRS = "not-theirs"
"""The route of a mail that asks for what its sender's role does not allow."""
COMMANDS_BEYOND = 10
"""So many times their hourly limit a person's `publish`, `undo` and answers to our questions are done: people end what
they began, and a loop ends as well."""
RECENT_MAILS = 64
EARLIER_MAILS = timedelta(minutes=10)
MAX_WAITS = 20  # a second each; the workflow file allows a few more


class ReadMail(NamedTuple):
    """A mail's envelope and content; of an unparsed mail, its header."""

    envelope: Envelope
    mail: ParsedMail
    is_parsed: bool = True


class RecentMails:
    """The last mails that this process loaded: a parsed mail never changes, and three steps need it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._mails: OrderedDict[str, ReadMail] = OrderedDict()

    def get(self, email_id: str) -> ReadMail | None:
        return self._mails.get(email_id)

    def add(self, email_id: str, mail: ReadMail) -> None:
        with self._guard:
            self._mails[email_id] = mail
            while len(self._mails) > RECENT_MAILS:
                self._mails.popitem(last=False)


@dataclass(frozen=True, slots=True)
class MailDeps:
    """The ports of the mail package, as the steps need them."""

    raw_mails: RawMails
    parsed_mails: ParsedMails
    manifest: AttachmentManifest
    blobs: Blobs
    threads: Threads
    directory: Directory
    parser: MailParser
    policy: SenderPolicy
    mailbox: Mailbox
    confirmations: Confirmations
    rates: HourlyRates
    atomically: Callable[[], AbstractContextManager[object]] = nullcontext
    """Stores all writes of a block or none, where the backend can; each write alone is safe to repeat."""
    recent: RecentMails = field(default_factory=RecentMails, compare=False)

    def read(self, email_id: str) -> ReadMail:
        """A parsed mail; of an unparsed one, its header."""
        if recent := self.recent.get(email_id):
            return recent
        parsed = self.parsed_mails.load(email_id)
        if parsed is None:
            return self.read_outline(email_id)
        read = ReadMail(self.raw_mails.envelope(email_id), parsed)
        self.recent.add(email_id, read)
        return read

    def read_outline(self, email_id: str) -> ReadMail:
        """A mail by its header alone."""
        head = self.raw_mails.head(email_id)
        return ReadMail(head.envelope, outline(head.raw), is_parsed=False)

    def judge(self, envelope: Envelope, mail: ParsedMail, load: Load) -> Verdict:
        """Whether the mail may act for its sender; `load` reads all of it."""
        return authenticate(envelope, mail, self.entitlements(mail), self.policy, load)

    def judge_stored(self, email_id: str, envelope: Envelope, mail: ParsedMail) -> Verdict:
        """The same for a mail that was accepted; a held mail that was released is admitted."""
        verdict = self.judge(envelope, mail, lambda: self.raw_mails.load(email_id).raw)
        held = isinstance(verdict, AwaitsConfirmation) and bool(mail.sender)
        return Admitted() if held and self.raw_mails.is_released(email_id) else verdict

    def shown_whole(self, email_id: str) -> ParsedMail | None:
        """A held mail, read within the parser's limits; None where it cannot be read, or not be shown whole."""
        raw = self.raw_mails.load(email_id).raw
        if len(raw) > MAX_PARSED_BYTES:
            return None
        with suppress(Permanent):
            mail = self.parser.parse(raw)
            return mail if len(mail.subject) + len(mail.text) <= MAX_SHOWN else None
        return None

    def answered_mails(self, mail: ParsedMail) -> Iterator[ParsedMail]:
        """The mails of its conversation that a mail goes back to, the newest first; each is read when it is asked for.

        A reply of ours that it answers stands for the mail that was replied to.
        """
        earlier: ParsedMail | None = mail
        for _ in range(MOST_ANSWERED):
            email_id = self.threads.mail_of((*earlier.in_reply_to, *earlier.references[-1:])) if earlier else ""
            earlier = self.parsed_mails.load(email_id) if email_id else None
            if earlier is None:
                return
            yield earlier

    def entitlements(self, mail: ParsedMail) -> Sequence[Sender]:
        """The projects that the sender may change."""
        return self.directory.entries(mail.sender) if mail.sender else ()


def settle_question(
    digest: str,
    answer: ConfirmationAnswer,
    mail_deps: MailDeps,
    events: Events,
    released: Callable[[str], None],
    now: datetime,
) -> bool:
    """Release or drop the one held mail that a token is for; False where the token is worth nothing.

    Safe to repeat: the token is used up last.
    """
    held = mail_deps.confirmations.find(digest, now)
    if not held or answer is ConfirmationAnswer.UNCLEAR:
        return False
    if answer is ConfirmationAnswer.NO and mail_deps.raw_mails.drop(held):
        events.emit(Event(EventKind.MAIL_DROPPED, held, data={"by": "sender"}))
    if answer is ConfirmationAnswer.YES and mail_deps.raw_mails.release(held):
        events.emit(Event(EventKind.MAIL_RELEASED, held, data={"by": "sender"}))
    if mail_deps.raw_mails.is_released(held):
        released(held)
    mail_deps.confirmations.use(digest, now)
    return True


@dataclass(frozen=True, slots=True)
class HourlyLimits:
    """Mails that become jobs within one hour; 0 = no limit."""

    project_mails: int = 0
    domain_mails: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """Each method is one state of the workflow, idempotent, ids in and ids out."""

    mail_deps: MailDeps
    jobs: Jobs
    events: Events
    now: Callable[[], datetime]
    hourly_mails: int = 0
    """Mails of one person that become jobs within one hour; 0 = no limit."""
    limits: HourlyLimits = HourlyLimits()
    came_back: Callable[[str], None] = lambda _: None
    """Notes a reply that a machine reports as undelivered; on AWS SES tells of those."""
    released: Callable[[str], None] = lambda _: None
    """Starts the workflow of a released mail at once; without it the reconciler does."""
    began: Callable[[str], None] | None = None
    """Notes that the workflow of a mail runs, where its start did not."""

    def authenticate_sender(self, payload: Payload) -> Payload:
        """Admitted, held or refused, by envelope and header alone; fail closed. Only admitted mails are parsed."""
        email_id = payload["emailId"]
        if self.began:
            self.began(email_id)
        if payload.get("redrive", 0):  # executions that began with an earlier workflow file name none
            self.mail_deps.raw_mails.reconsider(email_id)
        outlined = self.mail_deps.read_outline(email_id)
        if is_answer(self.mail_deps.mailbox, outlined.envelope.recipient):
            return {"verdict": self._answers(email_id, outlined)}
        verdict = self.mail_deps.judge_stored(email_id, outlined.envelope, outlined.mail)
        if isinstance(verdict, Admitted):
            return {"verdict": "admitted"}
        asks = isinstance(verdict, AwaitsConfirmation) and bool(self.mail_deps.entitlements(outlined.mail))
        word = self._stopped(email_id, verdict, asked=asks)
        if outlined.mail.automatic or not outlined.envelope.mail_from:
            self.came_back(email_id)
        return {"verdict": ASKED if asks else word}

    def _answers(self, email_id: str, outlined: ReadMail) -> str:
        """A mail to the address of a question counts while its token is valid, if a person wrote it."""
        digest = digest_in(self.mail_deps.mailbox, outlined.envelope.recipient)
        if outlined.mail.automatic or not outlined.envelope.mail_from:
            return self._stopped(email_id, Refused("a machine answered the question whether a mail is the sender's"))
        if not digest or not self.mail_deps.confirmations.find(digest, self.now()):
            return self._stopped(email_id, Refused("no question waits for this answer: it was answered, or is too old"))
        return CONFIRMING

    def parse_email(self, payload: Payload) -> Payload:
        """Parse the mail once and store the result; raises Unparseable."""
        email_id = payload["emailId"]
        mail_deps, email = self.mail_deps, self.mail_deps.raw_mails.load(email_id)
        mail = mail_deps.parser.parse(email.raw)
        mail_deps.parsed_mails.save(email_id, mail, self.now())
        mail_deps.recent.add(email_id, ReadMail(email.envelope, mail))
        self.events.emit(Event(EventKind.MAIL_PARSED, email_id, data={"command": str(mail.command)}))
        # One item for all files: the mail is taken apart once.
        return {"attachments": [{"emailId": email_id}] if mail.attachment_count else []}

    def _stopped(self, email_id: str, verdict: AwaitsConfirmation | Refused, *, asked: bool = False) -> str:
        """It goes no further; the verdict in a word. `asked`: its sender is to confirm it."""
        self.mail_deps.raw_mails.mark_placed(email_id, verdict)
        held = isinstance(verdict, AwaitsConfirmation)
        kind, more = (EventKind.MAIL_HELD, {"asked": asked}) if held else (EventKind.MAIL_REFUSED, {})
        self.events.emit(Event(kind, email_id, data={"reason": verdict.reason, **more}))
        return verdict.word

    def identify_project_user(self, payload: Payload) -> Payload:
        """Find key and thread; what a worker must do becomes a job, in its order; without files it is ready."""
        email_id = payload["emailId"]
        envelope, mail, _ = self.mail_deps.read(email_id)
        if is_answer(self.mail_deps.mailbox, envelope.recipient):
            return {"route": self._confirm(email_id, envelope, mail)}
        # Executions that began with the first workflow file name no retries, and would not wait.
        self._after_earlier_mails(email_id, envelope, payload.get("retries", MAX_WAITS))
        entitled = self.mail_deps.entitlements(mail)
        if not entitled:  # AuthenticateSender admitted the mail, so its sender was removed since
            return {"route": self._stopped(email_id, not_entitled(mail))}
        found = identify(envelope, mail, entitled, self.mail_deps.threads, self.mail_deps.mailbox)
        if isinstance(found, Ambiguous):
            self.mail_deps.raw_mails.mark_placed(email_id)
            return {"route": "ask"}
        role = next(one.role for one in entitled if one.key.project_id == found.thread.key.project_id)
        with self.mail_deps.atomically():
            return self._place(payload, found.thread, mail, role)

    def _confirm(self, email_id: str, envelope: Envelope, mail: ParsedMail) -> str:
        """Release or drop the one held mail that a token is for. Safe to repeat: the token is used up last."""
        digest, answer = digest_in(self.mail_deps.mailbox, envelope.recipient), answer_in(mail.text)
        self.mail_deps.raw_mails.mark_placed(email_id)
        settle_question(digest, answer, self.mail_deps, self.events, self.released, self.now())
        return CONFIRMED

    def _after_earlier_mails(self, email_id: str, envelope: Envelope, retries: int) -> None:
        """Raise EarlierMailFirst while an earlier mail is on its way; a stuck one has a limited time."""
        since = envelope.received_at - EARLIER_MAILS
        if retries < MAX_WAITS and self.mail_deps.raw_mails.waits_for_earlier(email_id, since):
            raise EarlierMailFirst(f"{envelope.mail_from}: an earlier mail is still being read")

    def _place(self, payload: Payload, thread: Thread, mail: ParsedMail, role: SenderRole) -> Payload:
        """File the mail under its thread and record its job, if it needs one."""
        email_id, mail_deps = payload["emailId"], self.mail_deps
        thread = mail_deps.threads.record(thread, mail.message_id, self.now(), email_id)
        is_yes = mail.command is Command.EDIT and role.may(Command.PUBLISH) and says_yes(mail.text)
        if is_yes and (role is SenderRole.PUBLISHER or self._was_asked(mail, thread)):
            mail = replace(mail, command=Command.PUBLISH)
        if not role.may(mail.command):
            mail_deps.raw_mails.mark_placed(email_id)
            return {"route": NOT_THEIRS, "threadId": thread.thread_id}
        if mail.command not in QUEUED_COMMANDS:
            mail_deps.raw_mails.mark_placed(email_id)
            return {"route": "command", "command": str(mail.command), "threadId": thread.thread_id}
        redrive = payload.get("redrive", 0)
        new = NewJob(job_id_of(email_id, redrive), thread.key, thread.thread_id, email_id, mail.command)
        limit = 0 if redrive else self.hourly_mails  # a redrive is the operator's
        if not redrive and (crowded := self._crowded(email_id, thread.key, mail)):
            return self._limited(email_id, thread.key, crowded)
        try:
            job = self._recorded(new, mail, limit)
        except HourlyLimitReached as reached:
            return self._limited(email_id, thread.key, str(reached))
        mail_deps.raw_mails.mark_placed(email_id)
        self.events.emit(Event(EventKind.JOB_RECORDED, email_id, job.job_id, job.key, data={"order": job.order}))
        place = {"key": job.key.text, "order": job.order}
        route = "edit" if mail.command is Command.EDIT else "queue"
        return {"route": route, "jobId": job.job_id, "threadId": thread.thread_id, "place": place, "role": str(role)}

    def _was_asked(self, mail: ParsedMail, thread: Thread) -> bool:
        """Whether a mail answers the one that showed its sender, the approver of the site, an editor's change."""
        project = self.mail_deps.directory.project(thread.key.project_id)
        answered = self.mail_deps.threads.mail_of((*mail.in_reply_to, *mail.references[-1:]))
        shown = self.mail_deps.parsed_mails.load(answered) if answered else None
        if project is None or shown is None or shown.sender == mail.sender:
            return False
        job, is_approver = self.jobs.get(job_id_of(answered)), mail.sender.lower() == project.approver
        return bool(is_approver and job and job.result and job.result.commit and not job.result.question)

    def _limited(self, email_id: str, key: ProjectUser, why: str) -> Payload:
        """Refuse a mail that is one too many; its sender is told of all of the hour when that is over."""
        self._stopped(email_id, Refused(why))
        self.mail_deps.rates.admit(limited_scope(key.text), email_id, MOST_LIMITED, self.now())
        return {"route": LIMITED, "key": key.text}

    def _recorded(self, new: NewJob, mail: ParsedMail, limit: int) -> Job:
        """The job with its order; raises HourlyLimitReached."""
        ready = not mail.attachment_count
        try:
            return self.jobs.record(new, self.now(), ready=ready, hourly_limit=limit)
        except HourlyLimitReached:
            if new.command is Command.EDIT and not self._answers_question(mail):
                raise
        return self.jobs.record(new, self.now(), ready=ready, hourly_limit=limit * COMMANDS_BEYOND)

    def _answers_question(self, mail: ParsedMail) -> bool:
        answered = self.mail_deps.threads.mail_of((*mail.in_reply_to, *mail.references[-1:]))
        job = self.jobs.get(job_id_of(answered)) if answered else None
        return bool(job and job.result and job.result.question)

    def _crowded(self, email_id: str, key: ProjectUser, mail: ParsedMail) -> str:
        """Why the mail is one too many of its project or domain in this hour; empty if it is not."""
        domain = mail.sender.rpartition("@")[2]
        scopes = (
            (f"project {key.project_id}", self.limits.project_mails),
            (f"domain {domain}", self.limits.domain_mails),
        )
        for scope, limit in scopes:
            if limit and not self.mail_deps.rates.admit(scope, email_id, limit, self.now()):
                return f"{scope} is {OVER_LIMIT} {limit} mails an hour (settings hourly_…_mails)"
        return ""

    def store_attachment(self, payload: Payload) -> Payload:
        """Keep the files of the mail, each or the reason why not."""
        email_id, mail_deps = payload["emailId"], self.mail_deps
        files = mail_deps.parser.files(mail_deps.raw_mails.load(email_id).raw)
        store_attachments(email_id, files, mail_deps.blobs, mail_deps.manifest, self.events)
        return {}
