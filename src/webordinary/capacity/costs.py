"""A month's bill, from one simulated day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from webordinary.capacity.habits import BESIDES_CALLS, EACH_MINUTE, Habits
from webordinary.capacity.prices import price

MONTH_HOURS = 730.0
MONTH_DAYS = MONTH_HOURS / 24
VCPU_PER_SLOT = 0.5
GB_PER_SLOT = 1.75
DISK_GB = 60.0
"""With four slots that is one m7g.large, less what the machine keeps for itself, as `infra/` has it."""
EC2, FARGATE = "ec2", "fargate"
COMPUTE_KINDS = (EC2, FARGATE)


@dataclass(frozen=True, slots=True)
class DayOfWork:
    """What a day asked for."""

    mails: int
    job_minutes: float
    worker_hours: float
    """That workers were there, busy or not."""
    slots: int
    """Of one worker."""

    @property
    def idle_hours(self) -> float:
        """Worker-hours without work; a worker with one of four slots busy counts as idle by three quarters."""
        return max(0.0, self.worker_hours - self.job_minutes / 60 / self.slots)


def monthly_bill(day: DayOfWork, compute: str, habits: Habits) -> dict[str, float]:
    """Dollars by service, if all days are like this one."""
    return {service: usd * MONTH_DAYS for service, usd in price(usage_of_day(day, compute, habits)).items()}


def usage_of_day(day: DayOfWork, compute: str, habits: Habits) -> Mapping[str, float]:
    """All that a day uses of the price list."""
    usage: defaultdict[str, float] = defaultdict(float)
    _add(usage, habits.mail.usage, day.mails)
    _add(usage, BESIDES_CALLS, day.mails)
    _add(usage, habits.job_minute.usage, day.job_minutes)
    _add(usage, habits.idle_hour.usage, day.idle_hours)
    _add(usage, EACH_MINUTE, 24 * 60)
    _add(usage, worker_hour(day.slots, compute), day.worker_hours)
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
