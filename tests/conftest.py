"""What all tests share: no surprises from the environment, and honest skips."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from webordinary.config import PREFIX

if TYPE_CHECKING:
    from tests.aws.emulator import RunningEmulator

IN_CI = os.environ.get("CI") == "true"

# Tests start thousands of processes. Where the environment forbids bytecode, as many images of containers do, each of
# them would compile every module again, which takes longer than most of them run.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*programs): skipped where one is missing; in CI that is a failure")
    config.addinivalue_line("markers", "may_skip(condition, reason): if true, it may be skipped in CI, too")
    config.addinivalue_line("markers", "slow: a unit test of a second or more; `make test-fast` leaves it out")
    config.addinivalue_line("markers", "xdist_group(name): run by the same process; known without xdist too")
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(_Xdist())


class _Xdist:
    """Known only where xdist is loaded."""

    @staticmethod
    def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
        from tests.scheduling import Together

        if config.getvalue("dist") != "loadgroup":
            return None
        config.option.loadscopereorder = False  # the order is that of `pytest_collection_modifyitems`
        return Together(config, log)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A set has another order in every process, and processes that collect different tests run none."""
    for mark in metafunc.definition.iter_markers("parametrize"):
        values = mark.kwargs.get("argvalues", mark.args[-1])
        if isinstance(values, set | frozenset):
            pytest.fail(f"the values of {mark.args[0]} are a set: sort them", pytrace=False)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What may take longest starts first, so that no process is busy with it when the others are done."""
    if hasattr(config, "workerinput"):  # one of several processes
        items.sort(key=_length, reverse=True)


def pytest_collection_finish() -> None:
    """Keeps thousands of collected tests and their modules out of every later garbage collection."""
    gc.collect()
    gc.freeze()


def _length(item: pytest.Item) -> tuple[float, bool]:
    mark = item.get_closest_marker("timeout")
    is_long = any(item.get_closest_marker(name) for name in ("slow", "xdist_group"))
    return float(mark.args[0]) if mark else 0.0, is_long


def pytest_runtest_setup(item: pytest.Item) -> None:
    programs = [program for mark in item.iter_markers("needs") for program in mark.args]
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test is a failure, because `.ci/run` installs what tests need."""
    report = yield
    if not any(mark.args[0] for mark in item.iter_markers("may_skip")):
        fail_if_skipped_in_ci(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a file that skips while it is imported."""
    report = yield
    fail_if_skipped_in_ci(report)
    return report


def fail_if_skipped_in_ci(report: pytest.TestReport | pytest.CollectReport) -> None:
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        words = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{words}; in CI nothing may be missing: .ci/run installs programs, `make test` packages"


@pytest.fixture(scope="session", autouse=True)
def _own_environment() -> Iterator[None]:
    """Somebody's WEBORDINARY_* variables, git identity, hooks, keys or AWS account must not reach a test."""
    with pytest.MonkeyPatch.context() as environment:
        for name in list(os.environ):
            if name.startswith((PREFIX, "GIT_", "ANTHROPIC_", "CLAUDE", "AWS_")):
                environment.delenv(name)
        environment.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        environment.setenv("GIT_CONFIG_NOSYSTEM", "1")
        environment.setenv("AWS_CONFIG_FILE", os.devnull)
        environment.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
        environment.setenv(f"{PREFIX}HOURLY_MAILS", "0")  # one customer writes hundreds of mails here
        environment.setenv(f"{PREFIX}PICTURES", "off")  # a browser for each change; test_pictures.py turns them on
        environment.setenv(f"{PREFIX}ACKNOWLEDGE_SECONDS", "0")  # on a busy machine mails wait: only answers count
        yield


@pytest.fixture(autouse=True)
def _usual_umask() -> None:
    """A command that ran in this process has closed its files to other users, which programs under test may be."""
    os.umask(0o022)


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEmulator]:
    """An emulator of AWS, started once per test process; tests keep apart by names of their own."""
    from tests.aws.emulator import running_ministack
    from tests.extras import needs_extra

    needs_extra("boto3", "aws")
    with running_ministack(tmp_path_factory.mktemp("ministack")) as emulator:
        yield emulator


@dataclass
class Up:
    """A running `webordinary up` with its own data folder and free ports."""

    process: subprocess.Popen[str]
    data: Path
    page: str
    smtp_host: str
    smtp_port: int
    preview: str
    lines: tuple[str, ...] = ()

    def stop(self) -> int:
        """Ask it to end, and say how it ended."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=120)
        return self.process.returncode


@pytest.fixture
def start_up(tmp_path: Path) -> Iterator[Callable[..., Up]]:
    """Start the real thing; whatever a test leaves running is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(
        *flags: str,
        data: Path | None = None,
        env: Mapping[str, str] | None = None,
        umask: int = -1,
        prefix: Sequence[str] = (),
    ) -> Up:
        data = data or tmp_path / "data"
        ports = ("--port", "0", "--smtp-port", "0", "--preview-port", "0")
        process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "webordinary", "up", "--data", str(data), *ports, *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            umask=umask,
            env={**os.environ, "WEBORDINARY_RETRY_SECONDS": "0.2", **(env or {})},
        )
        started.append(process)
        assert process.stdout
        lines = []
        for line in process.stdout:
            lines.append(line)
            if found := re.match(r"ready (\S+) smtp (\S+):(\d+) preview (\S+)$", line):
                return Up(process, data, found[1], found[2], int(found[3]), found[4], tuple(lines))
        pytest.fail(f"up ended with {process.wait()}:\n{''.join(lines)}")

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=60)
