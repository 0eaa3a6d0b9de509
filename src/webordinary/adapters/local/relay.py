"""An SMTP relay as transport, for operators who have a mail server."""

from __future__ import annotations

import smtplib
import ssl
from dataclasses import dataclass

from webordinary.model.errors import Permanent, Transient, reason_of
from webordinary.model.mail import Reply


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """Where replies go; `sender` is the envelope's return path."""

    host: str
    port: int
    sender: str
    starttls: bool = False
    user: str = ""
    password: str = ""
    timeout_seconds: float = 30.0


class RelayTransport:
    """See Transport. At least once: after a lost answer the same Message-ID is sent again."""

    def __init__(self, settings: RelaySettings) -> None:
        self._settings = settings

    def send(self, reply: Reply) -> None:
        """See Transport."""
        where = f"{self._settings.host}:{self._settings.port}"
        try:
            self._send(reply)
        except smtplib.SMTPAuthenticationError as problem:
            # Wrong for every reply, not for this one: it must wait until the operator has mended it.
            raise Transient(f"relay {where} refused our login: check its user and password") from problem
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
                client.login(settings.user, settings.password)
            client.sendmail(settings.sender, [reply.recipient], reply.raw)


def _failure(code: int, words: str) -> Transient | Permanent:
    return Transient(words) if 400 <= code < 500 else Permanent(words)


def _text(words: bytes | str) -> str:
    return words.decode("utf-8", "replace") if isinstance(words, bytes) else words
