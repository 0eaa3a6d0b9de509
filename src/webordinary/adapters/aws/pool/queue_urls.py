"""Where queues are: looked up once each, or told from the address of a queue beside them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from webordinary.adapters.aws.clients import NOT_THERE, code_of, translated
from webordinary.model.errors import Permanent

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

REMEMBERED = 4096


class QueueUrls:
    """Names to addresses. Thread-safe; what was not asked for longest is forgotten first."""

    def __init__(self, sqs: SQSClient, beside: str = "", remembered: int = REMEMBERED) -> None:
        """`beside` is the address of any queue of the same account and region: then nothing is looked up."""
        self._sqs, self._remembered = sqs, remembered
        self._beside = beside
        self._known: OrderedDict[str, str] = OrderedDict()
        self._guard = threading.Lock()

    def of(self, name: str) -> str:
        """The address of a queue; raises Permanent if it is looked up and not there."""
        if self._beside:
            return beside(self._beside, name)
        with self._guard:
            if name in self._known:
                self._known.move_to_end(name)
                return self._known[name]
        with at_queue("looking for", name):
            url = self._sqs.get_queue_url(QueueName=name)["QueueUrl"]
        with self._guard:
            self._known[name] = url
            while len(self._known) > self._remembered:
                self._known.popitem(last=False)
        return url


def beside(url: str, name: str) -> str:
    """The address of another queue of the same account and region."""
    return f"{url.rpartition('/')[0]}/{name}"


@contextmanager
def at_queue(what: str, name: str) -> Iterator[None]:
    """Failures at a queue in our own words; of a missing one: what makes it."""
    with translated(f"{what} queue {name}"):
        try:
            yield
        except ClientError as problem:
            if code_of(problem) not in NOT_THERE:
                raise
            raise Permanent(
                f"queue {name} is not there: `webordinary project add … --backend aws` makes those of a customer, "
                "`webordinary aws deploy` the others"
            ) from problem
