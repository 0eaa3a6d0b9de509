"""Accepted mails on AWS: SES has put the bytes into a bucket before we know of them, and a note says where.

SES's objects are `raw/{SES's id}`. A note of the same id (`raw#…`) tells which objects were seen: so a mail whose
notification was lost is found by looking at the bucket.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from webordinary.adapters.aws import names
from webordinary.adapters.aws.blobs import fetch, put_once
from webordinary.adapters.aws.clients import translated
from webordinary.adapters.aws.dynamo import Fields
from webordinary.adapters.aws.items import at, moment
from webordinary.adapters.aws.mail.mail_items import MAIL, MailItems
from webordinary.adapters.aws.writes import put, update
from webordinary.mail.authenticate import Held, Refused
from webordinary.mail.errors import UnknownMail
from webordinary.model.mail import Email, Envelope, TransportVerdicts

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

RAW, STORED = "raw", "stored"
WORKFLOW = "workflow"
"""What a mail is due for until its workflow was started."""
MOST_BYTES = 41 * 1024 * 1024
"""SES takes 40 MB, and writes its block before them."""
UNNOTED_AFTER = timedelta(minutes=5)
MOST_REASON = 500
_STARTED_REMEMBERED = 1000
_NEW = "attribute_not_exists(#emailId)"
_SES_ID = re.compile(r"[A-Za-z0-9]{16,128}")  # not AMAZON_SES_SETUP_NOTIFICATION


@dataclass(frozen=True, slots=True)
class Unnoted:
    """Objects that nobody has noted, and where to look on; empty = from the beginning again."""

    keys: tuple[str, ...]
    after: str


class AwsRawMails:
    """See RawMails; and `read`, `note` and `unnoted` for mails that SES brings."""

    def __init__(self, s3: S3Client, bucket: str, items: MailItems) -> None:
        self._s3, self._bucket, self._items = s3, bucket, items
        self._started: OrderedDict[str, None] = OrderedDict()

    def store(self, email: Email) -> bool:
        """See RawMails. For mails that did not come through SES; a failed one may leave bytes that nothing names."""
        digest = hashlib.sha256(email.raw).hexdigest()
        key = f"{STORED}/{email.email_id}/{digest[:16]}"  # two deliveries of one mail may differ in trace headers
        put_once(self._s3, self._bucket, key, email.raw)
        return self._add(key, email)

    def load(self, email_id: str) -> Email:
        """See RawMails."""
        item = self._mail(email_id)
        return Email(email_id, _envelope(item), self.read(item["rawKey"]))

    def envelope(self, email_id: str) -> Envelope:
        """See RawMails."""
        return _envelope(self._mail(email_id))

    def read(self, key: str) -> bytes:
        """The bytes of an object that SES put there."""
        return fetch(self._s3, self._bucket, key, MOST_BYTES)

    def note(self, key: str, emails: Sequence[Email]) -> tuple[bool, ...]:
        """Write down the mails, one per recipient, that this object holds; which of them are new.

        All at once: a second recipient is not forgotten by a crash after the first.
        """
        items, what, request = self._items, f"noting the mail {key}", secrets.token_hex(16)
        note = f"{RAW}#{ses_id_of(key)}"
        seen = put(items.table, items.item(note, RAW, {"rawKey": key, "request": request}))
        new = [put(items.table, items.item(email.email_id, MAIL, _fields(key, email)), _NEW) for email in emails]
        if items.dynamo.transact(what, [*new, seen], request, (items.table, items.key(note, RAW))) is None:
            return (True,) * len(emails)
        known = tuple(self._add(key, email) for email in emails)  # some are here already: each by itself, then
        items.dynamo.write(what, seen)
        return known

    def mark_started(self, email_id: str) -> None:
        """See RawMails."""
        key, there = self._items.key(email_id, MAIL), "attribute_exists(#emailId)"
        what = f"noting that the workflow of mail {email_id} runs"
        self._items.dynamo.write(what, update(self._items.table, key, "REMOVE #due, #dueAt", there))
        self._started[email_id] = None
        while len(self._started) > _STARTED_REMEMBERED:
            self._started.popitem(last=False)

    def mark_placed(self, email_id: str, stopped: Held | Refused | None = None) -> None:
        """See RawMails. Nothing waits for it here, see `waits_for_earlier`: only what stopped it is noted."""
        if stopped is None:
            return
        verdict, reason = stopped.word, stopped.reason[:MOST_REASON]
        noted = {"verdict": verdict, "reason": reason, "at": moment(self._items.now())}
        key, there = self._items.key(email_id, MAIL), "attribute_exists(#emailId)"
        write = update(self._items.table, key, "SET #stopped = :stopped", there, stopped=noted)
        self._items.dynamo.write(f"noting that mail {email_id} is {verdict}", write)

    def waits_for_earlier(self, email_id: str, since: datetime) -> bool:
        """Never: on AWS nobody can know it.

        SES, S3 and Lambda deliver in no order, so an earlier mail may not be noted yet when a later one asks. What is
        promised is the order in which mails of a thread got their jobs.
        """
        return False

    def without_workflow(self, limit: int) -> tuple[str, ...]:
        """See RawMails. The index lags a little: mails that this process has started are left out."""
        found = self._items.dynamo.query(
            "looking for mails without a workflow",
            self._items.table,
            "#due = :workflow",
            {"workflow": WORKFLOW},
            limit + len(self._started),
            index=names.DUE_INDEX,
        )
        return tuple(item["emailId"] for item in found if item["emailId"] not in self._started)[:limit]

    def unnoted(self, limit: int, now: datetime, after: str = "") -> Unnoted:
        """Of the next `limit` objects behind the key `after`, those that are not noted though there was time to.

        The bucket holds a month of mails in no order of time: a bounded look at a time goes round it.
        """
        with translated(f"looking for mails in {self._bucket}"):
            page = self._s3.list_objects_v2(
                Bucket=self._bucket, Prefix=f"{RAW}/", MaxKeys=min(limit, 1000), StartAfter=after
            )
        old = [found["Key"] for found in page.get("Contents", []) if found["LastModified"] <= now - UNNOTED_AFTER]
        ids = {f"{RAW}#{ses_id}": key for key in old if (ses_id := ses_id_of(key))}
        notes = self._items.dynamo.get_all(
            "looking for notes of mails", self._items.table, [self._items.key(one, RAW) for one in ids]
        )
        for note in notes:
            ids.pop(note["emailId"], None)
        goes_on = page["Contents"][-1]["Key"] if page.get("IsTruncated") else ""
        return Unnoted(tuple(ids.values()), goes_on)

    def _mail(self, email_id: str) -> Fields:
        item = self._items.settled(f"reading mail {email_id}", email_id, MAIL)
        if item is None:
            raise UnknownMail(email_id)
        return item

    def _add(self, key: str, email: Email) -> bool:
        return self._items.add(f"noting mail {email.email_id}", email.email_id, MAIL, _fields(key, email))


def ses_id_of(key: str) -> str:
    """SES's name for the mail at this key; empty where the object is none of SES's mails."""
    folder, _, name = key.rpartition("/")
    return name if folder == RAW and _SES_ID.fullmatch(name) else ""


def _fields(key: str, email: Email) -> dict[str, object]:
    envelope = email.envelope
    return {
        "rawKey": key,
        "size": len(email.raw),
        "peer": envelope.peer,
        "mailFrom": envelope.mail_from,
        "recipient": envelope.recipient,
        "receivedAt": moment(envelope.received_at),
        "receivedDay": envelope.received_at.date().isoformat(),
        "verdicts": asdict(envelope.verdicts) if envelope.verdicts else None,
        "due": WORKFLOW,
        "dueAt": moment(envelope.received_at),
    }


def _envelope(item: dict[str, Any]) -> Envelope:
    verdicts = TransportVerdicts(**item["verdicts"]) if "verdicts" in item else None
    return Envelope(item["peer"], item["mailFrom"], item["recipient"], at(item["receivedAt"]), verdicts)
