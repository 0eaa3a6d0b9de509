"""The items of one mail: `mail`, `parsed`, `attachment#0000`, `reply#answer`; one partition, kept for a month.

The mail and its reading never change once they are written, but for what is due and what stopped it. Whoever asks for
one asks for the other next: one query brings both, and they are remembered.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import datetime

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import Dynamo, Fields, Refused
from webordinary.adapters.aws.items import epoch
from webordinary.adapters.aws.writes import put

MAIL, PARSED = "mail", "parsed"
KEEP_DAYS = 30
"""As long as the raw mails; what is needed longer (threads, sites) is not here."""
REMEMBERED = 64
MOST_ITEMS = 200

_NEW = "attribute_not_exists(#emailId)"
_DAY_SECONDS = 86_400


class MailItems:
    """The mails' table. Thread-safe."""

    def __init__(self, dynamo: Dynamo, now: Callable[[], datetime], table: str = names.MAILS) -> None:
        self.dynamo, self.table, self.now = dynamo, table, now
        self._remembered: OrderedDict[tuple[str, str], Fields] = OrderedDict()
        self._lock = threading.Lock()

    def key(self, email_id: str, part: str) -> dict[str, object]:
        """Where an item is."""
        return {"emailId": email_id, "part": part}

    def item(self, email_id: str, part: str, fields: Mapping[str, object]) -> dict[str, object]:
        """A whole item; it expires."""
        expires_at = epoch(self.now(), KEEP_DAYS * _DAY_SECONDS)
        return {**self.key(email_id, part), **fields, "expiresAt": expires_at}

    def add(self, what: str, email_id: str, part: str, fields: Mapping[str, object]) -> bool:
        """Write an item unless it is there; False if another stands there, which stays as it is."""
        request = secrets.token_hex(8)
        item = self.item(email_id, part, {**fields, "request": request})
        written = self.dynamo.write(what, put(self.table, item, _NEW))
        # An answer may have been lost and the write repeated: then what stands there is ours.
        return not isinstance(written, Refused) or written.by[0].get("request") == request

    def settled(self, what: str, email_id: str, part: str) -> Fields | None:
        """The mail or its reading, which never change."""
        with self._lock:
            if known := self._remembered.get((email_id, part)):
                return known
        found = self.between(what, email_id, MAIL, PARSED)
        with self._lock:
            for item in found:
                self._remembered[email_id, item["part"]] = item
            while len(self._remembered) > REMEMBERED:
                self._remembered.popitem(last=False)
        return next((item for item in found if item["part"] == part), None)

    def beginning(self, what: str, email_id: str, prefix: str) -> list[Fields]:
        """The items of a mail whose part begins so, in order."""
        where = "#emailId = :mail AND begins_with(#part, :prefix)"
        return self.dynamo.query(what, self.table, where, {"mail": email_id, "prefix": prefix}, MOST_ITEMS)

    def between(self, what: str, email_id: str, first: str, last: str) -> list[Fields]:
        """The items of a mail from one part to another, in order."""
        where = "#emailId = :mail AND #part BETWEEN :first AND :last"
        values = {"mail": email_id, "first": first, "last": last}
        return self.dynamo.query(what, self.table, where, values, MOST_ITEMS)
