"""A customer's and an operator's view of a running system: mails in, replies, sites and git history out."""

from __future__ import annotations

import email
import email.policy
import re
import smtplib
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from urllib.parse import urlsplit

from tests.conftest import Up
from webordinary.adapters.files.wake import WakeBus
from webordinary.mail.write import CustomerMail, OutgoingFile, write_mail

TIMEOUT_SECONDS = 120.0


@dataclass
class Customer:
    """Writes real mails to the real port."""

    address: str = "scott@example.com"
    mailbox: str = "edit@localhost"
    sent: list[str] = field(default_factory=list)

    def write(
        self,
        up: Up,
        text: str,
        *,
        subject: str = "My site",
        files: tuple[OutgoingFile, ...] = (),
        reply_to: EmailMessage | None = None,
    ) -> str:
        """Send a mail and return its Message-ID; raises unless it was accepted."""
        name, _, _ = self.address.partition("@")
        message_id = f"<{len(self.sent)}.{time.time_ns()}.{name}@mail.example>"
        in_reply_to = str(reply_to["Message-ID"]) if reply_to else ""
        letter = CustomerMail(
            self.address,
            self.mailbox,
            subject,
            text,
            files,
            message_id,
            in_reply_to,
            (in_reply_to,) if reply_to else (),
        )
        with smtplib.SMTP(up.smtp_host, up.smtp_port, local_hostname="localhost", timeout=60) as smtp:
            smtp.sendmail(self.address, [self.mailbox], write_mail(letter, datetime.now(UTC)))
        self.sent.append(message_id)
        return message_id


def replies(data: Path) -> dict[str, list[EmailMessage]]:
    """What lies in the Maildir, by the Message-ID it answers."""
    found: dict[str, list[EmailMessage]] = {}
    for folder in ("new", "cur"):
        for path in sorted((data / "outbox" / folder).glob("*")):
            reply = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
            assert isinstance(reply, EmailMessage)
            found.setdefault(str(reply["In-Reply-To"]), []).append(reply)
    return found


def wait_until(data: Path, happened: Callable[[], bool], what: str, seconds: float = TIMEOUT_SECONDS) -> None:
    """Look again whenever the system stored an event, until it happened."""
    bus = WakeBus(data / "run" / "wake")
    ear = bus.listen("page-test")
    deadline = time.monotonic() + seconds
    try:
        while not happened():
            assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain for {what}"
            ear.wait(0.5)  # an event may be missed while the system restarts
    finally:
        ear.close()
        bus.close()


def wait_for_reply(up: Up, message_id: str) -> EmailMessage:
    """The one answer to a mail."""
    wait_until(up.data, lambda: message_id in replies(up.data), f"an answer to {message_id}")
    [reply] = replies(up.data)[message_id]
    return reply


def in_flight(up: Up) -> int:
    """How many mails it has in work: to wait on, as one whose 250 was cut off by a kill was accepted all the same."""
    with urllib.request.urlopen(f"{up.page}metrics", timeout=60) as answer:
        found = re.search(r"^webordinary_mails_in_flight (\d+)", answer.read().decode(), re.MULTILINE)
    assert found
    return int(found[1])


def text_of(reply: EmailMessage) -> str:
    """The plain text of a reply."""
    body = reply.get_body(("plain",))
    assert body
    return str(body.get_content())


def get(up: Up, path: str = "/", project: str = "amelia", stage: str = "edit") -> str:
    """A page of a customer's site, as a browser would get it."""
    host = f"{project}.localhost" if stage == "public" else f"edit.{project}.localhost"
    return get_bytes(up, path, host).decode()


def get_bytes(up: Up, path: str, host: str) -> bytes:
    port = urlsplit(up.page).port
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Host": f"{host}:{port}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return bytes(answer.read())
