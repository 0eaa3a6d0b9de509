"""The pool's tables and queues on the emulator, with names that no other test knows."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection
from copy import copy
from dataclasses import dataclass
from datetime import UTC, date, datetime

from tests.aws.emulator import REGION
from tests.extras import needs_extra

needs_extra("boto3", "aws")

from tests.aws.accounts import clients_of, session_of  # noqa: E402
from webordinary.adapters.aws import names  # noqa: E402
from webordinary.adapters.aws.clients import connect  # noqa: E402
from webordinary.adapters.aws.dynamo import Dynamo  # noqa: E402
from webordinary.adapters.aws.pool.claim_requests import (  # noqa: E402
    ClaimRequestDedup,
    SqsClaimRequests,
)
from webordinary.adapters.aws.pool.claim_table import ClaimTable  # noqa: E402
from webordinary.adapters.aws.pool.claims import AwsClaims, AwsProjectLeases  # noqa: E402
from webordinary.adapters.aws.pool.dead_letters import AwsDeadLetters  # noqa: E402
from webordinary.adapters.aws.pool.job_table import JobTable  # noqa: E402
from webordinary.adapters.aws.pool.jobs import (  # noqa: E402
    AwsInterruptions,
    AwsJobs,
    AwsPendingCallbacks,
)
from webordinary.adapters.aws.pool.ledger import AwsLedger  # noqa: E402
from webordinary.adapters.aws.pool.queues import (  # noqa: E402
    AwsInterrupts,
    Queues,
)
from webordinary.adapters.aws.provision.shapes import (  # noqa: E402
    create_key_queues,
    create_shared_queues,
    create_tables,
)
from webordinary.model.claims import StartedJob  # noqa: E402
from webordinary.model.jobs import NewJob  # noqa: E402
from webordinary.model.mail import Command  # noqa: E402
from webordinary.model.names import ProjectUser  # noqa: E402
from webordinary.pool.ports import ClaimRequestQueue  # noqa: E402

KEY = ProjectUser("amelia", "scott")
W1, W2 = "container-1", "container-2"
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SESSION = session_of("test")
"""Nobody checks these credentials."""


@dataclass(frozen=True)
class OneProcess:
    """Adapters that share what they know, as a worker's do."""

    jobs: AwsJobs
    pending_callbacks: AwsPendingCallbacks
    claims: AwsClaims
    job_table: JobTable


class PoolTables:
    """Fresh tables, whose items do not expire: tests have clocks of their own."""

    def __init__(self, endpoint: str, tables: Collection[str] = (names.JOBS, names.OWNERSHIP)) -> None:
        self.suffix = f"-{secrets.token_hex(4)}"
        self.clients = clients_of(endpoint)
        create_tables(self.clients, tables, self.suffix, expiring=False)
        self.hints: ClaimRequestQueue | None = None

    def through(self, endpoint: str) -> PoolTables:
        """The same world, reached by another way and with new clients: botocore's tries are a quota of each."""
        other = copy(self)
        other.clients = connect(REGION, endpoint, SESSION)
        return other

    def with_hints(self, keys: Collection[ProjectUser]) -> SqsClaimRequests:
        """With an unclaimed queue of its own, and the queues of these customers."""
        create_tables(self.clients, (names.CLAIM_REQUESTS,), self.suffix, expiring=False)
        create_shared_queues(self.clients, self.suffix)
        for key in keys:
            create_key_queues(self.clients, key)
        requests = ClaimRequestDedup(self.dynamo, names.CLAIM_REQUESTS + self.suffix, names.OWNERSHIP + self.suffix)
        self.hints = hints = SqsClaimRequests(Queues(self.clients.sqs), requests, names.UNCLAIMED + self.suffix)
        return hints

    @property
    def dynamo(self) -> Dynamo:
        return Dynamo(self.clients.dynamodb)

    def one_process(self) -> OneProcess:
        table = self._job_table()
        claims = AwsClaims(self._claim_table(60), table, self.hints)
        return OneProcess(AwsJobs(table), AwsPendingCallbacks(table), claims, table)

    def jobs(self) -> AwsJobs:
        """As a process of its own sees them."""
        return AwsJobs(self._job_table())

    def pending_callbacks(self) -> AwsPendingCallbacks:
        return AwsPendingCallbacks(self._job_table())

    def claims(self, lease_seconds: float = 60) -> AwsClaims:
        return AwsClaims(self._claim_table(lease_seconds), self._job_table(), self.hints)

    def interrupts(self) -> AwsInterrupts:
        return AwsInterrupts(Queues(self.clients.sqs))

    def dead_letters(self) -> AwsDeadLetters:
        return AwsDeadLetters(self.dynamo, names.MAILS + self.suffix)

    def project_leases(
        self, is_dead: Callable[[str], bool], monotonic: Callable[[], float] = time.monotonic
    ) -> AwsProjectLeases:
        return AwsProjectLeases(self._job_table(), names.OWNERSHIP + self.suffix, is_dead, monotonic)

    def interruptions(self) -> AwsInterruptions:
        return AwsInterruptions(self.dynamo, names.INTERRUPTIONS + self.suffix)

    def ledger(self, today: Callable[[], date]) -> AwsLedger:
        return AwsLedger(self.dynamo, names.COSTS + self.suffix, today)

    def _claim_table(self, lease_seconds: float) -> ClaimTable:
        return ClaimTable(self.dynamo, names.OWNERSHIP + self.suffix, lease_seconds)

    def _job_table(self) -> JobTable:
        return JobTable(self.dynamo, names.JOBS + self.suffix)


def queue(tables: PoolTables, *names: str) -> None:
    """Jobs of one customer, ready to be started."""
    for name in names:
        tables.jobs().record(NewJob(name, KEY, f"thread-{name}", f"mail-{name}", Command.EDIT), NOON, ready=True)


def claim(tables: PoolTables, worker: str = W1) -> StartedJob:
    """A worker takes the customer, and with it the first job."""
    started = tables.claims().claim_and_start(KEY, worker, NOON)
    assert isinstance(started, StartedJob)
    return started
