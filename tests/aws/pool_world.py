"""The pool's tables and queues on the emulator, with names that no other test knows."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection
from copy import copy
from dataclasses import dataclass
from datetime import date

from tests.aws.emulator import REGION
from tests.extras import needs_extra

needs_extra("boto3", "aws")

from tests.aws.accounts import clients_of, session_of  # noqa: E402
from webordinary.adapters.aws import names  # noqa: E402
from webordinary.adapters.aws.clients import connect  # noqa: E402
from webordinary.adapters.aws.dynamo import Dynamo  # noqa: E402
from webordinary.adapters.aws.pool.claim_requests import ClaimRequests  # noqa: E402
from webordinary.adapters.aws.pool.claim_table import ClaimTable  # noqa: E402
from webordinary.adapters.aws.pool.claims import AwsClaims  # noqa: E402
from webordinary.adapters.aws.pool.dead_letters import AwsDeadLetters  # noqa: E402
from webordinary.adapters.aws.pool.hints import AwsHints  # noqa: E402
from webordinary.adapters.aws.pool.interruptions import AwsInterruptions  # noqa: E402
from webordinary.adapters.aws.pool.interrupts import AwsInterrupts  # noqa: E402
from webordinary.adapters.aws.pool.job_table import JobTable  # noqa: E402
from webordinary.adapters.aws.pool.jobs import AwsJobs  # noqa: E402
from webordinary.adapters.aws.pool.ledger import AwsLedger  # noqa: E402
from webordinary.adapters.aws.pool.owed import AwsOwedCallbacks  # noqa: E402
from webordinary.adapters.aws.pool.project_leases import AwsProjectLeases  # noqa: E402
from webordinary.adapters.aws.pool.queues import Queues  # noqa: E402
from webordinary.adapters.aws.setup.provision import create_tables  # noqa: E402
from webordinary.adapters.aws.setup.queue_shapes import create_key_queues, create_shared_queues  # noqa: E402
from webordinary.model.names import ProjectUser  # noqa: E402
from webordinary.pool.ports import Hints  # noqa: E402

SESSION = session_of("test")
"""Nobody checks these credentials."""


@dataclass(frozen=True)
class OneProcess:
    """Adapters that share what they know, as a worker's do."""

    jobs: AwsJobs
    owed: AwsOwedCallbacks
    claims: AwsClaims
    job_table: JobTable


class PoolWorld:
    """Fresh tables, whose items do not expire: tests have clocks of their own."""

    def __init__(self, endpoint: str, tables: Collection[str] = (names.JOBS, names.OWNERSHIP)) -> None:
        self.suffix = f"-{secrets.token_hex(4)}"
        self.clients = clients_of(endpoint)
        create_tables(self.clients, tables, self.suffix, expiring=False)
        self.hints: Hints | None = None

    def through(self, endpoint: str) -> PoolWorld:
        """The same world, reached by another way and with new clients: botocore's tries are a quota of each."""
        other = copy(self)
        other.clients = connect(REGION, endpoint, SESSION)
        return other

    def with_hints(self, keys: Collection[ProjectUser]) -> AwsHints:
        """With an unclaimed queue of its own, and the queues of these customers."""
        create_tables(self.clients, (names.CLAIM_REQUESTS,), self.suffix, expiring=False)
        create_shared_queues(self.clients, self.suffix)
        for key in keys:
            create_key_queues(self.clients, key)
        requests = ClaimRequests(self.dynamo, names.CLAIM_REQUESTS + self.suffix, names.OWNERSHIP + self.suffix)
        self.hints = hints = AwsHints(Queues(self.clients.sqs), requests, names.UNCLAIMED + self.suffix)
        return hints

    @property
    def dynamo(self) -> Dynamo:
        return Dynamo(self.clients.dynamodb)

    def one_process(self) -> OneProcess:
        table = self._job_table()
        claims = AwsClaims(self._claim_table(60), table, self.hints)
        return OneProcess(AwsJobs(table), AwsOwedCallbacks(table), claims, table)

    def jobs(self) -> AwsJobs:
        """As a process of its own sees them."""
        return AwsJobs(self._job_table())

    def owed(self) -> AwsOwedCallbacks:
        return AwsOwedCallbacks(self._job_table())

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
