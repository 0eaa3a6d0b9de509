"""What each SMTP command means here. 250 is a promise: the mail is on disk and will be answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import datetime

from aiosmtpd.smtp import SMTP
from aiosmtpd.smtp import Envelope as SmtpEnvelope
from aiosmtpd.smtp import Session as SmtpSession

from webordinary.entrypoints.smtp.client import HERE_ALREADY
from webordinary.mail.addresses import Mailbox
from webordinary.mail.intake import Accepted
from webordinary.model.errors import Permanent, Transient
from webordinary.model.mail import Envelope

Accept = Callable[[bytes, Sequence[Envelope]], Sequence[Accepted]]
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IntakeHandler:
    """Called by aiosmtpd; its method names are aiosmtpd's."""

    mailbox: Mailbox
    accept: Accept
    on_accepted: Callable[[str], None]
    clock: Callable[[], datetime]
    threads: Executor
    max_recipients: int

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: SmtpSession, envelope: SmtpEnvelope, address: str, options: list[str]
    ) -> str:
        """Take mail for our own mailbox only: we are no relay."""
        if not self.mailbox.accepts(address):
            return f"550 5.1.1 no such mailbox here: write to {self.mailbox.address}"
        if len(envelope.rcpt_tos) >= self.max_recipients:
            return f"452 4.5.3 at most {self.max_recipients} recipients at once: send the mail again to the others"
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 2.1.5 OK"

    async def handle_DATA(self, server: SMTP, session: SmtpSession, envelope: SmtpEnvelope) -> str:  # noqa: N802
        """Answer when the mail is durable; the waiting for the disk happens in a thread of its own."""
        raw = envelope.original_content or b""
        peer = str(session.peer[0]) if session.peer else ""
        mail_from = (envelope.mail_from or "").strip("<>")  # a bounce comes from <>
        received_at = self.clock()
        envelopes = [Envelope(peer, mail_from, recipient.lower(), received_at) for recipient in envelope.rcpt_tos]
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, self._take, raw, envelopes)

    async def handle_exception(self, error: Exception) -> str:
        """Anything unforeseen: the sender keeps the mail and comes again."""
        log.error("SMTP session failed", exc_info=error)
        return "451 4.3.0 something went wrong here: try again later"

    def _take(self, raw: bytes, envelopes: Sequence[Envelope]) -> str:
        try:
            accepted = self.accept(raw, envelopes)
        except Transient as problem:
            log.warning("mail not accepted for now: %s", problem)
            return "452 4.3.1 cannot store mail at the moment: try again later"
        except Permanent as problem:
            log.warning("mail not accepted: %s", problem)
            return "554 5.6.0 this mail cannot be accepted"
        except Exception:
            log.exception("mail not accepted")
            return "451 4.3.0 something went wrong here: try again later"
        for mail in accepted:
            if mail.is_new:
                self._announce(mail.email_id)
        others = f" and {len(accepted) - 1} more" if len(accepted) > 1 else ""
        before = "" if any(mail.is_new for mail in accepted) else f", {HERE_ALREADY}"
        return f"250 2.0.0 accepted as {accepted[0].email_id}{others}{before}"

    def _announce(self, email_id: str) -> None:
        """The mail is safe already; whoever missed this call finds it by looking for mails without a workflow."""
        try:
            self.on_accepted(email_id)
        except Exception:
            log.exception("%s: accepted, but its workflow could not be started yet", email_id)
