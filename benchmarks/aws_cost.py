"""What does a mail cost on AWS, and what a worker that waits?

Workload: mails whose job begins once its workflow awaits it and deploys nothing, through the packaged functions and the
deployed workflow on the emulator, first of a key that the worker holds, then of keys that nobody holds; then a worker
that waits, holding one claim; then a job that runs for minutes. The worker has one slot; polls that bring nothing and
renewals of its lease are not a mail's, and the reconciler passes as it does each minute. Every API call, state
transition and invocation is counted and priced from `operations/capacity/costs.py`. Units: calls, US dollars. A full
run that counts more than a bar allows fails.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness import Options, bar, options, progress, report, working_folder
from webordinary.operations.capacity.costs import (
    AS_OF,
    BESIDES_CALLS,
    MEETING_THE_BARS,
    REGION,
    UsageProfile,
    price,
    worker_hour,
)

MOST_PER_MAIL, MOST_OF_A_CLAIM, MOST_PER_JOB_MINUTE, MOST_PER_IDLE_HOUR = 35, 42, 8, 600
SLOTS = 4
MAILS, JOB_MINUTES, IDLE_MINUTES = 10, 5.0, 5.0
"""A worker's reconciler comes round each five minutes: a shorter time would count it too heavily or not at all."""
TINY_IDLE_MINUTES = 0.05
POLL_SECONDS = 20
QUESTION = "What does a mail cost on AWS, and what a worker that waits?"
TOOLS = Path(__file__).parents[1] / ".venv-emulator" / "bin"


@dataclass(frozen=True, slots=True)
class Measured:
    """What the emulator saw. `besides` is what AWS does for one mail without being called: transitions, invocations."""

    mail: UsageProfile
    unclaimed_mail: UsageProfile
    """The first of a key that nobody holds: it is asked for, claimed, and another one is given up for it."""
    idle_hour: UsageProfile
    job_minute: UsageProfile | None
    """None in a tiny run."""
    reconciler_calls: float
    """Of the reconciler in an hour, once for the whole account."""
    besides: dict[str, float]
    operations: dict[str, dict[str, float]]
    """Calls by operation, of both kinds of mail, a job minute and an idle hour."""


def missing() -> list[str]:
    """What has to be installed before anything can be measured."""
    path = os.pathsep.join([str(TOOLS), os.environ.get("PATH", "")])
    found = {"boto3": find_spec("boto3"), "ministack": shutil.which("ministack", path=path)}
    return [name for name, place in found.items() if place is None]


def measure(chosen: Options) -> Measured:
    """Run the workload on the emulator, counted by a proxy before it."""
    cloud_calls = import_module("parts.cloud_calls").cloud_calls
    with working_folder(chosen) as folder, cloud_calls(folder, chosen.pick(POLL_SECONDS, 1)) as cloud:
        progress("mails of a key that the worker holds, then of others")
        mail, besides, by_mail = cloud.mails(chosen.pick(MAILS, 1))
        unclaimed, by_unclaimed_mail = cloud.unclaimed_mails(chosen.pick(MAILS, 1))
        progress(f"a worker that waits, for {2 * chosen.pick(IDLE_MINUTES, TINY_IDLE_MINUTES):g} minutes")
        idle, by_idle_hour = cloud.idle_hours(chosen.pick(IDLE_MINUTES, TINY_IDLE_MINUTES) / 60)
        both, _ = cloud.idle_hours(chosen.pick(IDLE_MINUTES, TINY_IDLE_MINUTES) / 60, reconciled=True)
        progress("no long job in a tiny run" if chosen.tiny else f"a job that runs for {JOB_MINUTES:g} minutes")
        minute, by_minute = (None, {}) if chosen.tiny else cloud.job_minutes(JOB_MINUTES)
    operations = {
        "mail": by_mail, "unclaimed_mail": by_unclaimed_mail, "job_minute": by_minute, "idle_hour": by_idle_hour
    }  # fmt: skip
    return Measured(mail, unclaimed, idle, minute, both.calls - idle.calls, {**BESIDES_CALLS, **besides}, operations)


def figures(measured: Measured) -> dict[str, Any]:
    """Calls beside their bars, and dollars."""
    minute = measured.job_minute
    return {
        "calls_per_mail": bar(measured.mail.calls, at_most=MOST_PER_MAIL),
        "calls_per_mail_of_an_unclaimed_key": bar(measured.unclaimed_mail.calls, at_most=MOST_OF_A_CLAIM),
        "calls_per_job_minute": bar(minute.calls, at_most=MOST_PER_JOB_MINUTE) if minute else "not measured",
        "calls_per_idle_worker_hour": bar(measured.idle_hour.calls, at_most=MOST_PER_IDLE_HOUR),
        "calls_per_hour_of_the_reconciler": round(measured.reconciler_calls, 1),
        "operations": measured.operations,
        "units_per_mail": {m: round(units, 4) for m, units in sorted(_whole(measured.mail, measured.besides).items())},
        "dollars": dollars(measured.mail, minute, measured.idle_hour, measured.besides),
    }


def missed(found: Mapping[str, Any]) -> list[str]:
    """The figures that do not clear their bars. They are counts, which no noise of the machine excuses."""
    return [name for name, figure in found.items() if isinstance(figure, dict) and figure.get("met") is False]


def dollars(
    mail: UsageProfile, minute: UsageProfile | None, idle: UsageProfile, besides: Mapping[str, float]
) -> dict[str, Any]:
    """Of 1,000 mails, of a job's minute and of a worker's idle hour, by service; machines apart."""
    machine = price(worker_hour(SLOTS, "ec2"))
    return {
        "region": REGION,
        "prices_as_of": AS_OF.isoformat(),
        "per_1000_mails": _bill(_whole(mail, besides), 1000),
        "per_job_minute": _bill(minute.usage, 1) if minute else {},
        "per_idle_worker_hour": _bill(idle.usage, 1),
        "machine_per_worker_hour": {"slots": SLOTS, **machine},
    }


def _bill(usage: Mapping[str, float], times: float) -> dict[str, float]:
    services = {service: usd * times for service, usd in price(usage).items()}
    return {**{service: round(usd, 7) for service, usd in services.items()}, "total": round(sum(services.values()), 7)}


def _whole(mail: UsageProfile, besides: Mapping[str, float]) -> dict[str, float]:
    return {meter: mail.usage.get(meter, 0.0) + besides.get(meter, 0.0) for meter in {**mail.usage, **besides}}


def results(chosen: Options) -> dict[str, Any]:
    """The figures, or what is missing for them; in CI nothing may be missing."""
    if lacking := ", ".join(missing()):
        if os.environ.get("CI") == "true":
            sys.exit(f"not installed: {lacking}")
        return {"not measured": f"{lacking} not installed: make test installs it"}
    try:
        return figures(measure(chosen))
    except import_module("parts.cloud_calls").CannotRun as reason:
        return {"not measured": str(reason)}


def main() -> None:
    """Run and report."""
    chosen = options(__doc__ or "", repeats=1)
    bars = MEETING_THE_BARS
    at_the_bars = dollars(bars.mail, bars.job_minute, bars.idle_hour, BESIDES_CALLS)
    workload = {
        "mails": chosen.pick(MAILS, 1),
        "job_minutes": chosen.pick(JOB_MINUTES, 0.0),
        "idle_minutes": chosen.pick(IDLE_MINUTES, TINY_IDLE_MINUTES),
    }
    found = results(chosen)
    report(QUESTION, workload, {**found, "dollars_at_the_bars": at_the_bars}, chosen)
    if not chosen.tiny and (over := missed(found)):
        sys.exit(f"more calls than the bar allows: {', '.join(over)}")


if __name__ == "__main__":
    main()
