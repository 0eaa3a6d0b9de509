"""The examination that `webordinary doctor` makes: each look is bounded in time and never fails another."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from webordinary.app.backends import AWS, open_services, require_boto3
from webordinary.app.checks import checks_of, ports_checks, projects_checks
from webordinary.config import Config
from webordinary.model.errors import WebOrdinaryError
from webordinary.model.findings import Check, Finding, Verdict, broken

LOOK_SECONDS = 30.0
AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Looked:
    """A check and what it found."""

    name: str
    finding: Finding


def look_at_all(checks: Sequence[Check], seconds: float = LOOK_SECONDS) -> Iterator[Looked]:
    """Run them, some at once; in their own order as they are done."""
    for start in range(0, len(checks), AT_ONCE):
        looks = [_Look(check) for check in checks[start : start + AT_ONCE]]
        deadline = time.monotonic() + seconds
        for look in looks:
            yield Looked(look.check.name, look.result(deadline, seconds))


class _Look:
    """One check in a thread of its own, which nobody waits for longer than the deadline."""

    def __init__(self, check: Check) -> None:
        self.check, self._found = check, list[Finding]()
        self._thread = threading.Thread(target=self._run, name=f"check {check.name}", daemon=True)
        self._thread.start()

    def result(self, deadline: float, seconds: float) -> Finding:
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._found:
            return self._found[0]
        return broken(f"{self.check.name}: no answer within {seconds:.0f} s", "is the network in order? Try again")

    def _run(self) -> None:
        try:
            self._found.append(self.check.look())
        except WebOrdinaryError as problem:
            self._found.append(broken(str(problem), "mend that, then look again"))
        except Exception as problem:  # a doctor who faints helps nobody
            self._found.append(broken(f"{type(problem).__name__}: {problem}", "mend that, then look again"))


def examine(config: Config, *, running: bool) -> Iterator[Looked]:
    """The whole examination."""
    yield from look_at_all([*checks_of(config), *ports_checks(config, running=running)])
    if config.backend == AWS:
        yield from _examine_cloud(config)
    elif (config.data / "webordinary.db").is_file():
        yield from _examine_sites(config)


def _examine_sites(config: Config) -> Iterator[Looked]:
    try:
        with open_services(config) as services:
            yield from look_at_all(list(projects_checks(services)))
    except WebOrdinaryError as problem:
        yield Looked("sites", broken(f"the sites cannot be listed: {problem}", "mend what is above first"))


def _examine_cloud(config: Config) -> Iterator[Looked]:
    require_boto3()
    from webordinary.app import cloud_checks  # noqa: PLC0415 - an extra, and slow to import

    identity, *others = cloud_checks.account_checks(config)
    [known] = look_at_all([identity])
    yield known
    if known.finding.verdict is Verdict.FAIL:
        return  # whom AWS does not know can look at nothing else
    yield from look_at_all(others)
    with open_services(config) as services:
        yield from look_at_all(list(cloud_checks.cloud_checks(services)))
        try:
            checks = [*cloud_checks.customers_checks(services), *projects_checks(services)]
        except WebOrdinaryError as problem:
            yield Looked("sites", broken(f"the sites cannot be listed: {problem}", "mend what is above first"))
            return
        yield from look_at_all(checks)
