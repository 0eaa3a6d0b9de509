"""Claim requests in SQS, deduplicated: at most one for a key and fence within a minute.

A request sent while the key was held does not suppress one sent after its release under the same fence.
"""

from __future__ import annotations

import contextlib
import logging
import math
import secrets
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import ConditionFailed, Dynamo, Fields, at, delete, epoch, moment, put
from webordinary.adapters.aws.pool.queues import VISIBILITY_SECONDS, Message, Queues, beside
from webordinary.model.claims import HINT_INTERVAL_SECONDS, Claim, ClaimRequest, ClaimStatus
from webordinary.model.errors import InvalidName, WebOrdinaryError
from webordinary.model.jobs import Job
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import ClaimRequestQueue

AGAIN_SECONDS = 300.0
"""Several reconcilers look each minute: while no worker has time for a key, its hints must not pile up."""
KEPT_SECONDS = 3600.0

NEWS = "attribute_not_exists(#projectKey) OR #fence <> :fence OR #held <> :held OR #sentAt <= :before"
MY_SAYING = "#saying = :saying"


RECONCILER = "reconciler"
PASS_BELIEVED_SECONDS = 180.0
"""The lambda passes each minute; a worker that sees no pass for so long reconciles itself."""


class ReconcilerProgress:
    """See PassProgress: one item, beside the requests of keys, none of which begins with a space."""

    def __init__(self, dynamo: Dynamo, table: str = names.CLAIM_REQUESTS, name: str = RECONCILER) -> None:
        self._dynamo, self._table, self._place = dynamo, table, {"projectKey": f" {name}"}

    def named(self, name: str) -> ReconcilerProgress:
        """The saved progress of another reconciler pass."""
        return ReconcilerProgress(self._dynamo, self._table, name)

    def after(self) -> ProjectUser | None:
        stored = (self._item() or {}).get("after", "")
        return ProjectUser.parse(stored) if stored else None

    def passed(self, after: ProjectUser | None, now: datetime) -> None:
        item = {**self._place, "passedAt": now.timestamp(), "expiresAt": epoch(now, KEPT_SECONDS)}
        item |= {"after": str(after)} if after else {}
        self._dynamo.write("noting how far the reconciler came", put(self._table, item))

    def is_fresh(self, now: datetime) -> bool:
        """Whether the reconciler passed a moment ago; clocks of two machines differ by seconds at most."""
        passed_at = (self._item() or {}).get("passedAt", 0.0)
        return abs(now.timestamp() - float(passed_at)) < PASS_BELIEVED_SECONDS

    def _item(self) -> Fields | None:
        return self._dynamo.get("looking how far the reconciler came", (self._table, self._place))


class ClaimRequestDedup:
    """Two deduplication items per key: one for producers, one for the reconciler."""

    def __init__(self, dynamo: Dynamo, table: str = names.CLAIM_REQUESTS, ownership: str = names.OWNERSHIP) -> None:
        self._dynamo, self._table, self._ownership = dynamo, table, ownership

    def first_to_say(self, key: ProjectUser, fence: int | None, now: datetime, *, again: bool) -> str | None:
        """None for a duplicate; else the id that undoes the entry. A caller with a fence has seen the key free."""
        fence, held = (fence, False) if fence is not None else self._standing(key)
        saying = secrets.token_hex(8)
        stored = {
            "projectKey": _place(key, again=again),
            "fence": fence,
            "held": held,
            "sentAt": now.timestamp(),
            "saying": saying,
            "expiresAt": epoch(now, KEPT_SECONDS),
        }
        before = now.timestamp() - (AGAIN_SECONDS if again else HINT_INTERVAL_SECONDS)
        write = put(self._table, stored, NEWS, fence=fence, held=held, before=before)
        refused = self._dynamo.write(f"{key}: asking", write)
        if isinstance(refused, ConditionFailed) and refused.by[0].get("saying") != saying:
            return None  # if it is ours, only the answer to the first try was lost
        return saying

    def take_back(self, key: ProjectUser, saying: str, *, again: bool) -> None:
        """It could not be said after all; if not even this can be done, a reconciler says it."""
        place = {"projectKey": _place(key, again=again)}
        with contextlib.suppress(WebOrdinaryError):
            self._dynamo.write(f"{key}: taking back", delete(self._table, place, MY_SAYING, saying=saying))

    def _standing(self, key: ProjectUser) -> tuple[int, bool]:
        """The key's last fence, and whether the key is held, as of the last read."""
        row = self._dynamo.get(f"{key}: looking for its fence", (self._ownership, {"projectKey": str(key)}))
        return (int(row["fence"]), row["status"] == ClaimStatus.HELD) if row else (0, False)


def _place(key: ProjectUser, *, again: bool) -> str:
    return f"{key}#again" if again else str(key)


CLAIM_REQUEST = "CLAIM_REQUEST"
ENOUGH_RECEIVES = 10
"""So many receives take longer than a lease: by then it is known whether the key's owner is alive."""
BORROWED_SECONDS = 5
"""Seconds that requests stay invisible to others after a look between two jobs."""
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _ReceivedRequest:
    request: ClaimRequest
    message: Message
    until: float


class SqsClaimRequests:
    """What this process has received and not yet used; a worker's loop reads it, its polling thread fills it."""

    def __init__(
        self,
        queues: Queues,
        requests: ClaimRequestDedup,
        queue: str = names.UNCLAIMED,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queues, self._requests, self._queue, self._monotonic = queues, requests, queue, monotonic
        self._hints: dict[ProjectUser, _ReceivedRequest] = {}
        self._guard = threading.Lock()
        self.listened = False
        """A poll runs: a request that it has not delivered is not in the queue."""

    def send(self, request: ClaimRequest, now: datetime, *, again: bool = False) -> bool:
        """Say that a key has work and no owner; whom it should prefer cannot be told to a queue.

        Delayed requests are not deduplicated: they must not suppress a request for earlier work.
        """
        if delay := _seconds_until(request.ready_at, now):
            self._queues.send(self._queue, self._body(request), CLAIM_REQUEST, request.key, delay)
            return True
        saying = self._requests.first_to_say(request.key, request.fence, now, again=again)
        if saying is None:
            return False
        try:
            self._queues.send(self._queue, self._body(request), CLAIM_REQUEST, request.key)
        except WebOrdinaryError:
            self._requests.take_back(request.key, saying, again=again)
            raise
        return True

    def receive(self, now: datetime, skip: Collection[ProjectUser], limit: int) -> Sequence[ClaimRequest]:
        """Hints that wait, the longest first. Costs no call while a thread polls, or while there are some.

        Those to skip stay with this worker, which watches their owners, until they are visible again by
        themselves: given back at once, its own next poll would bring them at once.
        """
        found = self._waiting(skip)
        if not found and not self.listened:
            self.collect(limit, hidden_seconds=BORROWED_SECONDS)
            found = self._waiting(skip)
        self._drop([hint for hint in self._held(skip) if hint.message.receives >= ENOUGH_RECEIVES])
        return sorted(found, key=lambda request: request.waiting_since)[:limit]

    def acknowledge(self, key: ProjectUser) -> None:
        self.use_up((key,))

    def use_up(self, keys: Collection[ProjectUser]) -> None:
        """Delete the claim requests of these keys. Never fails: an undeleted message is received again."""
        self._drop(self._held(keys))

    def collect(self, limit: int, wait_seconds: int = 0, hidden_seconds: int = VISIBILITY_SECONDS) -> bool:
        """Receive from the queue; True if there is something new to do."""
        messages = self._queues.receive(self._queue, limit, wait_seconds, hidden_seconds)
        until = self._monotonic() + hidden_seconds
        hints = [hint for message in messages if (hint := _hint(message, until))]
        self._delete([surplus for hint in hints if (surplus := self._keep(hint))])
        return bool(hints)

    def give_back(self) -> None:
        """This worker has no time for them: let others have them at once. Never fails."""
        with self._guard:
            messages = [hint.message for hint in self._hints.values()]
            self._hints.clear()
        try:
            self._queues.give_back(self._queue, messages)
        except WebOrdinaryError as problem:
            _log.warning("hints come again after %d seconds: %s", VISIBILITY_SECONDS, problem)

    def _waiting(self, skip: Collection[ProjectUser]) -> list[ClaimRequest]:
        now = self._monotonic()
        with self._guard:
            self._hints = {key: hint for key, hint in self._hints.items() if hint.until > now}
            return [hint.request for key, hint in self._hints.items() if key not in skip]

    def _held(self, keys: Collection[ProjectUser]) -> list[_ReceivedRequest]:
        with self._guard:
            return [hint for key in keys if (hint := self._hints.get(key))]

    def _keep(self, hint: _ReceivedRequest) -> Message | None:
        """One hint a key is enough; returns the one too many. The same message again has a new receipt."""
        with self._guard:
            known = self._hints.get(hint.request.key)
            self._hints[hint.request.key] = hint
        return known.message if known and known.message.message_id != hint.message.message_id else None

    def _drop(self, hints: Sequence[_ReceivedRequest]) -> None:
        with self._guard:
            for hint in hints:
                self._hints.pop(hint.request.key, None)
        self._delete([hint.message for hint in hints])

    def _delete(self, messages: Sequence[Message]) -> None:
        try:
            self._queues.delete(self._queue, messages)
        except WebOrdinaryError as problem:
            _log.warning("hints come again after %d seconds: %s", VISIBILITY_SECONDS, problem)

    def _body(self, request: ClaimRequest) -> dict[str, object]:
        return {
            "type": CLAIM_REQUEST,
            "projectId": request.key.project_id,
            "userId": request.key.user_id,
            "queueUrl": beside(self._queues.url_of(self._queue), names.queues_of(request.key).input),
            "messageId": request.email_id,
            "threadId": request.thread_id,
            "waitingSince": moment(request.waiting_since),
        }


def _seconds_until(ready_at: datetime | None, now: datetime) -> int:
    return max(0, math.ceil((ready_at - now).total_seconds())) if ready_at else 0


def _hint(message: Message, until: float) -> _ReceivedRequest | None:
    """The request in a message; unreadable messages are left to the queue's dead-letter queue."""
    body = message.body
    try:
        key = ProjectUser(str(body.get("projectId")), str(body.get("userId")))
        since = at(str(body["waitingSince"])) if "waitingSince" in body else _LONG_AGO
    except (InvalidName, ValueError) as problem:
        _log.warning("message %s in the unclaimed queue is no hint: %s", message.message_id, problem)
        return None
    if body.get("type") != CLAIM_REQUEST or since.tzinfo is None:
        _log.warning("message %s in the unclaimed queue is no hint: %.200s", message.message_id, body)
        return None
    return _ReceivedRequest(ClaimRequest(key, since), message, until)


_OFFERS = 8


class ClaimOffers:
    """After a transaction is done nothing may hide that: what goes wrong here is only logged."""

    def __init__(self, hints: ClaimRequestQueue | None) -> None:
        self._hints = hints

    def acknowledge(self, key: ProjectUser) -> None:
        """Hints for this key have nothing to tell any more."""
        if self._hints:
            try:
                self._hints.acknowledge(key)
            except WebOrdinaryError as problem:
                _log.warning("%s: its hint stays and comes again: %s", key, problem)

    def offers(self, claim: Claim, now: datetime) -> Sequence[ClaimRequest]:
        """Keys that wait and are not left to another worker, the longest waiting first."""
        if self._hints is None:
            return ()
        try:
            found = self._hints.receive(now, {claim.key}, _OFFERS)
        except WebOrdinaryError as problem:
            _log.warning("%s: the waiting keys cannot be read: %s", claim.key, problem)
            return ()
        return [offer for offer in found if offer.preferred in (None, claim.worker)]

    def yielded(self, claim: Claim, left: Job | None, now: datetime) -> None:
        """Send a claim request for a released key that has work left."""
        if self._hints and left:
            try:
                self._hints.send(ClaimRequest.for_job(left, claim.worker, claim.fence, served_at=now), now)
            except WebOrdinaryError as problem:
                _log.warning("%s: its hint is left to the reconciler: %s", claim.key, problem)
