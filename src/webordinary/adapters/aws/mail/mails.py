"""Accepted mails on AWS: SES has put the bytes into a bucket before we know of them, and a note says where.

SES's objects are `raw/{SES's id}`. A note of the same id (`raw#…`) tells which objects were seen: so a mail whose
notification was lost is found by looking at the bucket.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from webordinary.adapters.aws import names
from webordinary.adapters.aws.blobs import Bodies, fetch, put_once
from webordinary.adapters.aws.clients import translated
from webordinary.adapters.aws.dynamo import ConditionFailed, Dynamo, Fields, at, epoch, moment, put, update
from webordinary.adapters.records import attachment_from_json, attachment_to_json, mail_from_json, mail_to_json
from webordinary.mail.addresses import Mailbox
from webordinary.mail.auth import AwaitsConfirmation, Refused, envelopes_of
from webordinary.mail.confirm import SenderQuestion
from webordinary.mail.intake import Accepted, announce, emails_of
from webordinary.mail.parsing.headers import HEAD_BYTES
from webordinary.mail.parsing.parts import MAX_STORED_BYTES
from webordinary.mail.ports import UnknownMail
from webordinary.model.events import Event, EventKind, Events
from webordinary.model.mail import Attachment, Email, Envelope, ParsedMail, RefusedAttachment, TransportVerdicts

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


MAIL, PARSED = "mail", "parsed"
KEEP_DAYS = 30
"""Unless `retention_days` says something else. What is needed longer (threads, sites) is not here."""
NOTE_DAYS = 7
"""A note outlives its object by so much: an object without a note is taken for a mail that was never read."""
UNADMITTED_DAYS = 3
UNADMITTED_TAG = ("admitted", "no")
"""On the raw mails that nothing proves, or whose sender is unknown; the bucket's lifecycle deletes these first."""
REMEMBERED = 64
MOST_ITEMS = 200

_DAY_SECONDS = 86_400


class MailItems:
    """The mails' table. Thread-safe."""

    def __init__(
        self, dynamo: Dynamo, now: Callable[[], datetime], table: str = names.MAILS, keep_days: int = KEEP_DAYS
    ) -> None:
        self.dynamo, self.table, self.now, self.keep_days = dynamo, table, now, keep_days
        self._remembered: OrderedDict[tuple[str, str], Fields] = OrderedDict()
        self._lock = threading.Lock()

    def key(self, email_id: str, part: str) -> dict[str, object]:
        """The key of an item."""
        return {"emailId": email_id, "part": part}

    def item(self, email_id: str, part: str, fields: Mapping[str, object], longer_days: int = 0) -> dict[str, object]:
        """An item with its key and its time to expire."""
        expires_at = epoch(self.now(), (self.keep_days + longer_days) * _DAY_SECONDS)
        return {**self.key(email_id, part), **fields, "expiresAt": expires_at}

    def add(self, what: str, email_id: str, part: str, fields: Mapping[str, object]) -> bool:
        """Write an item unless it is there; False if another stands there, which stays as it is."""
        request = secrets.token_hex(8)
        item = self.item(email_id, part, {**fields, "request": request})
        written = self.dynamo.write(what, put(self.table, item, _NEW))
        # An answer may have been lost and the write repeated: then what stands there is ours.
        return not isinstance(written, ConditionFailed) or written.by[0].get("request") == request

    def settled(self, what: str, email_id: str, part: str) -> Fields | None:
        """The mail or its reading, which never change."""
        with self._lock:
            if known := self._remembered.get((email_id, part)):
                return known
        found = self.between(what, email_id, MAIL, PARSED)
        self.remember(found)
        return next((item for item in found if item["part"] == part), None)

    def remember(self, found: Sequence[Fields]) -> None:
        """Keep items in memory for `settled`."""
        with self._lock:
            for item in found:
                self._remembered[item["emailId"], item["part"]] = item
            while len(self._remembered) > REMEMBERED:
                self._remembered.popitem(last=False)

    def beginning(self, what: str, email_id: str, prefix: str) -> list[Fields]:
        """The items of a mail whose part begins so, in order."""
        where = "#emailId = :mail AND begins_with(#part, :prefix)"
        return self.dynamo.query(what, self.table, where, {"mail": email_id, "prefix": prefix}, MOST_ITEMS)

    def between(self, what: str, email_id: str, first: str, last: str) -> list[Fields]:
        """The items of a mail from one part to another, in order."""
        where = "#emailId = :mail AND #part BETWEEN :first AND :last"
        values = {"mail": email_id, "first": first, "last": last}
        return self.dynamo.query(what, self.table, where, values, MOST_ITEMS)


RAW, STORED = "raw", "stored"
UNADMITTED_BYTES = 500_000_000
WORKFLOW = "workflow"
"""What a mail is due for until its workflow was started."""
UNNOTED_AFTER = timedelta(minutes=5)
MOST_REASON = 500
_STARTED_REMEMBERED = 1000
_NEW = "attribute_not_exists(#emailId)"
_SES_ID = re.compile(r"[A-Za-z0-9]{16,128}")  # not AMAZON_SES_SETUP_NOTIFICATION


@dataclass(frozen=True, slots=True)
class UnrecordedObjects:
    """Objects without a mail item, and the key to continue after; empty = start again."""

    keys: tuple[str, ...]
    after: str


class AwsRawMails:
    """See RawMails; and `read`, `note` and `unnoted` for mails that SES brings."""

    def __init__(self, s3: S3Client, bucket: str, items: MailItems, unadmitted_bytes: int = UNADMITTED_BYTES) -> None:
        self._s3, self._bucket, self._items, self._unadmitted_bytes = s3, bucket, items, unadmitted_bytes
        self._started: OrderedDict[str, None] = OrderedDict()

    def store(self, email: Email) -> bool:
        """See RawMails. For mails that did not come through SES; a failed one may leave bytes that nothing names."""
        digest = hashlib.sha256(email.raw).hexdigest()
        key = f"{STORED}/{email.email_id}/{digest[:16]}"  # two deliveries of one mail may differ in trace headers
        put_once(self._s3, self._bucket, key, email.raw)
        return self._add(key, email)

    def load(self, email_id: str) -> Email:
        item = self._mail(email_id)
        return Email(email_id, _envelope(item), self.read(item["rawKey"]))

    def head(self, email_id: str) -> Email:
        item = self._mail(email_id)
        head = fetch(self._s3, self._bucket, item["rawKey"], MAX_STORED_BYTES, only=HEAD_BYTES + 1)
        return Email(email_id, _envelope(item), head)

    def envelope(self, email_id: str) -> Envelope:
        return _envelope(self._mail(email_id))

    def read(self, key: str) -> bytes:
        """The bytes of an object that SES put there."""
        return fetch(self._s3, self._bucket, key, MAX_STORED_BYTES)

    def note(self, key: str, emails: Sequence[Email]) -> tuple[bool, ...]:
        """Write down the mails, one per recipient, that this object holds; which of them are new.

        All at once: a second recipient is not forgotten by a crash after the first.
        """
        items, what, request = self._items, f"noting the mail {key}", secrets.token_hex(16)
        note = f"{RAW}#{ses_id_of(key)}"
        seen = put(items.table, items.item(note, RAW, {"rawKey": key, "request": request}, NOTE_DAYS))
        new = [put(items.table, items.item(email.email_id, MAIL, _fields(key, email)), _NEW) for email in emails]
        if items.dynamo.transact(what, [*new, seen], request, (items.table, items.key(note, RAW))) is None:
            return (True,) * len(emails)
        known = tuple(self._add(key, email) for email in emails)  # some are here already: each by itself, then
        items.dynamo.write(what, seen)
        return known

    def mark_started(self, email_id: str) -> None:
        key, there = self._items.key(email_id, MAIL), "attribute_exists(#emailId)"
        what = f"noting that the workflow of mail {email_id} runs"
        found = self._items.dynamo.write(what, update(self._items.table, key, "REMOVE #due, #dueAt", there))
        if not isinstance(found, ConditionFailed):
            self._items.remember([found])
        self._started[email_id] = None
        while len(self._started) > _STARTED_REMEMBERED:
            self._started.popitem(last=False)

    def mark_placed(self, email_id: str, stopped: AwaitsConfirmation | Refused | None = None) -> None:
        """See RawMails. Nothing waits for it here, see `waits_for_earlier`: only what stopped it is noted.

        The raw mail then goes after UNADMITTED_DAYS, or at once where such mails of today have filled their share.
        """
        if stopped is None:
            return
        verdict, reason = stopped.word, stopped.reason[:MOST_REASON]
        noted = {"verdict": verdict, "reason": reason, "at": moment(self._items.now())}
        key, first = self._items.key(email_id, MAIL), "attribute_exists(#emailId) AND attribute_not_exists(#stopped)"
        write = update(self._items.table, key, "SET #stopped = :stopped", first, stopped=noted)
        found = self._items.dynamo.write(f"noting that mail {email_id} is {verdict}", write)
        if not isinstance(found, ConditionFailed):
            self._limit_unadmitted(found["rawKey"], found["size"], verdict)

    def _limit_unadmitted(self, key: str, size: int, verdict: str) -> None:
        """SES has accepted the mail: the bucket is all that can be kept small.

        Refused and held mails have a half of the quota each: a stranger cannot crowd out a customer's held mail.
        """
        now, what = self._items.now(), f"counting the unadmitted mail {key}"
        today = self._items.key(f"unadmitted#{now.date()}", verdict)
        expires = epoch(now, self._items.keep_days * _DAY_SECONDS)
        add = update(self._items.table, today, "SET #expiresAt = :expires ADD #bytes :size", expires=expires, size=size)
        counted = self._items.dynamo.write(what, add)
        assert not isinstance(counted, ConditionFailed), "a write without a condition is not refused"
        with translated(what):
            if counted["bytes"] > self._unadmitted_bytes // UNADMITTED_DAYS // 2:
                self._s3.delete_object(Bucket=self._bucket, Key=key)
            else:
                name, value = UNADMITTED_TAG
                self._s3.put_object_tagging(
                    Bucket=self._bucket, Key=key, Tagging={"TagSet": [{"Key": name, "Value": value}]}
                )

    def release(self, email_id: str) -> bool:
        now = moment(self._items.now())
        change = "SET #released = :yes, #due = :workflow, #dueAt = :now REMOVE #stopped"
        released = self._if(
            "held", f"releasing mail {email_id}", email_id, change, yes=True, workflow=WORKFLOW, now=now
        )
        if released:
            self._started.pop(email_id, None)
        return released

    def drop(self, email_id: str) -> bool:
        noted = {"verdict": "dropped", "reason": "dropped", "at": moment(self._items.now())}
        return self._if("held", f"dropping mail {email_id}", email_id, "SET #stopped = :noted", noted=noted)

    def is_released(self, email_id: str) -> bool:
        """See RawMails. As it is now: an answer may have come to another process."""
        place = (self._items.table, self._items.key(email_id, MAIL))
        return bool((self._items.dynamo.get(f"reading mail {email_id}", place) or {}).get("released"))

    def is_closed(self, email_id: str) -> bool:
        place = (self._items.table, self._items.key(email_id, MAIL))
        return "closedAt" in (self._items.dynamo.get(f"reading mail {email_id}", place) or {})

    def note_closed(self, email_id: str) -> None:
        key, now = self._items.key(email_id, MAIL), moment(self._items.now())
        write = update(self._items.table, key, "SET #closedAt = :now", "attribute_exists(#emailId)", now=now)
        self._items.dynamo.write(f"closing mail {email_id}", write)

    def reconsider(self, email_id: str) -> None:
        now = moment(self._items.now())
        change = "SET #reconsideredAt = :now REMOVE #stopped"
        self._if("refused", f"judging mail {email_id} again", email_id, change, now=now)

    def _if(self, verdict: str, what: str, email_id: str, change: str, **values: object) -> bool:
        key = self._items.key(email_id, MAIL)
        request = secrets.token_hex(16)
        change, when = change.replace("SET ", "SET #request = :request, ", 1), "#stopped.#verdict = :verdict"
        write = update(self._items.table, key, change, when, verdict=verdict, request=request, **values)
        if not isinstance(self._items.dynamo.write(what, write), ConditionFailed):
            return True
        seen = self._items.dynamo.get(what, (self._items.table, key))  # our own write, of which nothing was heard?
        return bool(seen and seen.get("request") == request)

    def waits_for_earlier(self, email_id: str, since: datetime) -> bool:
        """Always False: AWS gives no order of arrival.

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

    def unnoted(self, limit: int, now: datetime, after: str = "") -> UnrecordedObjects:
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
        return UnrecordedObjects(tuple(ids.values()), goes_on)

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


CONFIRM, ASKED = "confirm", "asked"
_ROOM = "attribute_not_exists(#mails) OR size(#mails) < :most OR contains(#mails, :mail)"


class AwsConfirmations:
    """See Confirmations. One item for each token, and one for each address and day that counts its mails."""

    def __init__(self, items: MailItems) -> None:
        self._items = items

    def ask(self, question: SenderQuestion, daily_limit: int) -> bool:
        items, what = self._items, f"asking the sender of mail {question.email_id}"
        key = items.key(f"{ASKED}#{question.address}", question.asked_at.date().isoformat())
        expires_at = epoch(question.asked_at, KEEP_DAYS * _DAY_SECONDS)
        counted = update(
            items.table, key, "ADD #mails :mails SET #expiresAt = :expires", _ROOM,
            mails={question.email_id}, mail=question.email_id, most=daily_limit, expires=expires_at,
        )  # fmt: skip
        if isinstance(items.dynamo.write(what, counted), ConditionFailed):
            return False
        fields = {"mailId": question.email_id, "validUntil": moment(question.expires_at)}
        items.dynamo.write(what, put(items.table, items.item(f"{CONFIRM}#{question.digest}", CONFIRM, fields)))
        return True

    def find(self, digest: str, now: datetime) -> str:
        place = (self._items.table, self._items.key(f"{CONFIRM}#{digest}", CONFIRM))
        item = self._items.dynamo.get("looking for a question", place)
        valid = item and "usedAt" not in item and at(item["validUntil"]) > now
        return str(item["mailId"]) if item and valid else ""

    def use(self, digest: str, now: datetime) -> None:
        key, there = self._items.key(f"{CONFIRM}#{digest}", CONFIRM), "attribute_exists(#emailId)"
        write = update(self._items.table, key, "SET #usedAt = :now", there, now=moment(now))
        self._items.dynamo.write("noting that a question was answered", write)


class AwsHourlyRates:
    """See HourlyRates. One item for each scope and hour; it expires."""

    def __init__(self, items: MailItems) -> None:
        self._items = items

    def admit(self, scope: str, email_id: str, limit: int, now: datetime) -> bool:
        key = self._items.key(f"rate#{scope}", f"{now:%Y-%m-%dT%H}")
        counted = update(
            self._items.table, key, "ADD #mails :mails SET #expiresAt = :expires", _ROOM,
            mails={email_id}, mail=email_id, most=limit, expires=epoch(now, _DAY_SECONDS),
        )  # fmt: skip
        return not isinstance(self._items.dynamo.write(f"counting mails of {scope}", counted), ConditionFailed)

    def counted(self, scope: str, since: datetime, now: datetime) -> Sequence[str]:
        hours = (f"{at:%Y-%m-%dT%H}" for at in (since, now))
        items = self._items.between(f"reading mails of {scope}", f"rate#{scope}", *hours)
        return [email_id for item in items for email_id in sorted(item["mails"])]


class AwsParsedMails:
    """See ParsedMails. `bodies` take the readings that are too large for an item."""

    def __init__(self, items: MailItems, bodies: Bodies) -> None:
        self._items, self._bodies = items, bodies

    def save(self, email_id: str, mail: ParsedMail, now: datetime) -> None:
        # Half a character of a broken mail is no UTF-8; the reading must come back as it was.
        record = mail_to_json(mail).encode("utf-8", "surrogatepass")
        fields = {**self._bodies.keep(record), "parsedAt": moment(now)}
        self._items.add(f"keeping the reading of mail {email_id}", email_id, PARSED, fields)

    def load(self, email_id: str) -> ParsedMail | None:
        item = self._items.settled(f"reading mail {email_id}", email_id, PARSED)
        return mail_from_json(self._bodies.read(item).decode("utf-8", "surrogatepass")) if item else None


_PREFIX = "attachment#"


class AwsAttachmentManifest:
    """See AttachmentManifest."""

    def __init__(self, items: MailItems) -> None:
        self._items = items

    def save(self, email_id: str, position: int, record: Attachment | RefusedAttachment) -> None:
        item = self._items.item(email_id, f"{_PREFIX}{position:04d}", {"record": attachment_to_json(record)})
        what = f"keeping what file {position} of mail {email_id} is"
        self._items.dynamo.write(what, put(self._items.table, item))

    def of(self, email_id: str) -> tuple[Attachment | RefusedAttachment, ...]:
        found = self._items.beginning(f"reading which files mail {email_id} has", email_id, _PREFIX)
        return tuple(attachment_from_json(item["record"]) for item in found)


class Inbox(Protocol):
    """The bucket that SES fills, and the notes of what was taken out of it."""

    def read(self, key: str) -> bytes:
        """The bytes of an object that SES put there."""

    def note(self, key: str, emails: Sequence[Email]) -> tuple[bool, ...]:
        """Write down the mails that this object holds; which of them are new."""


class AwsIntake:
    """Called for every object that S3 tells of, as often as it tells, and for those that it forgot to tell of."""

    def __init__(self, mails: Inbox, mailbox: Mailbox, events: Events) -> None:
        self._mails, self._mailbox, self._events = mails, mailbox, events

    def take(self, key: str, received_at: datetime) -> tuple[Accepted, ...]:
        """Accept the mail at this key, once per recipient; none for objects that are no mails, or not for us.

        Start a workflow for each of them, new or not: one that is known may have died before it was started.
        """
        ses_id = ses_id_of(key)
        if not ses_id:
            return ()
        raw = self._mails.read(key)
        emails = emails_of(raw, envelopes_of(raw, ses_id, self._mailbox, received_at))
        new = self._mails.note(key, emails)
        if not emails:
            reason = f"{key} is for no address of ours: let the receipt rule take mail to {self._mailbox.address} alone"
            self._events.emit(Event(EventKind.MAIL_REFUSED, data={"reason": reason}))
        return tuple(announce(email, self._events, is_new=is_new) for email, is_new in zip(emails, new, strict=True))
