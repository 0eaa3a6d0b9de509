"""The unclaimed queue on SQS. A message is invisible while a worker has it, and comes again if it is not deleted."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from webordinary.adapters.aws import names
from webordinary.adapters.aws.items import at, moment
from webordinary.adapters.aws.pool.claim_requests import ClaimRequests
from webordinary.adapters.aws.pool.queue_urls import beside
from webordinary.adapters.aws.pool.queues import VISIBILITY_SECONDS, Message, Queues
from webordinary.model.claims import ClaimRequest
from webordinary.model.errors import InvalidName, WebOrdinaryError
from webordinary.model.names import ProjectUser

CLAIM_REQUEST = "CLAIM_REQUEST"
ENOUGH_RECEIVES = 10
"""For longer than a lease somebody has watched this key's owner: if that is alive, the hint tells nothing."""
BORROWED_SECONDS = 5
"""Who only looks between two jobs must not keep others from what it does not take."""
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Hint:
    request: ClaimRequest
    message: Message
    until: float


class AwsHints:
    """What this process has received and not yet used; a worker's loop reads it, its polling thread fills it."""

    def __init__(
        self,
        queues: Queues,
        requests: ClaimRequests,
        queue: str = names.UNCLAIMED,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queues, self._requests, self._queue, self._monotonic = queues, requests, queue, monotonic
        self._hints: dict[ProjectUser, _Hint] = {}
        self._guard = threading.Lock()
        self.listened = False
        """Somebody polls: then what is not here yet is not there either."""

    def send(self, request: ClaimRequest, now: datetime, *, again: bool = False) -> bool:
        """Say that a key has work and no owner; whom it should prefer cannot be told to a queue.

        What is said for later does not count as said: it must not silence who has work before that.
        """
        if delay := _seconds_until(request.ready_at, now):
            self._queues.send(self._queue, self._body(request), delay)
            return True
        saying = self._requests.first_to_say(request.key, request.fence, now, again=again)
        if saying is None:
            return False
        try:
            self._queues.send(self._queue, self._body(request))
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
        """Hints for this key have nothing to tell any more."""
        self.use_up((key,))

    def use_up(self, keys: Collection[ProjectUser]) -> None:
        """The hints for these keys are used up. Never fails: what is not deleted comes again."""
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

    def _held(self, keys: Collection[ProjectUser]) -> list[_Hint]:
        with self._guard:
            return [hint for key in keys if (hint := self._hints.get(key))]

    def _keep(self, hint: _Hint) -> Message | None:
        """One hint a key is enough; returns the one too many. The same message again has a new receipt."""
        with self._guard:
            known = self._hints.get(hint.request.key)
            self._hints[hint.request.key] = hint
        return known.message if known and known.message.message_id != hint.message.message_id else None

    def _drop(self, hints: Sequence[_Hint]) -> None:
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


def _hint(message: Message, until: float) -> _Hint | None:
    """What a message says; what nobody of us wrote is left to the queue's own dead letters."""
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
    return _Hint(ClaimRequest(key, since), message, until)
