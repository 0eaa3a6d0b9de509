"""Builds as a part of a job: what the customer, the agent and the operator get to hear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.harness.sample_project import SampleProject
from tests.integration.test_site_job import TITLE
from webordinary.adapters.agents.builtin import BuiltinAgent
from webordinary.adapters.files.stores import LOG_BYTES, FolderBuildLogs
from webordinary.jobs.ports import AgentResult, AgentTask
from webordinary.jobs.source import BuildFailed, Built, SourceTree
from webordinary.model.claims import CancelToken
from webordinary.model.jobs import JobOutcome

pytestmark = pytest.mark.needs("git")


class Building:
    """A builder whose outcome the test decides."""

    def __init__(self, outcome: Callable[[SourceTree], Built | BuildFailed]) -> None:
        self._outcome = outcome

    def fits(self, tree: SourceTree) -> bool:
        return True

    def build(self, tree: SourceTree, into: Path, previous: Path | None, token: CancelToken) -> Built | BuildFailed:
        (into / "index.html").write_text((tree.path / "index.html").read_text())
        return self._outcome(tree)


FAILING = Building(lambda tree: BuildFailed("npm ended with an error.", "the oven is cold\n"))


class RecordingAgent(BuiltinAgent):
    """Remembers what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        self.notes.append(task.note)
        return super().run(task, token)


@pytest.fixture
def amelia(tmp_path: Path) -> SampleProject:
    return SampleProject(tmp_path)


def test_what_a_build_said_is_kept_by_job(amelia: SampleProject, tmp_path: Path) -> None:
    logs = FolderBuildLogs(tmp_path / "builds")
    built = Building(lambda tree: Built(1, "npm", "built in 3 s\n"))
    amelia.send(TITLE, "job-1", deps=replace(amelia.deps(), builders={"npm": built}, build_logs=logs))
    assert logs.of("job-1") == "built in 3 s\n"
    assert logs.of("job-2") == ""
    assert logs.of("../../etc/passwd") == ""


def test_a_failed_build_goes_to_the_agent_once_with_its_log(amelia: SampleProject, tmp_path: Path) -> None:
    logs, agent = FolderBuildLogs(tmp_path / "builds"), RecordingAgent()
    amelia.send("change the homepage title to Autumn Sale", "job-1")
    deps = replace(amelia.deps(), builders={"npm": FAILING}, build_logs=logs, agents={"builtin": agent})
    settled = amelia.send(TITLE, "job-2", deps=deps)
    assert settled.outcome is JobOutcome.FAILED
    assert "npm ended with an error." in settled.result.summary
    assert settled.result.error == "the oven is cold\n"
    assert len(agent.notes) == 2
    assert "the oven is cold" in agent.notes[1]
    assert logs.of("job-2") == "the oven is cold\n" * 2
    assert amelia.heard.kinds().count("SiteNotBuilt") == 2


def test_a_customer_is_not_blamed_for_a_site_that_was_never_built(amelia: SampleProject) -> None:
    settled = amelia.send(TITLE, "job-1", deps=replace(amelia.deps(), builders={"npm": FAILING}))
    assert settled.outcome is JobOutcome.FAILED
    assert "for a reason that is not your change" in settled.result.summary
    assert "npm" not in settled.result.summary
    assert settled.result.error == "the oven is cold\n"


def test_what_no_change_can_mend_is_not_tried_again(amelia: SampleProject) -> None:
    agent = RecordingAgent()
    missing = Building(lambda tree: BuildFailed("npm is not installed.", mendable=False))
    settled = amelia.send(
        TITLE, "job-1", deps=replace(amelia.deps(), builders={"n": missing}, agents={"builtin": agent})
    )
    assert settled.outcome is JobOutcome.FAILED
    assert agent.notes == [""]


def test_a_log_is_bounded_and_forgotten(tmp_path: Path) -> None:
    logs = FolderBuildLogs(tmp_path / "builds")
    for _ in range(3):
        logs.add("job-1", "x" * (LOG_BYTES // 2 + 1))
    assert len(logs.of("job-1")) == LOG_BYTES
    logs.forget(datetime.now(UTC) - timedelta(days=1))
    assert logs.of("job-1")
    logs.forget(datetime.now(UTC) + timedelta(days=1))
    assert logs.of("job-1") == ""
