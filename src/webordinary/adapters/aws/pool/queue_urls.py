"""Where queues are: the first is looked up, the others of its account and region lie beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from webordinary.adapters.aws.clients import NOT_THERE, code_of, translated
from webordinary.model.errors import Permanent

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient


class QueueUrls:
    """Names to addresses. Thread-safe: two threads that look at the same time learn the same."""

    def __init__(self, sqs: SQSClient, beside: str = "") -> None:
        """`beside` is the address of any queue of the same account and region: then nothing is looked up."""
        self._sqs, self._beside = sqs, beside

    def of(self, name: str) -> str:
        """The address of a queue; raises Permanent if it is looked up and not there. Else who uses it finds out."""
        if not self._beside:
            with at_queue("looking for", name):
                self._beside = self._sqs.get_queue_url(QueueName=name)["QueueUrl"]
        return beside(self._beside, name)


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
