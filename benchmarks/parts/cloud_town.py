"""The cloud path on an emulator behind a proxy that counts, for benchmarks; it stands on what the tests stand on."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.aws.cloud_house import CloudHouse, CloudWriter, answer, opened  # noqa: E402
from tests.aws.emulator import running_ministack  # noqa: E402
from tests.aws.faulty_proxy import FaultyProxy, faulty_proxy  # noqa: E402

from parts.aws_calls import CallCounter, workflow_usage  # noqa: E402
from webordinary.capacity.habits import Habit  # noqa: E402

SCOTT, ANN = "scott@example.com", "ann@example.com"
NOT_UNDERSTOOD = "Please make the whole site feel more like a summer evening"
SETTINGS = {"lease_seconds": 60.0, "renew_seconds": 20.0, "aws_poll_seconds": 20, "slots": 1}


class CloudTown:
    """One customer with the built-in agent, one whose agent waits at a gate, and one worker."""

    def __init__(self, house: CloudHouse, proxy: FaultyProxy) -> None:
        self.house, self._proxy = house, proxy
        house.onboard("amelia", "scott", SCOTT, agent="builtin")
        house.onboard("bakery", "ann", ANN)
        house.hire()
        self._mail()  # cold: functions, workspace, claim

    def mails(self, count: int) -> tuple[Habit, dict[str, float], dict[str, float]]:
        """Of one of so many mails, one after another: calls, what AWS does besides, and calls by operation."""
        names: list[str] = []

        def write() -> None:
            names.extend(self._mail() for _ in range(count))

        counted = self._counted(write)
        counted = _without(counted, "sqs", "ReceiveMessage", self._empty_polls)
        besides: dict[str, float] = {}
        for name in names:
            for meter, units in workflow_usage(self._history(name)).items():
                besides[meter] = besides.get(meter, 0.0) + units / count
        return counted.per(count), besides, _by_operation(counted, count)

    def job_minutes(self, minutes: float) -> tuple[Habit, dict[str, float]]:
        """Of one minute of a job that runs."""
        mail = CloudWriter(self.house, ANN).note("long", gate=1)
        self.house.told("waits", "long")
        counted = self._counted(lambda: _pass(minutes * 60))
        self.house.open_gate("long")
        answer(self.house, mail)
        return counted.per(minutes), _by_operation(counted, minutes)

    def idle_hours(self, hours: float) -> tuple[Habit, dict[str, float]]:
        """Of one hour of a worker that waits, holding one claim."""
        counted = self._counted(lambda: _pass(hours * 3600))
        return counted.per(hours), _by_operation(counted, hours)

    def _mail(self) -> str:
        name = CloudWriter(self.house).write(NOT_UNDERSTOOD, "A summer evening")
        answer(self.house, name)
        return name

    def _counted(self, work: Callable[[], None]) -> CallCounter:
        self._proxy.forget_calls()
        began = time.monotonic()
        work()
        # What its polls cost while nothing came is the waiting worker's, not the mail's.
        self._empty_polls = int((time.monotonic() - began) / SETTINGS["aws_poll_seconds"])
        counter = CallCounter()
        for called, times in dict(self._proxy.calls).items():
            service, _, operation = called.partition(":")
            counter.add(service, operation.split(" ")[0], None, times)
        return counter

    def _history(self, name: str) -> list[dict[str, object]]:
        machine = f"arn:aws:states:us-east-1:{self.house.account}:execution:email-processor:{name}"
        told = self.house.cloud.ports.clients.stepfunctions.get_execution_history(executionArn=machine, maxResults=1000)
        return [dict(event) for event in told["events"]]


@contextmanager
def cloud_town(folder: Path) -> Iterator[CloudTown]:
    """Runs until the block ends."""
    (folder / "emulator").mkdir()
    (folder / "house").mkdir()
    with running_ministack(folder / "emulator") as emulator, faulty_proxy(emulator.endpoint) as proxy:
        house = CloudHouse(folder / "house", SETTINGS, endpoint=proxy.endpoint, calm=emulator.endpoint)
        with opened(house):
            yield CloudTown(house, proxy)


def _without(counted: CallCounter, service: str, operation: str, times: int) -> CallCounter:
    other = CallCounter()
    other.add(service, operation, None, min(times, counted.calls[service, operation]))
    return counted.since(other)


def _by_operation(counted: CallCounter, times: float) -> dict[str, float]:
    found = {f"{service}:{operation}": count / times for (service, operation), count in sorted(counted.calls.items())}
    return {name: round(count, 2) for name, count in found.items()}


def _pass(seconds: float) -> None:
    threading.Event().wait(seconds)
