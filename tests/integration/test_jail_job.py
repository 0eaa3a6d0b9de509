"""A hijacked agent's result on its way to the site: what is planted never runs, what is odd is never published."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.attacks.targets import GIT_ATTACKS, Attack, AttackTargets, house, working_jail
from tests.harness.sample_project import SampleProject
from tests.integration.test_site_job import TITLE
from tests.unit.jobs.fixtures import SCOTT
from webordinary.adapters.agents.command import CommandAgent
from webordinary.adapters.dot_git import is_dot_git
from webordinary.adapters.sandbox.sandbox import SandboxedPrograms
from webordinary.jobs.ports import AgentResult, AgentTask, ProgramRunner
from webordinary.jobs.run import JobDeps
from webordinary.jobs.sandbox_policy import SandboxPolicy
from webordinary.jobs.site_files import Stage
from webordinary.jobs.source import BuildFailed, Built, SourceTree
from webordinary.model.claims import CancelToken
from webordinary.model.errors import Permanent
from webordinary.model.jobs import JobOutcome, Settlement

pytestmark = pytest.mark.needs("git", "bwrap")


class Victim:
    """The sample site with an agent that turns on it."""

    def __init__(self, folder: Path, defended: AttackTargets) -> None:
        self.amelia, self.defended = SampleProject(folder), defended
        self.programs = SandboxedPrograms(working_jail(folder / "scratch"))
        self.deps = self.amelia.deps()  # one for all mails: the workspace goes on
        self.tree = folder / "w-1" / SCOTT.project_id / SCOTT.user_id / "tree"
        self._mails = 0

    def mail_to_agent(self, attack: Attack) -> Settlement:
        agent = _Armed(CommandAgent(self.defended.argv(attack), self.programs), self.defended)
        self.amelia.project = replace(self.amelia.project, agent="command")
        return self.mail("please", replace(self.deps, agents={"command": agent}))

    def mail_to_builtin(self, text: str = TITLE) -> Settlement:
        self.amelia.project = replace(self.amelia.project, agent="builtin")
        return self.mail(text, self.deps)

    def mail(self, text: str, deps: JobDeps) -> Settlement:
        self._mails += 1
        return self.amelia.send(text, f"job-{self._mails}", deps=deps)

    def shown(self) -> set[str]:
        current = self.amelia.releases.current("amelia", Stage.EDIT)
        return {path.name for path in current.rglob("*")} if current else set()


class _Armed:
    """An agent in whose workspace the attacking program lies."""

    def __init__(self, agent: CommandAgent, defended: AttackTargets) -> None:
        self._agent, self._defended = agent, defended

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        self._defended.arm(task.workspace)
        return self._agent.run(task, token)


class _Build:
    """A build by an outside program that fills the output folder with what it likes."""

    def __init__(self, programs: ProgramRunner, script: str, armed_by: AttackTargets | None = None) -> None:
        self._programs, self._script, self._armed_by = programs, script, armed_by

    def fits(self, tree: SourceTree) -> bool:
        return True

    def build(self, tree: SourceTree, into: Path, previous: Path | None, token: CancelToken) -> Built | BuildFailed:
        if self._armed_by is not None:
            self._armed_by.arm(tree.path)
        words = ["sh", "-c", self._script, "sh", str(into)]
        code, _, err = self._programs.run(words, tree.path, b"", {}, 60, token, SandboxPolicy(writable=(into,)))
        return Built(1, "hostile") if code == 0 else BuildFailed("It did not build.", err.decode())


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Victim]:
    with house() as defended:
        yield Victim(tmp_path, defended)


@pytest.mark.parametrize("attack", [*GIT_ATTACKS, Attack("agent_settings")], ids=str)
def test_what_an_agent_plants_in_the_repository_is_never_run(attack: Attack, victim: Victim) -> None:
    assert victim.mail_to_agent(attack).outcome is JobOutcome.SUCCEEDED
    assert {"planted.html", "page.html"} & victim.shown()
    assert not [path for path in victim.tree.rglob("*") if is_dot_git(path.name)], "git itself would never remove it"
    assert victim.mail_to_builtin().outcome is JobOutcome.SUCCEEDED  # with the planted files checked out
    assert victim.mail_to_builtin("change the homepage title to Summer Sale").outcome is JobOutcome.SUCCEEDED
    assert not victim.defended.canary.exists()
    victim.amelia.check()


@pytest.mark.parametrize("attack", GIT_ATTACKS, ids=str)
def test_what_a_build_plants_in_the_repository_is_never_run(attack: Attack, victim: Victim) -> None:
    words = shlex.join(victim.defended.argv(attack))
    build = _Build(victim.programs, f'{words} && cp index.html "$1"', victim.defended)
    assert victim.mail(TITLE, replace(victim.deps, builders={"hostile": build})).outcome is JobOutcome.SUCCEEDED
    assert not [path for path in victim.tree.rglob("*") if is_dot_git(path.name)]
    assert victim.mail_to_builtin("change the homepage title to Summer Sale").outcome is JobOutcome.SUCCEEDED
    assert not victim.defended.canary.exists()
    victim.amelia.check()


def test_a_repository_planted_below_loses_what_makes_it_one_and_is_never_run(victim: Victim) -> None:
    script = "git init -q below && cd below && git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x && "
    script += f"git config core.fsmonitor 'touch {victim.defended.canary}' && echo Below > page.html"
    agent = CommandAgent(["sh", "-c", script], victim.programs)
    victim.amelia.project = replace(victim.amelia.project, agent="command")
    settled = victim.mail("please", replace(victim.deps, agents={"command": agent}))
    assert settled.outcome is JobOutcome.SUCCEEDED
    assert settled.result.changed_files == ("below/page.html",)
    assert victim.mail_to_builtin().outcome is JobOutcome.SUCCEEDED
    assert not victim.defended.canary.exists()


def test_a_link_to_a_file_of_the_host_is_refused_and_the_site_stays(victim: Victim) -> None:
    victim.mail_to_builtin()
    settled = victim.mail_to_agent(Attack("link_in_the_result"))
    assert settled.outcome is JobOutcome.FAILED
    assert "passwd.html is a link" in settled.result.summary
    assert "Spring Sale" in victim.amelia.page()
    assert "passwd.html" not in victim.shown()


@pytest.mark.parametrize("name", ["special_files", "deep_folders", "disk_filling"])
def test_after_a_refused_result_the_next_mail_finds_a_clean_workspace(name: str, victim: Victim) -> None:
    with pytest.raises(Permanent, match="nothing was changed"):
        victim.mail_to_agent(Attack(name))
    assert victim.mail_to_builtin().outcome is JobOutcome.SUCCEEDED
    assert "Spring Sale" in victim.amelia.page()
    assert not (victim.tree / "program.py").exists()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ('ln -s /etc/passwd "$1/index.html"', "neither a file nor a folder"),
        ('mkdir "$1/a"; ln -s ../../../../.. "$1/a/b"', "neither a file nor a folder"),
        ('mkfifo "$1/index.html"', "neither a file nor a folder"),
        ('head -c 50000000 /dev/zero > "$1/a"; head -c 30000000 /dev/zero > "$1/b"', "MB in files"),
    ],
)
def test_an_odd_build_output_is_never_published(script: str, words: str, victim: Victim) -> None:
    victim.mail_to_builtin()
    before = victim.amelia.releases.current("amelia", Stage.EDIT)
    hostile = replace(victim.deps, builders={"hostile": _Build(victim.programs, script)})
    with pytest.raises(Permanent, match=words):
        victim.mail("change the homepage title to Summer Sale", hostile)
    assert victim.amelia.releases.current("amelia", Stage.EDIT) == before


def test_a_build_sees_neither_its_repository_nor_the_releases(victim: Victim) -> None:
    script = f'ls {victim.tree.parent} > "$1/index.html"; ls {victim.amelia.folder} >> "$1/index.html"'
    spying = replace(victim.deps, builders={"hostile": _Build(victim.programs, script)})
    victim.mail(TITLE, spying)
    seen = set(victim.amelia.page().split())
    assert seen == {"tree", "w-1", "sites"}  # the folders on the way to what was given, and nothing in them


def test_a_bomb_of_unreadable_folders_does_not_outlive_its_job(victim: Victim) -> None:
    agent = CommandAgent(["sh", "-c", "mkdir -p a/b && touch a/b/c && chmod 0 a/b a"], victim.programs)
    victim.amelia.project = replace(victim.amelia.project, agent="command")
    assert victim.mail("please", replace(victim.deps, agents={"command": agent})).outcome is JobOutcome.SUCCEEDED
    assert shutil.disk_usage(victim.tree).free > 0
    assert os.access(victim.tree / "a" / "b", os.R_OK)
