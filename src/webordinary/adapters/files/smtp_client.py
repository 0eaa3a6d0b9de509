"""Sends one mail by SMTP: for `webordinary send` and for the page's form."""

from __future__ import annotations

import re
import smtplib

from webordinary.mail.parsing.headers import with_crlf
from webordinary.model.errors import Permanent, Transient, reason_of

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
    """Which mail our own intake made of it, from the answer that `send` returned; empty: another server has it."""
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
