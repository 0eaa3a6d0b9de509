"""A Maildir as transport: each reply becomes one file, whatever crashes in between.

`send` hands one mail over by SMTP: for `webordinary send` and for the page's form.
"""

from __future__ import annotations

import hashlib
import re
import smtplib
import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from webordinary.adapters.durable import disk_errors, make_folder, sync_path, write_durably
from webordinary.mail.parsing.headers import with_crlf
from webordinary.mail.ports import Transport
from webordinary.model.errors import Permanent, Transient, reason_of
from webordinary.model.mail import Reply

_ABOUT_US = re.compile(r"\b5\.(7\.\d{1,3}|4\.5)\b|quota|limit exceeded|rate limit", re.I)


class MaildirTransport:
    """See Transport. The file's name follows from the reply, so sending again finds the first delivery."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def send(self, reply: Reply) -> None:
        name = hashlib.sha256(reply.message_id.encode()).hexdigest()[:40] + ".webordinary"
        with disk_errors(self._folder):
            for part in ("tmp", "new", "cur"):
                make_folder(self._folder / part)
            if self._delivered(name):
                sync_path(self._folder / "new")  # the first delivery may have died before its own sync
                return
            lines = reply.raw.replace(b"\r\n", b"\n")  # as files on this machine have them
            write_durably(self._folder / "new" / name, lines, through=self._folder / "tmp")

    def forget(self, before: datetime, limit: int = 1000) -> int:
        """Delete replies that were delivered before a time, read or not; a bounded number of them."""
        files = (file for part in ("tmp", "new", "cur") for file in (self._folder / part).glob("*"))
        old = [file for file in files if file.stat().st_mtime < before.timestamp()][:limit]
        with disk_errors(self._folder):
            for file in old:
                file.unlink(missing_ok=True)
        return len(old)

    def _delivered(self, name: str) -> bool:
        """A mail reader moves what it has seen to cur/ and appends flags to the name."""
        if (self._folder / "new" / name).exists():
            return True
        return any(file.name.partition(":")[0] == name for file in (self._folder / "cur").iterdir())


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """Where replies go; `sender` is the envelope's return path."""

    host: str
    port: int
    sender: str
    starttls: bool = False
    user: str = ""
    password: Callable[[], str] = str
    """Asked at each login."""
    timeout_seconds: float = 30.0


class RelayTransport:
    """See Transport. At least once: after a lost answer the same Message-ID is sent again."""

    def __init__(self, settings: RelaySettings) -> None:
        self._settings = settings

    def send(self, reply: Reply) -> None:
        where = f"{self._settings.host}:{self._settings.port}"
        try:
            self._send(reply)
        except smtplib.SMTPAuthenticationError as problem:
            # Wrong for every reply, not for this one: it must wait until the operator has mended it.
            raise Transient(f"relay {where} refused our login: check its user and password") from problem
        except (smtplib.SMTPSenderRefused, smtplib.SMTPConnectError, smtplib.SMTPHeloError) as problem:
            # About us as a sender: quotas, suspended accounts, blocked addresses. No reply is at fault.
            answer = f"{problem.smtp_code} {_text(problem.smtp_error)}"
            raise Transient(f"relay {where} does not send for us now ({answer}): we try again") from problem
        except smtplib.SMTPRecipientsRefused as problem:
            code, words = next(iter(problem.recipients.values()), (550, b"refused"))
            raise _failure(code, f"relay {where} refused {reply.recipient}: {_text(words)}") from problem
        except smtplib.SMTPResponseException as problem:
            answer = f"relay {where} answered {problem.smtp_code} {_text(problem.smtp_error)}"
            raise _failure(problem.smtp_code, answer) from problem
        except (OSError, smtplib.SMTPException) as problem:
            raise Transient(f"relay {where} cannot be used now ({reason_of(problem)}): we try again") from problem

    def _send(self, reply: Reply) -> None:
        settings = self._settings
        with smtplib.SMTP(settings.host, settings.port, timeout=settings.timeout_seconds) as client:
            if settings.starttls:
                client.starttls(context=ssl.create_default_context())
            if settings.user:
                client.login(settings.user, settings.password())
            client.sendmail(settings.sender, [reply.recipient], reply.raw)


def _failure(code: int, words: str) -> Transient | Permanent:
    """A relay's policy about us (5.7.x) and its sending limits (5.4.5) pass; other 5xx answers are about the reply."""
    waits = 400 <= code < 500 or _ABOUT_US.search(words)
    return Transient(words) if waits else Permanent(words)


def _text(words: bytes | str) -> str:
    return words.decode("utf-8", "replace") if isinstance(words, bytes) else words


_SIGNED_FIELDS = (
    "From", "Reply-To", "To", "Subject", "Date", "Message-ID", "In-Reply-To", "References", "MIME-Version",
    "Content-Type", "Content-Transfer-Encoding", "Auto-Submitted",
)  # fmt: skip
_SIGNED_ONCE_MORE = ("From", "To", "Subject", "Reply-To")  # so that a second one cannot be added


class SigningTransport:
    """See Transport. Signs each reply with DKIM as the domain of our mailbox, then hands it on."""

    def __init__(self, transport: Transport, key_file: Path, selector: str, domain: str) -> None:
        self._transport, self._key_file = transport, key_file
        self._selector, self._domain = selector, domain

    def send(self, reply: Reply) -> str | None:
        return self._transport.send(replace(reply, raw=self.signature(reply.raw) + reply.raw))

    def signature(self, raw: bytes) -> bytes:
        """The field DKIM-Signature; raises Transient where the key cannot be used: an unsigned reply may be lost."""
        import dkim  # noqa: PLC0415 - slow to import, and only the outbox needs it

        fields = [name.lower().encode() for name in (*_SIGNED_FIELDS, *_SIGNED_ONCE_MORE)]
        try:
            key = self._key_file.read_bytes()
            signed: bytes = dkim.sign(
                raw,
                self._selector.encode(),
                self._domain.encode(),
                key,
                canonicalize=(b"relaxed", b"relaxed"),
                include_headers=fields,
            )
        except (OSError, dkim.DKIMException, ValueError) as problem:
            words = f"replies cannot be signed with {self._key_file} ({reason_of(problem)}): correct dkim_key_file"
            raise Transient(words) from problem
        return signed


TIMEOUT_SECONDS = 30.0
_ACCEPTED = re.compile(r"accepted as ([0-9a-f]{64})")


def send(raw: bytes, mail_from: str, rcpt: str, host: str, port: int) -> str:
    """Hand over a mail and return the server's answer; raises Transient or Permanent with what to do."""
    lines = with_crlf(raw)
    try:
        with smtplib.SMTP(host, port, local_hostname="localhost", timeout=TIMEOUT_SECONDS) as client:
            return _hand_over(client, lines, mail_from, rcpt)
    except smtplib.SMTPResponseException as problem:
        raise _refused(problem.smtp_code, problem.smtp_error) from problem
    except ConnectionRefusedError as problem:
        raise Transient(f"nothing takes mail on {host}:{port}: start it with `webordinary up`") from problem
    except (OSError, smtplib.SMTPException) as problem:
        words = f"{host}:{port} broke off while taking the mail ({reason_of(problem)}): send it again"
        raise Transient(words) from problem


def email_id_in(answer: str) -> str:
    """The id that our own intake gave the mail, read from the answer of `send`; empty for other servers."""
    found = _ACCEPTED.search(answer)
    return found[1] if found else ""


def _hand_over(client: smtplib.SMTP, lines: bytes, mail_from: str, rcpt: str) -> str:
    client.ehlo_or_helo_if_needed()
    size = [f"SIZE={len(lines)}"] if client.has_extn("size") else []
    _expect(client.mail(mail_from, size))
    _expect(client.rcpt(rcpt))
    return _expect(client.data(lines)).decode("utf-8", "replace")


def _expect(answer: tuple[int, bytes]) -> bytes:
    code, words = answer
    if not 200 <= code < 300:
        raise smtplib.SMTPResponseException(code, words)
    return words


def _refused(code: int, words: bytes | str) -> Transient | Permanent:
    said = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    if 400 <= code < 500:
        return Transient(f"the mail was not taken for now ({code} {said}): send it again later")
    return Permanent(f"the mail was refused ({code} {said})")
