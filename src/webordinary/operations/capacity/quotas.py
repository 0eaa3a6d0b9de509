"""Which default quota of AWS a size of the system reaches first; each with its figure and where it is written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

AWS_DOCS = "https://docs.aws.amazon.com"
BUSIEST_HOUR = 2.3
"""Times the mean hour, of a business day."""
PARALLEL_LAMBDAS = 11 * 0.5
"""Of one mail a second: eleven calls of half a second, as they take when a function starts cold."""
INDEX_WRITES = 4
"""To the index of open jobs for one mail: queued, started, requeued at times, settled."""
VCPUS_OF_A_WORKER = 2


@dataclass(frozen=True, slots=True)
class SystemSize:
    """What is asked of the account."""

    projects: int
    mails_per_day: int
    workers: int
    private_share: float = 1.0
    """Of the projects: with a credential of their repository."""

    @property
    def mails_per_second(self) -> float:
        """In the busiest hour."""
        return self.mails_per_day / 86_400 * BUSIEST_HOUR


@dataclass(frozen=True, slots=True)
class Quota:
    """A default of an account, or a limit that stays; `ask` is what to do about it."""

    name: str
    limit: float
    needed: Callable[[SystemSize], float]
    source: str
    ask: str


QUOTAS: Sequence[Quota] = (
    Quota(
        "EC2: vCPU of running On-Demand Standard machines, in a new account",
        5,
        lambda size: size.workers * VCPUS_OF_A_WORKER,
        f"{AWS_DOCS}/ec2/latest/instancetypes/ec2-instance-quotas.html",
        "Service Quotas, L-1216C47A",
    ),
    Quota(
        "Lambda: concurrent executions, in a new account",
        10,
        lambda size: size.mails_per_second * PARALLEL_LAMBDAS,
        f"{AWS_DOCS}/lambda/latest/dg/gettingstarted-limits.html",
        "Service Quotas, 1,000 are given for nothing",
    ),
    Quota(
        "Lambda: concurrent executions",
        1_000,
        lambda size: size.mails_per_second * PARALLEL_LAMBDAS,
        f"{AWS_DOCS}/lambda/latest/dg/gettingstarted-limits.html",
        "Service Quotas, L-B99A9384",
    ),
    Quota(
        "SES: mails sent in 24 hours, as production access usually begins",
        50_000,
        lambda size: size.mails_per_day,
        f"{AWS_DOCS}/ses/latest/dg/quotas.html",
        "SES, sending quota; 500,000 a day is usual for good senders",
    ),
    Quota(
        "SES: mails sent a second, as production access usually begins",
        14,
        lambda size: size.mails_per_second,
        f"{AWS_DOCS}/ses/latest/dg/quotas.html",
        "SES, sending rate; replies wait meanwhile",
    ),
    Quota(
        "Systems Manager: standard parameters (credentials of repositories)",
        10_000,
        lambda size: size.projects * size.private_share,
        f"{AWS_DOCS}/general/latest/gr/ssm.html",
        "nothing: further ones become advanced parameters, at 0.05 dollars a month each, up to 100,000",
    ),
    Quota(
        "Systems Manager: advanced parameters",
        100_000,
        lambda size: size.projects * size.private_share,
        f"{AWS_DOCS}/general/latest/gr/ssm.html",
        "a second account, or credentials in a table under a key of your own",
    ),
    Quota(
        "VPC: addresses of the two subnets of workers, two for each",
        8_182,
        lambda size: size.workers * 2,
        f"{AWS_DOCS}/vpc/latest/userguide/subnet-sizing.html",
        "larger subnets: infra/network.py",
    ),
    Quota(
        "ECS: tasks of a service",
        5_000,
        lambda size: size.workers,
        f"{AWS_DOCS}/AmazonECS/latest/developerguide/service-quotas.html",
        "a second service",
    ),
    Quota(
        "Step Functions: state transitions a second, outside the largest regions",
        800,
        lambda size: size.mails_per_second * 16,
        f"{AWS_DOCS}/step-functions/latest/dg/service-quotas.html",
        "5,000 in us-east-1, us-west-2 and eu-west-1; else Service Quotas",
    ),
    Quota(
        "DynamoDB: writes a second to one key of an index (open jobs)",
        1_000,
        lambda size: size.mails_per_second * INDEX_WRITES,
        f"{AWS_DOCS}/amazondynamodb/latest/developerguide/bp-partition-key-design.html",
        "an index key with a suffix from 0 to 15",
    ),
)


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """How much of a quota a size needs."""

    quota: Quota
    needed: float

    @property
    def share(self) -> float:
        """Above 1: it must be raised."""
        return self.needed / self.quota.limit


def quotas_of(size: SystemSize) -> list[QuotaUse]:
    """All of them, the one that is reached first in front."""
    return sorted((QuotaUse(quota, quota.needed(size)) for quota in QUOTAS), key=lambda use: -use.share)


FRACTIONS = (1000, 100, 10, 1)


def growing(size: SystemSize) -> list[SystemSize]:
    """Smaller systems of the same kind, up to this one."""
    return [
        SystemSize(
            max(1, size.projects // part),
            max(1, size.mails_per_day // part),
            max(1, size.workers // part),
            size.private_share,
        )
        for part in FRACTIONS
    ]


def quota_lines(size: SystemSize) -> list[str]:
    """What has to be raised at each size, the quota that is reached first in front."""
    lines = []
    for one in growing(size):
        reached = [use for use in quotas_of(one) if use.share > 1]
        lines.append(f"{one.projects:,} projects, {one.mails_per_day:,} mails a day, {one.workers:,} workers:")
        lines += ["  within every default quota"] if not reached else []
        for use in reached:
            lines.append(f"  {use.quota.name}: {use.needed:,.0f} of {use.quota.limit:,.0f}")
            lines.append(f"    {use.quota.ask}; {use.quota.source}")
    return lines


def quota_data(size: SystemSize) -> list[dict[str, object]]:
    """The same as JSON values, with what stays within its quota."""
    return [
        {"projects": one.projects, "mails_per_day": one.mails_per_day, "workers": one.workers, "quotas": as_data(one)}
        for one in growing(size)
    ]


def as_data(size: SystemSize) -> list[dict[str, object]]:
    """All quotas of one size."""
    return [
        {
            "quota": use.quota.name,
            "default": use.quota.limit,
            "needed": round(use.needed, 2),
            "share": round(use.share, 3),
            "source": use.quota.source,
            "to_do": use.quota.ask,
        }
        for use in quotas_of(size)
    ]
