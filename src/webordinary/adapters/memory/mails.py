"""Mails, their readings and manifests in memory, for tests and simulation."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime

from webordinary.mail.auth import AwaitsConfirmation, Refused
from webordinary.mail.confirm import SenderQuestion
from webordinary.mail.parsing.headers import HEAD_BYTES
from webordinary.mail.ports import UnknownMail
from webordinary.model.mail import Attachment, Email, Envelope, ParsedMail, RefusedAttachment


class MemoryRawMails:
    """See RawMails."""

    def __init__(self) -> None:
        self._mails: dict[str, Email] = {}
        self._started: set[str] = set()
        self._placed: set[str] = set()
        self._stopped: dict[str, str] = {}
        self._released: set[str] = set()
        self._lock = threading.Lock()

    def store(self, email: Email) -> bool:
        with self._lock:
            if email.email_id in self._mails:
                return False
            self._mails[email.email_id] = email
            return True

    def load(self, email_id: str) -> Email:
        try:
            return self._mails[email_id]
        except KeyError:
            raise UnknownMail(email_id) from None

    def head(self, email_id: str) -> Email:
        email = self.load(email_id)
        return replace(email, raw=email.raw[: HEAD_BYTES + 1])

    def envelope(self, email_id: str) -> Envelope:
        return self.load(email_id).envelope

    def mark_started(self, email_id: str) -> None:
        self._started.add(email_id)

    def mark_placed(self, email_id: str, stopped: AwaitsConfirmation | Refused | None = None) -> None:
        self._placed.add(email_id)
        if stopped:
            self._stopped.setdefault(email_id, stopped.word)

    def release(self, email_id: str) -> bool:
        with self._lock:
            if self._stopped.get(email_id) != "held":
                return False
            del self._stopped[email_id]
            self._released.add(email_id)
            self._started.discard(email_id)
            self._placed.discard(email_id)
            return True

    def drop(self, email_id: str) -> bool:
        with self._lock:
            if self._stopped.get(email_id) != "held":
                return False
            self._stopped[email_id] = "dropped"
            return True

    def is_released(self, email_id: str) -> bool:
        return email_id in self._released

    def waits_for_earlier(self, email_id: str, since: datetime) -> bool:
        mine = self._mails[email_id].envelope
        with self._lock:
            others = [mail for mail in self._mails.values() if mail.email_id not in self._placed]
        sent = [mail.envelope for mail in others if mail.envelope.mail_from == mine.mail_from]
        return any(since <= envelope.received_at < mine.received_at for envelope in sent)

    def without_workflow(self, limit: int) -> tuple[str, ...]:
        with self._lock:
            waiting = [mail for mail in self._mails.values() if mail.email_id not in self._started]
        waiting.sort(key=lambda mail: (mail.envelope.received_at, mail.email_id))
        return tuple(mail.email_id for mail in waiting[:limit])


class MemoryConfirmations:
    """See Confirmations."""

    def __init__(self) -> None:
        self._asked: dict[str, SenderQuestion] = {}
        self._used: set[str] = set()

    def ask(self, question: SenderQuestion, daily_limit: int) -> bool:
        same = [one for one in self._asked.values() if one.address == question.address]
        mails = {one.email_id for one in same if one.asked_at.date() == question.asked_at.date()}
        if len(mails | {question.email_id}) > daily_limit:
            return False
        self._asked[question.digest] = question
        return True

    def find(self, digest: str, now: datetime) -> str:
        question = self._asked.get(digest)
        valid = question and now < question.expires_at and digest not in self._used
        return question.email_id if question and valid else ""

    def use(self, digest: str, now: datetime) -> None:
        self._used.add(digest)


class MemoryParsedMails:
    """See ParsedMails."""

    def __init__(self) -> None:
        self._mails: dict[str, ParsedMail] = {}

    def save(self, email_id: str, mail: ParsedMail, now: datetime) -> None:
        self._mails.setdefault(email_id, mail)

    def load(self, email_id: str) -> ParsedMail | None:
        return self._mails.get(email_id)


class MemoryAttachmentManifest:
    """See AttachmentManifest."""

    def __init__(self) -> None:
        self._records: dict[str, dict[int, Attachment | RefusedAttachment]] = {}
        self._lock = threading.Lock()

    def save(self, email_id: str, position: int, record: Attachment | RefusedAttachment) -> None:
        with self._lock:
            self._records.setdefault(email_id, {})[position] = record

    def of(self, email_id: str) -> tuple[Attachment | RefusedAttachment, ...]:
        with self._lock:
            return tuple(record for _, record in sorted(self._records.get(email_id, {}).items()))
