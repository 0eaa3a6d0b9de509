"""What was read out of each mail, beside the mail itself."""

from __future__ import annotations

from datetime import datetime

from webordinary.adapters.aws.blobs import Bodies
from webordinary.adapters.aws.items import moment
from webordinary.adapters.aws.mail.mail_items import PARSED, MailItems
from webordinary.mail.records import mail_from_json, mail_to_json
from webordinary.model.mail import ParsedMail


class AwsParsedMails:
    """See ParsedMails. `bodies` take the readings that are too large for an item."""

    def __init__(self, items: MailItems, bodies: Bodies) -> None:
        self._items, self._bodies = items, bodies

    def save(self, email_id: str, mail: ParsedMail, now: datetime) -> None:
        """See ParsedMails."""
        # Half a character of a broken mail is no UTF-8; the reading must come back as it was.
        record = mail_to_json(mail).encode("utf-8", "surrogatepass")
        fields = {**self._bodies.keep(record), "parsedAt": moment(now)}
        self._items.add(f"keeping the reading of mail {email_id}", email_id, PARSED, fields)

    def load(self, email_id: str) -> ParsedMail | None:
        """See ParsedMails."""
        item = self._items.settled(f"reading mail {email_id}", email_id, PARSED)
        return mail_from_json(self._bodies.read(item).decode("utf-8", "surrogatepass")) if item else None
