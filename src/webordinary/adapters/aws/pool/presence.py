"""Which workers there are: each says so now and then in the table of ownership, claim or no claim.

For people to look at. Nothing is decided by it: whether a claim is still somebody's, its own beat tells.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import Dynamo
from webordinary.adapters.aws.items import at, epoch, moment
from webordinary.adapters.aws.writes import put
from webordinary.model.errors import WebOrdinaryError
from webordinary.model.overview import WorkerSummary

_log = logging.getLogger(__name__)
Ended = Callable[[float], bool]
"""Waits for so many seconds, and says whether it is over."""
EACH_SECONDS, LEAVE_SECONDS = 300.0, 5.0
BELIEVED = timedelta(seconds=EACH_SECONDS + 30)
"""Who has not been heard of for longer is not shown."""
GARBAGE_AFTER_SECONDS = 7 * 24 * 3600
"""For so long the mails that it worked on tell its name."""
_PREFIX = "worker:"
"""No key has a colon, so none is called so; `worker#ann` may be one."""


@dataclass(frozen=True, slots=True)
class Presence:
    """See above; one write each time."""

    dynamo: Dynamo
    table: str = names.OWNERSHIP

    def tell(self, worker: WorkerSummary, now: datetime) -> None:
        """This worker lives and works."""
        self._write(worker, now, gone=False)

    def leave(self, worker: WorkerSummary, now: datetime) -> None:
        """This worker ends in good order."""
        self._write(worker, now, gone=True)

    def keep(self, worker: WorkerSummary, alive: Callable[[], bool], now: Callable[[], datetime], ended: Ended) -> None:
        """Tell it now and then while that is so, and leave once `ended`."""
        over = False
        while not over:
            if alive():
                self._unless_deaf(self.tell, worker, now)
            over = ended(EACH_SECONDS)
        self._unless_deaf(self.leave, worker, now)

    @contextmanager
    def kept(self, worker: WorkerSummary, alive: Callable[[], bool], now: Callable[[], datetime]) -> Iterator[None]:
        """The same beside a block, until that ends."""
        ended = threading.Event()
        thread = threading.Thread(target=self.keep, args=(worker, alive, now, ended.wait), name="presence", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(LEAVE_SECONDS)

    @staticmethod
    def _unless_deaf(
        say: Callable[[WorkerSummary, datetime], None], worker: WorkerSummary, now: Callable[[], datetime]
    ) -> None:
        try:
            say(worker, now())
        except WebOrdinaryError as problem:  # people see it a little later, or a little longer
            _log.info("%s", problem)

    def names(self, workers: Iterable[str]) -> dict[str, str]:
        """What people call these workers, also those that are gone; who was forgotten is left out."""
        keys = [{"projectKey": f"{_PREFIX}{worker}"} for worker in sorted(workers)]
        rows = self.dynamo.get_all("looking how workers are called", self.table, keys)
        return {str(row["projectKey"]).removeprefix(_PREFIX): row["name"] for row in rows}

    def _write(self, worker: WorkerSummary, now: datetime, *, gone: bool) -> None:
        fields = {
            "projectKey": f"{_PREFIX}{worker.worker}",
            "name": worker.name,
            "pid": worker.pid,
            "slots": worker.slots,
            "startedAt": moment(worker.started_at),
            "seenAt": moment(now),
            "gone": gone,
            "ttl": epoch(now, GARBAGE_AFTER_SECONDS),
        }
        self.dynamo.write(f"telling that {worker.worker} is there", put(self.table, fields))


def worker_in(row: Mapping[str, Any], now: datetime) -> WorkerSummary | None:
    """The worker that an item of the table tells of; None if it is another item, or old."""
    key = str(row["projectKey"])
    if not key.startswith(_PREFIX) or row["gone"] or at(row["seenAt"]) < now - BELIEVED:
        return None
    return WorkerSummary(key.removeprefix(_PREFIX), row["name"], row["pid"], row["slots"], at(row["startedAt"]))
