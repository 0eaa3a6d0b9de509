"""A conflict or a failed build goes back to the agent once, then to the customer in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness.sample_project import SampleProject
from tests.unit.jobs.fixtures import OTHER_THREAD, ZOE
from webordinary.adapters.agents.builtin import BuiltinAgent
from webordinary.adapters.builders import PlainFiles
from webordinary.jobs.ports import AgentResult, AgentTask, Changed
from webordinary.jobs.source import BuildFailed, Built, SourceTree
from webordinary.model.claims import CancelToken
from webordinary.model.jobs import JobOutcome

pytestmark = pytest.mark.needs("git")


class OvertakenAgent:
    """The built-in agent, while somebody else publishes a change of the same place during its first runs."""

    def __init__(self, overtake: Callable[[int], None], times: int) -> None:
        self.notes: list[str] = []
        self._overtake, self._times = overtake, times

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        self.notes.append(task.note)
        result = BuiltinAgent().run(task, token)
        if len(self.notes) <= self._times:
            self._overtake(len(self.notes))
        return result


class PickyBuilder(PlainFiles):
    """Refuses to build a page that says a certain word."""

    def build(self, tree: SourceTree, into: Path, previous: Path | None, token: CancelToken) -> Built | BuildFailed:
        if "Explode" in (tree.path / "index.html").read_text():
            return BuildFailed("The page says Explode.", log="line 3: Explode")
        return super().build(tree, into, previous, token)


@pytest.fixture
def amelia(tmp_path: Path) -> SampleProject:
    return SampleProject(tmp_path)


def overtaken(amelia: SampleProject, times: int) -> OvertakenAgent:
    def overtake(number: int) -> None:
        amelia.send(
            f"change the homepage title to Zoe {number}",
            f"job-zoe-{number}",
            key=ZOE,
            thread=OTHER_THREAD,
            worker="w-2",
        )

    return OvertakenAgent(overtake, times)


def test_a_conflict_is_solved_by_the_agent_on_the_newest_state(amelia: SampleProject) -> None:
    agent = overtaken(amelia, times=1)
    deps = replace(amelia.deps(), agents={"builtin": agent})
    settled = amelia.send("change the homepage title to Spring Sale", "job-1", deps=deps)
    assert settled.outcome is JobOutcome.SUCCEEDED
    assert "<h1>Spring Sale</h1>" in amelia.page()
    assert agent.notes[0] == ""
    assert "somebody else changed the same lines of index.html" in agent.notes[1]
    assert sorted(amelia.jobs_on_main()) == ["job-1", "job-zoe-1"]
    amelia.check()


def test_a_second_conflict_is_told_in_words_and_changes_nothing(amelia: SampleProject) -> None:
    agent = overtaken(amelia, times=2)
    deps = replace(amelia.deps(), agents={"builtin": agent})
    settled = amelia.send("change the homepage title to Spring Sale", "job-1", deps=deps)
    assert settled.outcome is JobOutcome.FAILED
    assert "Somebody else changed the same lines of index.html" in settled.result.summary
    assert "<h1>Zoe 2</h1>" in amelia.page()
    assert len(agent.notes) == 2
    amelia.check()


def test_a_failed_build_goes_back_to_the_agent_with_its_log_and_never_replaces_the_site(amelia: SampleProject) -> None:
    amelia.send("change the homepage title to Before", "job-0", thread=OTHER_THREAD)
    agent = overtaken(amelia, times=0)
    deps = replace(amelia.deps(), agents={"builtin": agent}, builders={"plain": PickyBuilder()})
    settled = amelia.send("change the homepage title to Explode", "job-1", deps=deps)
    assert settled.outcome is JobOutcome.FAILED
    assert "could not be built" in settled.result.summary
    assert "line 3: Explode" in agent.notes[1]
    assert "<h1>Before</h1>" in amelia.page()
    assert "job-1" not in amelia.jobs_on_main()
    amelia.check()


class WritingAgent:
    """Appends these texts to the homepage, one in each run."""

    def __init__(self, *texts: str) -> None:
        self.notes: list[str] = []
        self._texts = list(texts)

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        self.notes.append(task.note)
        page = task.workspace / "index.html"
        page.write_text(page.read_text().replace("</body>", f"{self._texts.pop(0)}</body>"))
        return Changed("I added it.")


DEAD_LINK = '<a href="shop.html">Shop</a>'
SCRIPT = '<script src="https://cdn.example/x.js"></script>'


def test_a_dead_link_goes_back_to_the_agent_once_and_then_to_the_owner_in_words(amelia: SampleProject) -> None:
    amelia.send('change the homepage title to "First"', "job-0")
    agent = WritingAgent(DEAD_LINK, DEAD_LINK)
    deps = replace(amelia.deps(), agents={"builtin": agent})
    settled = amelia.send("link the shop", "job-1", deps=deps)
    assert settled.outcome is JobOutcome.SUCCEEDED
    assert "shop.html" in agent.notes[1]
    assert [(kind, detail) for kind, _, detail in settled.result.checks] == [("link", "shop.html")]
    assert settled.result.pages_changed == 1
    amelia.check()


def test_a_dead_link_that_the_agent_mends_is_never_shown(amelia: SampleProject) -> None:
    amelia.send('change the homepage title to "First"', "job-0")
    deps = replace(amelia.deps(), agents={"builtin": WritingAgent(DEAD_LINK, "<p>Shop soon</p>")})
    settled = amelia.send("link the shop", "job-1", deps=deps)
    assert settled.result.checks == ()
    assert "shop.html" not in amelia.page()


def test_a_new_script_of_a_foreign_host_is_left_out_until_the_operator_allows_it(amelia: SampleProject) -> None:
    amelia.send('change the homepage title to "First"', "job-0")
    deps = replace(amelia.deps(), agents={"builtin": WritingAgent(SCRIPT, SCRIPT)})
    settled = amelia.send("add a counter", "job-1", deps=deps)
    assert settled.outcome is JobOutcome.FAILED
    assert "cdn.example" in settled.result.summary
    assert "cdn.example" not in amelia.page()
    site = deps.project_of("amelia")
    assert site
    allowed = replace(
        amelia.deps(),
        agents={"builtin": WritingAgent(SCRIPT)},
        project_of=lambda _: replace(site, allowed_hosts=("cdn.example",)),
    )
    assert amelia.send("add a counter", "job-2", deps=allowed).outcome is JobOutcome.SUCCEEDED
    assert "cdn.example" in amelia.page()
    amelia.check()
