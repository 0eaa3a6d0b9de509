"""What does a mail cost on AWS, and what a worker that waits?

Workload: mails with a job under a second and without a deployment, through the packaged functions and the deployed
workflow on the emulator; then a job that runs for minutes; then a worker that waits, holding one claim. Every API
call, state transition and invocation is counted and priced from `capacity/prices.py`. Units: calls, US dollars.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from harness import Options, bar, options, report, working_folder
from webordinary.capacity.costs import worker_hour
from webordinary.capacity.habits import BESIDES_CALLS, MEETING_THE_BARS, Habit, Habits
from webordinary.capacity.prices import AS_OF, REGION, price

MOST_PER_MAIL, MOST_PER_JOB_MINUTE, MOST_PER_IDLE_HOUR = 45, 8, 620
SLOTS = 4
MAILS, JOB_MINUTES, IDLE_MINUTES = 10, 3.0, 6.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What the emulator saw. `besides` is what AWS does for one mail without being called: transitions, invocations."""

    habits: Habits
    besides: dict[str, float]
    operations: dict[str, dict[str, float]]
    """Calls by operation, of a mail, a job minute and an idle hour."""


def measure(chosen: Options) -> Measured | None:
    """Run the workload on the emulator, counted by a proxy before it; None where that cannot run."""
    if chosen.tiny or find_spec("boto3") is None:
        return None
    from parts.cloud_town import cloud_town  # noqa: PLC0415 - needs the extra and the emulator

    with working_folder(chosen) as folder, cloud_town(folder) as town:
        mail, besides, by_mail = town.mails(MAILS)
        idle, by_idle_hour = town.idle_hours(IDLE_MINUTES / 60)
        minute, by_minute = town.job_minutes(JOB_MINUTES)
    return Measured(
        Habits(mail, minute, idle),
        {**BESIDES_CALLS, **besides},
        {"mail": by_mail, "job_minute": by_minute, "idle_hour": by_idle_hour},
    )


def figures(measured: Measured) -> dict[str, Any]:
    """Calls beside their bars, and dollars."""
    habits = measured.habits
    return {
        "calls_per_mail": bar(habits.mail.calls, at_most=MOST_PER_MAIL),
        "calls_per_job_minute": bar(habits.job_minute.calls, at_most=MOST_PER_JOB_MINUTE),
        "calls_per_idle_worker_hour": bar(habits.idle_hour.calls, at_most=MOST_PER_IDLE_HOUR),
        "operations": measured.operations,
        "dollars": dollars(habits, measured.besides),
    }


def dollars(habits: Habits, besides: dict[str, float]) -> dict[str, Any]:
    """Of 1,000 mails, of a job's minute and of a worker's idle hour, by service; machines apart."""
    mail = Habit(habits.mail.calls, _sum(habits.mail.usage, besides))
    machine = price(worker_hour(SLOTS, "ec2"))
    return {
        "region": REGION,
        "prices_as_of": AS_OF.isoformat(),
        "per_1000_mails": _bill(mail, 1000),
        "per_job_minute": _bill(habits.job_minute, 1),
        "per_idle_worker_hour": _bill(habits.idle_hour, 1),
        "machine_per_worker_hour": {"slots": SLOTS, **machine},
    }


def _bill(habit: Habit, times: float) -> dict[str, float]:
    services = {service: usd * times for service, usd in price(habit.usage).items()}
    return {**{service: round(usd, 7) for service, usd in services.items()}, "total": round(sum(services.values()), 7)}


def _sum(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {meter: one.get(meter, 0.0) + other.get(meter, 0.0) for meter in {**one, **other}}


def main() -> None:
    """Run and report."""
    chosen = options(__doc__ or "", repeats=1)
    measured = measure(chosen)
    at_the_bars = dollars(MEETING_THE_BARS, BESIDES_CALLS)
    results = figures(measured) if measured else {"measured": "nothing: the workload did not run"}
    report(
        "What does a mail cost on AWS, and what a worker that waits?",
        {"slots": SLOTS, "measured": measured is not None},
        {**results, "dollars_at_the_bars": at_the_bars},
        chosen,
    )


if __name__ == "__main__":
    main()
