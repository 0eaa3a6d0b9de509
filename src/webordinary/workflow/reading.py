"""The steps from a raw mail to a recorded job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from webordinary.mail.addresses import Mailbox
from webordinary.mail.attachments import store_attachment
from webordinary.mail.authenticate import Admitted, Held, Refused, SenderPolicy, Verdict, authenticate
from webordinary.mail.errors import EarlierMailFirst
from webordinary.mail.identify import Ambiguous, identify
from webordinary.mail.parse import outline, parse
from webordinary.mail.ports import AttachmentManifest, Blobs, Directory, ParsedMails, RawMails, Threads
from webordinary.model.events import Event, Events
from webordinary.model.jobs import NewJob
from webordinary.model.mail import Command, Envelope, ParsedMail
from webordinary.model.names import job_id_of
from webordinary.model.projects import Sender
from webordinary.pool.ports import Jobs

Payload = dict[str, Any]

EARLIER_MAILS = timedelta(minutes=10)
MAX_WAITS = 20  # a second each; the workflow file allows a few more
ROUTES = {Command.EDIT: "edit", Command.UNDO: "queue", Command.PUBLISH: "queue"}
"""Where a mail goes after it was identified; what is not here is answered at once."""


@dataclass(frozen=True, slots=True)
class Mailroom:
    """The mail room's ports, as the steps need them."""

    raw_mails: RawMails
    parsed_mails: ParsedMails
    manifest: AttachmentManifest
    blobs: Blobs
    threads: Threads
    directory: Directory
    policy: SenderPolicy
    mailbox: Mailbox

    def read(self, email_id: str) -> tuple[Envelope, ParsedMail]:
        """A mail's envelope and what it says; of an unreadable one, what its header says."""
        envelope = self.raw_mails.envelope(email_id)
        return envelope, self.parsed_mails.load(email_id) or outline(self.raw_mails.load(email_id).raw)

    def judge(self, envelope: Envelope, mail: ParsedMail) -> tuple[Verdict, Sequence[Sender]]:
        """May it act, and for what."""
        known = self.directory.entries(mail.sender) if mail.sender else ()
        return authenticate(envelope, mail, known, self.policy), known


@dataclass(frozen=True, slots=True)
class Reading:
    """Each method is one state of the workflow, idempotent, ids in and ids out."""

    mailroom: Mailroom
    jobs: Jobs
    events: Events
    now: Callable[[], datetime]

    def parse_email(self, payload: Payload) -> Payload:
        """Read the mail once and keep what it says; raises Unparseable."""
        email_id = payload["emailId"]
        mail = parse(self.mailroom.raw_mails.load(email_id).raw)
        self.mailroom.parsed_mails.save(email_id, mail, self.now())
        self.events.emit(Event("MailParsed", email_id, data={"command": str(mail.command)}))
        positions = range(mail.attachment_count)
        return {"attachments": [{"emailId": email_id, "position": position} for position in positions]}

    def authenticate_sender(self, payload: Payload) -> Payload:
        """Admitted, held or refused; fail closed."""
        email_id = payload["emailId"]
        verdict, _ = self.mailroom.judge(*self.mailroom.read(email_id))
        return {"verdict": "admitted" if isinstance(verdict, Admitted) else self._stopped(email_id, verdict)}

    def _stopped(self, email_id: str, verdict: Held | Refused) -> str:
        """It goes no further; the verdict in a word."""
        self.mailroom.raw_mails.mark_placed(email_id, verdict)
        kind = "MailHeld" if isinstance(verdict, Held) else "MailRefused"
        self.events.emit(Event(kind, email_id, data={"reason": verdict.reason}))
        return verdict.word

    def identify_project_user(self, payload: Payload) -> Payload:
        """Find key and thread; what a worker must do becomes a job, in its order; without files it is ready."""
        email_id = payload["emailId"]
        envelope, mail = self.mailroom.read(email_id)
        self._after_earlier_mails(email_id, envelope, payload["retries"])
        answer = self._identify(payload, envelope, mail)
        self.mailroom.raw_mails.mark_placed(email_id)
        return answer

    def _after_earlier_mails(self, email_id: str, envelope: Envelope, retries: int) -> None:
        """Raise EarlierMailFirst while one is on its way; one that is stuck holds nobody up for long."""
        since = envelope.received_at - EARLIER_MAILS
        if retries < MAX_WAITS and self.mailroom.raw_mails.waits_for_earlier(email_id, since):
            raise EarlierMailFirst(f"{envelope.mail_from}: an earlier mail is still being read")

    def _identify(self, payload: Payload, envelope: Envelope, mail: ParsedMail) -> Payload:
        email_id = payload["emailId"]
        verdict, entitled = self.mailroom.judge(envelope, mail)
        if isinstance(verdict, Refused):  # its sender was removed since they were admitted
            return {"route": self._stopped(email_id, verdict)}
        found = identify(envelope, mail, entitled, self.mailroom.threads, self.mailroom.mailbox)
        if isinstance(found, Ambiguous):
            return {"route": "ask"}
        thread = self.mailroom.threads.record(found.thread, mail.message_id, self.now(), email_id)
        if mail.command not in ROUTES:
            return {"route": "command", "command": str(mail.command), "threadId": thread.thread_id}
        job_id = job_id_of(email_id, payload.get("redrive", 0))
        new = NewJob(job_id, thread.key, thread.thread_id, email_id, mail.command)
        job = self.jobs.record(new, self.now(), ready=not mail.attachment_count)
        self.events.emit(Event("JobRecorded", email_id, job.job_id, job.key, data={"order": job.order}))
        place = {"key": str(job.key), "order": job.order}
        return {"route": ROUTES[mail.command], "jobId": job.job_id, "threadId": thread.thread_id, "place": place}

    def store_attachment(self, payload: Payload) -> Payload:
        """Keep one file of the mail, or the reason why not."""
        email_id = payload["emailId"]
        raw = self.mailroom.raw_mails.load(email_id).raw
        room = self.mailroom
        store_attachment(email_id, raw, payload["position"], room.blobs, room.manifest, self.events)
        return {}
