"""A month's bill from one simulated day, and the default quota of AWS that a size of the system reaches first.

Each quota stands with its figure and where it is written down.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from webordinary.operations.capacity.demand import within

MOST_CALLS = 10_000


@dataclass(frozen=True, slots=True)
class UsageProfile:
    """API calls that we make, and what they use of the price list."""

    calls: float
    usage: Mapping[str, float]

    def with_calls(self, calls: float) -> UsageProfile:
        """The same habit with more or fewer calls of every kind."""
        within("calls", calls, 0, MOST_CALLS)
        return UsageProfile(calls, {meter: units * calls / self.calls for meter, units in self.usage.items()})


PER_MAIL = UsageProfile(
    35,  # 26 to DynamoDB, 3 to SQS, 3 to S3, 2 to Step Functions, 1 to SES, which puts the mail into S3
    {
        "dynamodb.write": 36,
        "dynamodb.read": 16,
        "sqs.standard": 1,
        "sqs.fifo": 3,
        "s3.put": 1,
        "s3.get": 3,
        "ses.out": 1,
    },
)
PER_JOB_MINUTE = UsageProfile(
    8,  # the lease is renewed, interrupts and hints are asked for, the workflow is told that the job lives
    {"dynamodb.write": 6, "dynamodb.read": 1, "sqs.fifo": 3},
)
PER_IDLE_HOUR = UsageProfile(
    600,  # two queues polled by turns of 20 seconds, the lease renewed, a look at what others left
    {"dynamodb.write": 372, "dynamodb.read": 60, "sqs.standard": 180, "sqs.fifo": 180},
)

BESIDES_CALLS = {
    "ses.in": 1.0,
    "ses.in-chunk": 1.0,
    "ses.out-gb": 0.0002,
    "states.transition": 14.0,
    "lambda.request": 10.0,
    "lambda.gb-second": 10 * 0.15 * 0.125,
    "s3.gb-month": 0.0004,
    "nat.gb": 0.005,
    "logs.gb": 66e-6,
    "xray.trace": 1.0,
}
"""Usage of one mail beyond API calls: a mail of 400 KB kept for a month, functions of 128 MB and 150 ms.

5 MB pass the NAT (the repository, packages, the model); lambdas, workflow and worker log 66 KB.
"""
EACH_MINUTE = {
    "lambda.request": 1.0,
    "lambda.gb-second": 0.125,
    "dynamodb.read": 104.0,
    "dynamodb.write": 1.0,
    "s3.put": 0.1,
}
"""Whatever happens: the reconciler. In each tenth minute it looks for the notes of 1,000 raw mails."""
RECONCILED = {"dynamodb.read": 1.0}
"""Each minute of a job the reconciler looks at the claim of its key, a hundred of them in a call."""
METRICS, BUSY_MAILS = 45.0, 100
"""Metrics of our own; they are paid for in hours in which something is told: all of them from so many mails a day."""
ALARM_METRICS = 30.0
CHART_LINES, CHART_MINUTES = 18, 22 * 60
"""Metrics that one look at the charts asks for, and looks of a month: an hour each workday, one a minute."""
EACH_MONTH = {
    "cloudwatch.alarm": ALARM_METRICS,
    "cloudwatch.asked": float(CHART_LINES * CHART_MINUTES),
    "route53.zone": 1.0,
}
STANDARD_PARAMETERS = 10_000
"""They are free; further ones become advanced."""
EACH_MONTH_ON_EC2 = {"nat.hour": 730.0, "ipv4.hour": 730.0}


@dataclass(frozen=True, slots=True)
class UsageModel:
    """The usage of a mail, of a minute of work and of an hour."""

    mail: UsageProfile
    job_minute: UsageProfile
    idle_hour: UsageProfile


MEETING_THE_BARS = UsageModel(PER_MAIL, PER_JOB_MINUTE, PER_IDLE_HOUR)


REGION = "us-east-1"
AS_OF = date(2026, 4, 1)

SES_IN, SES_OUT, S3, LAMBDA, STATES, SQS, DYNAMODB, COMPUTE, NETWORK, WATCHING, SYSTEMS = (
    "SES in", "SES out", "S3", "Lambda", "Step Functions", "SQS", "DynamoDB", "compute", "network", "CloudWatch",
    "Systems Manager",
)  # fmt: skip
SERVICES = (SES_IN, SES_OUT, S3, LAMBDA, STATES, SQS, DYNAMODB, COMPUTE, NETWORK, WATCHING, SYSTEMS)


@dataclass(frozen=True, slots=True)
class Price:
    """So many dollars for so many units, on the bill of a service."""

    service: str
    usd: float
    per: float
    unit: str


PRICES: Mapping[str, Price] = {
    "ses.in": Price(SES_IN, 0.10, 1000, "mail received"),
    "ses.in-chunk": Price(SES_IN, 0.09, 1000, "256 KB received"),
    "ses.out": Price(SES_OUT, 0.10, 1000, "mail sent"),
    "ses.out-gb": Price(SES_OUT, 0.12, 1, "GB of attachments sent"),
    "s3.put": Price(S3, 0.005, 1000, "PUT, COPY, POST or LIST"),
    "s3.get": Price(S3, 0.0004, 1000, "GET and others"),
    "s3.gb-month": Price(S3, 0.023, 1, "GB kept for a month"),
    "lambda.request": Price(LAMBDA, 0.20, 1e6, "invocation"),
    "lambda.gb-second": Price(LAMBDA, 0.0000133334, 1, "GB-second, ARM"),
    "states.transition": Price(STATES, 25.0, 1e6, "state transition"),
    "sqs.standard": Price(SQS, 0.40, 1e6, "request; an empty receive is one"),
    "sqs.fifo": Price(SQS, 0.50, 1e6, "request to a FIFO queue"),
    "dynamodb.write": Price(DYNAMODB, 0.625, 1e6, "write unit, 1 KB, two in a transaction"),
    "dynamodb.read": Price(DYNAMODB, 0.125, 1e6, "read unit, 4 KB, consistent; half of one otherwise"),
    "ec2.vcpu-hour": Price(COMPUTE, 0.0408, 1, "vCPU-hour with 4 GB, ARM (m7g)"),
    "ec2.gb-month": Price(COMPUTE, 0.08, 1, "GB of disk for a month (gp3)"),
    "fargate.vcpu-hour": Price(COMPUTE, 0.03238, 1, "vCPU-hour, ARM"),
    "fargate.gb-hour": Price(COMPUTE, 0.00356, 1, "GB-hour of memory, ARM"),
    "nat.hour": Price(NETWORK, 0.045, 1, "hour of a NAT gateway"),
    "nat.gb": Price(NETWORK, 0.045, 1, "GB through a NAT gateway"),
    "ipv4.hour": Price(NETWORK, 0.005, 1, "hour of a public IPv4 address"),
    "alb.hour": Price(NETWORK, 0.0225, 1, "hour of a load balancer"),
    "route53.zone": Price(NETWORK, 0.50, 1, "hosted zone for a month"),
    "logs.gb": Price(WATCHING, 0.50, 1, "GB of logs taken in"),
    "xray.trace": Price(WATCHING, 5.0, 1e6, "trace of an execution"),
    "cloudwatch.metric": Price(WATCHING, 0.30, 1, "metric of our own for a month"),
    "cloudwatch.asked": Price(WATCHING, 0.01, 1000, "metric asked for"),
    "ssm.advanced": Price(SYSTEMS, 0.05, 1, "advanced parameter for a month"),
    "cloudwatch.alarm": Price(WATCHING, 0.10, 1, "metric of an alarm for a month"),
}
LEFT_OUT = "CloudFront and all that visitors of the sites cause, tax, the agents' models"
"""The one bucket of all sites costs nothing by the number of customers."""


def price(usage: Mapping[str, float]) -> dict[str, float]:
    """Dollars by service for what was used, by the names above; what costs nothing is not named there."""
    bill: defaultdict[str, float] = defaultdict(float)
    for meter, units in usage.items():
        if known := PRICES.get(meter):
            bill[known.service] += units * known.usd / known.per
    return {service: bill[service] for service in SERVICES if service in bill}


MONTH_HOURS = 730.0
MONTH_DAYS = MONTH_HOURS / 24
CONSOLE_MONTH = {
    "alb.hour": MONTH_HOURS,
    "ipv4.hour": 2 * MONTH_HOURS,
    "fargate.vcpu-hour": 0.25 * MONTH_HOURS,
    "fargate.gb-hour": MONTH_HOURS,
}
"""The console behind a load balancer, where a deployment asks for it."""
VCPU_PER_SLOT = 0.5
GB_PER_SLOT = 1.75
DISK_GB = 60.0
"""With four slots that is one m7g.large, less what the machine keeps for itself, as `infra/` has it."""
TAIL_QUARTERS = 2
"""A worker leaves after 15 quiet minutes, and its machine after 15 more."""
EC2, FARGATE = "ec2", "fargate"
COMPUTE_KINDS = (EC2, FARGATE)


@dataclass(frozen=True, slots=True)
class DayOfWork:
    """The work of one day."""

    mails: int
    job_minutes: float
    worker_hours: float
    """That workers were there, busy or not."""
    slots: int
    """Of one worker."""
    projects: int = 0
    """Each keeps the credential of its repository."""
    console: bool = False
    """It runs behind a load balancer."""

    @property
    def idle_hours(self) -> float:
        """Worker-hours without work; a worker with one of four slots busy counts as idle by three quarters."""
        return max(0.0, self.worker_hours - self.job_minutes / 60 / self.slots)


def monthly_bill(day: DayOfWork, compute: str, usage_model: UsageModel) -> dict[str, float]:
    """Dollars by service, if all days are like this one."""
    return {service: usd * MONTH_DAYS for service, usd in price(usage_of_day(day, compute, usage_model)).items()}


def usage_of_day(day: DayOfWork, compute: str, usage_model: UsageModel) -> Mapping[str, float]:
    """All that a day uses of the price list."""
    usage: defaultdict[str, float] = defaultdict(float)
    _add(usage, usage_model.mail.usage, day.mails)
    _add(usage, BESIDES_CALLS, day.mails)
    _add(usage, usage_model.job_minute.usage, day.job_minutes)
    _add(usage, RECONCILED, day.job_minutes)
    _add(usage, usage_model.idle_hour.usage, day.idle_hours)
    _add(usage, EACH_MINUTE, 24 * 60)
    _add(usage, worker_hour(day.slots, compute), day.worker_hours)
    _add(usage, EACH_MONTH, 1 / MONTH_DAYS)
    _add(usage, {"cloudwatch.metric": METRICS * min(1.0, day.mails / BUSY_MAILS)}, 1 / MONTH_DAYS)
    _add(usage, {"ssm.advanced": max(0, day.projects - STANDARD_PARAMETERS)}, 1 / MONTH_DAYS)
    if day.console:
        _add(usage, CONSOLE_MONTH, 1 / MONTH_DAYS)
    if compute == EC2:
        _add(usage, EACH_MONTH_ON_EC2, 1 / MONTH_DAYS)
    else:
        usage.pop("nat.gb")  # tasks on Fargate have public addresses
        _add(usage, {"ipv4.hour": 1.0}, day.worker_hours)
    return usage


def worker_hour(slots: int, compute: str) -> dict[str, float]:
    """A worker's machine, sized by its slots, for an hour."""
    vcpus, gigabytes = slots * VCPU_PER_SLOT, slots * GB_PER_SLOT
    if compute == FARGATE:
        return {"fargate.vcpu-hour": vcpus, "fargate.gb-hour": gigabytes}
    return {"ec2.vcpu-hour": vcpus, "ec2.gb-month": DISK_GB / MONTH_HOURS}


def _add(usage: defaultdict[str, float], units: Mapping[str, float], times: float) -> None:
    for meter, amount in units.items():
        usage[meter] += amount * times


Usage = dict[str, float]


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
    """The size of a system."""

    projects: int
    mails_per_day: int
    workers: int
    private_share: float = 1.0
    """Of the projects: with a credential of their repository."""
    own_domain_share: float = 0.1
    """Of the projects: shown under a domain of the customer's own."""

    @property
    def mails_per_second(self) -> float:
        """Mails per second in the busiest hour."""
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
        STANDARD_PARAMETERS,
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
        "CloudFront: distribution tenants (domains of customers' own)",
        10_000,
        lambda size: size.projects * size.own_domain_share,
        f"{AWS_DOCS}/AmazonCloudFront/latest/DeveloperGuide/cloudfront-limits.html",
        "Service Quotas; further domains wait",
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
        """Share of the quota that is used; above 1 it must be raised."""
        return self.needed / self.quota.limit


def quotas_of(size: SystemSize) -> list[QuotaUse]:
    """All of them, the one that is reached first in front."""
    return sorted((QuotaUse(quota, quota.needed(size)) for quota in QUOTAS), key=lambda use: -use.share)


FRACTIONS = (1000, 100, 10, 1)


def growing(size: SystemSize) -> list[SystemSize]:
    """Smaller systems of the same kind, up to this one; none of less than a project."""
    return [
        SystemSize(
            max(1, size.projects // part),
            max(1, size.mails_per_day // part),
            max(1, size.workers // part),
            size.private_share,
            size.own_domain_share,
        )
        for part in FRACTIONS
        if part == 1 or size.projects >= part
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
