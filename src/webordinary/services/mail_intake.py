"""Takes mails from places where they wait, such as a mailbox or a drop folder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from webordinary.mail.addresses import Mailbox
from webordinary.mail.intake import Accepted, RefusalLog, WaitingMail, delivery_of
from webordinary.model.errors import Permanent, Transient
from webordinary.model.events import Event, EventKind, Events
from webordinary.model.mail import Delivery, TransportKind

STORING_THREADS = 8
ALARM_AFTER = timedelta(minutes=5)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Intake:
    """Accepts a mail and starts its workflow."""

    accept: Callable[[bytes, Delivery], Sequence[Accepted]]
    begin: Callable[[str], None]

    def take(self, raw: bytes, delivery: Delivery) -> Sequence[Accepted]:
        """Returns when the mail is durable; raises Transient or Permanent where it is not accepted.

        A workflow that cannot be started now does not fail the mail: the sweep starts it later.
        """
        accepted = self.accept(raw, delivery)
        self.begin_new(accepted)
        return accepted

    def begin_new(self, accepted: Sequence[Accepted]) -> None:
        """Start the workflows of the mails that were not here before."""
        for mail in accepted:
            if mail.is_new:
                self._begin(mail.email_id)

    def _begin(self, email_id: str) -> None:
        try:
            self.begin(email_id)
        except Exception:
            _log.exception("%s: accepted, but its workflow could not be started yet", email_id)


class MailSource(Protocol):
    """A place where mails wait. A mail that was taken is moved or marked, never deleted."""

    def batches(self, now: datetime) -> Iterable[Sequence[WaitingMail]]:
        """All mails that wait, the oldest first, in batches that fit into memory; raises Transient."""

    def mark_taken(self, refs: Sequence[str]) -> None:
        """These do not wait any more; raises Transient."""


@dataclass(slots=True)
class MailReader:
    """Takes every mail that waits at a source.

    A mail is stored durably, then marked. A process that is killed in between leaves it unmarked; it is read again and
    recognised by its content. One that cannot be stored now stays where it is and holds no other up.
    """

    transport: TransportKind
    source: MailSource
    intake: Intake
    mailbox: Mailbox
    events: Events
    _failing_since: datetime | None = None
    _warned_at: datetime | None = None
    _refusals: RefusalLog = field(init=False)

    def __post_init__(self) -> None:
        self._refusals = RefusalLog(_log, self.name)

    @property
    def name(self) -> str:
        return f"mail-{self.transport}"

    def run_once(self, now: datetime) -> int:
        taken = 0
        with ThreadPoolExecutor(STORING_THREADS, thread_name_prefix=self.name) as threads:
            try:
                for batch in self.source.batches(now):
                    done = self._take(batch, now, threads)
                    self.source.mark_taken(done)
                    taken += len(done)
                self._failing_since = self._warned_at = None
            except Transient as problem:
                _log.warning("%s: %s", self.name, problem)
                self._note_failure(str(problem), now)
        return taken

    def _note_failure(self, reason: str, now: datetime) -> None:
        """An event for the operator after ALARM_AFTER, and again as long as it lasts."""
        self._failing_since = self._failing_since or now
        if now - (self._warned_at or self._failing_since) >= ALARM_AFTER:
            self._warned_at = now
            data = {"source": str(self.transport), "reason": reason}
            self.events.emit(Event(EventKind.MAILS_NOT_READ, data=data))

    def _take(self, batch: Sequence[WaitingMail], now: datetime, threads: Executor) -> list[str]:
        """Store a batch; the refs of the mails that are done with here.

        Threads share the syncs of the disk. Workflows start when the whole batch is stored, the oldest mail first: a
        mail must not overtake an earlier one of its sender that is not stored yet.
        """
        times = [now + timedelta(microseconds=number) for number in range(len(batch))]
        outcomes = list(threads.map(self._store, batch, times))
        for accepted in outcomes:
            self.intake.begin_new(accepted or ())
        return [mail.ref for mail, accepted in zip(batch, outcomes, strict=True) if accepted is not None]

    def _store(self, mail: WaitingMail, now: datetime) -> Sequence[Accepted] | None:
        """What was accepted: nothing of a mail that is refused for good; None for a mail that has to wait."""
        try:
            if mail.refusal:
                raise Permanent(mail.refusal)
            taken = self.intake.accept(mail.raw, delivery_of(mail.raw, self.transport, self.mailbox, now))
            self._refusals.taken()
            return taken
        except Transient as problem:
            self._refusals.refused(problem)
            return None
        except Permanent as problem:
            data = {"reason": f"{self.name}: mail {mail.ref} was not taken: {problem}"}
            self.events.emit(Event(EventKind.MAIL_REFUSED, data=data))
            return ()
