"""The cloud path on an emulator behind a proxy that counts, for benchmarks; it stands on what the tests stand on."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.aws.emulator import running_ministack  # noqa: E402
from tests.aws.faulty_proxy import FaultyProxy, faulty_proxy  # noqa: E402
from tests.aws.lambdas import until  # noqa: E402
from tests.aws.proxied_calls import ProxiedCall  # noqa: E402
from tests.harness.cloud import CloudHarness, CloudWriter, answer, opened  # noqa: E402

from parts.aws_calls import boto3_name, counted, invocation_usage, workflow_usage  # noqa: E402
from webordinary.model.names import job_id_of  # noqa: E402
from webordinary.operations.capacity.costs import UsageProfile  # noqa: E402

SCOTT, ANN = "scott@example.com", "ann@example.com"
NOT_UNDERSTOOD = "Please make the whole site feel more like a summer evening"
SETTINGS = {"lease_seconds": 60.0, "renew_seconds": 20.0, "slots": 1}
RECONCILED_EACH_SECONDS = 60.0
CannotRun = pytest.skip.Exception
"""What it stands on says so where something is missing."""


class CloudCalls:
    """One customer with the built-in agent, one whose agent waits at a gate, and one worker with one slot."""

    def __init__(self, harness: CloudHarness, proxy: FaultyProxy) -> None:
        self.harness, self._proxy = harness, proxy
        harness.onboard("amelia", "scott", SCOTT, agent="builtin")
        harness.onboard("bakery", "ann", ANN)
        self._worker = harness.hire()
        self._mail(SCOTT)  # cold: functions, workspace, claim

    def mails(self, count: int) -> tuple[UsageProfile, dict[str, float], dict[str, float]]:
        """Of one of so many mails, one after another: calls, what AWS does besides, and calls by operation."""
        names: list[str] = []

        def write() -> None:
            names.extend(self._mail(SCOTT) for _ in range(count))

        seen = self._seen_of_mails(write)
        besides: dict[str, float] = dict(invocation_usage(1))  # the intake, that the bucket invokes
        for name in names:
            for meter, units in workflow_usage(self._history(name)).items():
                besides[meter] = besides.get(meter, 0.0) + units / count
        return counted(seen).per(count), besides, _by_operation(seen, count)

    def unclaimed_mails(self, count: int) -> tuple[UsageProfile, dict[str, float]]:
        """Of a mail whose key nobody holds: the worker gives up the key of the mail before, and claims this one.

        It knows their project: what it looks up once in ten minutes or an hour is not a mail's.
        """
        newcomers = [f"eve{number}@example.com" for number in range(count)]
        for number, address in enumerate(newcomers):
            self.harness.onboard("amelia", f"eve{number}", address, agent="builtin")

        def write() -> None:
            for address in newcomers:
                self._mail(address)

        seen = self._seen_of_mails(write)
        return counted(seen).per(count), _by_operation(seen, count)

    def job_minutes(self, minutes: float) -> tuple[UsageProfile, dict[str, float]]:
        """Of one minute of a job that runs; its first heartbeat, which asks whom to tell, is the mail's."""
        self._proxy.forget_calls()
        mail = CloudWriter(self.harness, ANN).note("long", gate=1)
        until(lambda: any("SendTaskHeartbeat" in name for name in list(self._proxy.calls)), "the first heartbeat")
        seen = self._seen(lambda: self._pass(minutes * 60))
        self.harness.open_gate("long")
        answer(self.harness, mail)
        return counted(seen).per(minutes), _by_operation(seen, minutes)

    def idle_hours(self, hours: float, *, reconciled: bool = False) -> tuple[UsageProfile, dict[str, float]]:
        """Of one hour of a worker that waits, holding one claim; and of the reconciler beside it, if wanted."""
        seen = self._seen(lambda: self._pass(hours * 3600), reconciled=reconciled)
        return counted(seen).per(hours), _by_operation(seen, hours)

    def _mail(self, address: str) -> str:
        """The worker hears of it once its workflow awaits the result, before which only a job of a second would end."""
        self._worker.signal(signal.SIGSTOP)
        name = CloudWriter(self.harness, address).write(NOT_UNDERSTOOD, "A summer evening")
        jobs = self.harness.cloud.jobs
        until(lambda: bool((job := jobs.get(job_id_of(name))) and job.task_token), "the workflow to await the job")
        self._worker.signal(signal.SIGCONT)
        answer(self.harness, name)
        return name

    def _pass(self, seconds: float) -> None:
        """Let time pass, in which the worker sees that the reconciler runs."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            self.harness.cloud.reconciler_progress.passed(None, datetime.now(UTC))
            threading.Event().wait(min(left, RECONCILED_EACH_SECONDS))

    def _seen(self, work: Callable[[], None], *, reconciled: bool = False) -> Counter[ProxiedCall]:
        """The reconciler runs once a minute for the whole account, however many mails and workers there are."""
        with nullcontext() if reconciled else self.harness.without_reconciler():
            self._proxy.forget_calls()
            work()
        return self._proxy.priced()

    def _seen_of_mails(self, write: Callable[[], None]) -> Counter[ProxiedCall]:
        """Without what a worker asks while no mail comes, too: polls that bring nothing, renewals of its one lease."""
        self._seen(write)
        seen = self._proxy.but_empty_polls()
        return Counter({call: times for call, times in seen.items() if not _renews_a_lease(call)})

    def _history(self, name: str) -> list[dict[str, object]]:
        machine = f"arn:aws:states:us-east-1:{self.harness.account}:execution:email-processor:{name}"
        told = self.harness.cloud.clients.stepfunctions.get_execution_history(executionArn=machine, maxResults=1000)
        return [dict(event) for event in told["events"]]


@contextmanager
def cloud_calls(folder: Path, poll_seconds: int) -> Iterator[CloudCalls]:
    """Runs until the block ends, which waits for the polls under way."""
    (folder / "emulator").mkdir()
    (folder / "cloud").mkdir()
    with running_ministack(folder / "emulator") as emulator, faulty_proxy(emulator.endpoint) as proxy:
        settings = {**SETTINGS, "aws_poll_seconds": poll_seconds}
        harness = CloudHarness(folder / "cloud", settings, endpoint=proxy.endpoint, calm=emulator.endpoint)
        with opened(harness):
            yield CloudCalls(harness, proxy)


def _renews_a_lease(call: ProxiedCall) -> bool:
    """No other transaction has one write alone."""
    return (call.operation, call.items) == ("TransactWriteItems", 1)


def _by_operation(seen: Mapping[ProxiedCall, int], times: float) -> dict[str, float]:
    found: Counter[str] = Counter()
    for call, count in seen.items():
        where = " (fifo)" * call.fifo + " (site)" * call.site
        found[f"{boto3_name(call.service)}:{call.operation}{where}"] += count
    return {name: round(count / times, 2) for name, count in sorted(found.items())}
