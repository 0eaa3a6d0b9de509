"""Parses mails in this process, without limits: for tests and simulation, which choose their mails themselves."""

from __future__ import annotations

from collections.abc import Iterator

from webordinary.mail.parsing.attachments import extract
from webordinary.mail.parsing.message import parse
from webordinary.mail.parsing.photos import prepared
from webordinary.mail.ports import ExtractedFile, ReturnedMail
from webordinary.model.mail import ParsedMail, RefusedAttachment


class InProcessParser:
    """See MailParser."""

    def parse(self, raw: bytes) -> ParsedMail:
        return parse(raw)

    def files(self, raw: bytes) -> Iterator[ExtractedFile | RefusedAttachment]:
        return extract(raw, prepared)

    def returned(self, raw: bytes) -> ReturnedMail | None:
        """See MailParser. Tests of reports use the real one."""
        return None

    def warm(self) -> None:
        """See MailParser."""
