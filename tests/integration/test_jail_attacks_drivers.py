"""A hijacked agent in the jail: every attack by name, through Claude Code's own shell and as an ACP agent."""

from __future__ import annotations

import fcntl
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.attacks.world import ATTACKS, SECRET, SMALL, Attack, House, house, working_jail
from tests.extras import needs_extra
from tests.integration.claude_world import KEY, ends
from tests.unit.site.world import TestHold
from webordinary.adapters.local.agents.acp.agent import AcpAgent, AcpSettings
from webordinary.adapters.local.agents.claude.access import model_access
from webordinary.adapters.local.agents.claude.agent import ClaudeAgent, ClaudeSettings
from webordinary.adapters.local.agents.homes import AgentHomes
from webordinary.adapters.local.agents.session_files import FolderSessionFiles
from webordinary.adapters.local.jail.limits import MEGABYTE
from webordinary.model.errors import Permanent, Transient
from webordinary.site.task import AgentLimits, AgentTask
from webordinary.testing.scripted_api import ScriptedApi, Use

needs_extra("acp", "acp")
needs_extra("claude_agent_sdk", "claude")
pytestmark = pytest.mark.needs("bwrap")
ROOMY = replace(SMALL, processes=200, memory_bytes=1_000 * MEGABYTE, disk_bytes=90 * MEGABYTE)
"""Claude Code itself needs some of it."""
ENDED = ("memory", "disk_filling", "many_files")
"""Those that use up what all share end the whole run; output without end is the shell tool's to bound."""


@pytest.fixture
def defended(monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    with house() as made:
        yield made


@pytest.fixture
def task(tmp_path: Path, defended: House) -> AgentTask:
    workspace = tmp_path / "tree"
    workspace.mkdir()
    defended.arm(workspace)
    return AgentTask("please", workspace, limits=AgentLimits(seconds=150), project_id="amelia", thread_id="a" * 16)


def check(attack: Attack, defended: House, workspace: Path) -> None:
    defended.check(attack, workspace)
    if attack.name == "surviving_daemon":
        with (workspace / "alive").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_an_attack_through_an_acp_agent_fails(attack: Attack, defended: House, task: AgentTask, tmp_path: Path) -> None:
    homes = AgentHomes(FolderSessionFiles(tmp_path / "kept"), tmp_path / "agents")
    settings = AcpSettings(defended.argv(attack), jailed=True)
    agent = AcpAgent(working_jail(tmp_path / "scratch"), homes, settings)
    with pytest.raises((Permanent, Transient)):  # it speaks no protocol: there is no result to take
        agent.run(task, TestHold())
    check(attack, defended, task.workspace)


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_an_attack_through_claude_code_fails(attack: Attack, defended: House, task: AgentTask, tmp_path: Path) -> None:
    homes = AgentHomes(FolderSessionFiles(tmp_path / "kept"), tmp_path / "agents")
    command = Use("Bash", {"command": shlex.join(defended.argv(attack)), "timeout": 60_000})
    with ScriptedApi([command, ends("changed", "Hacked.")]) as api:
        access = model_access({"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": api.url})
        agent = ClaudeAgent(
            working_jail(tmp_path / "scratch", ROOMY), homes, lambda: access, ClaudeSettings(shell=True, retries=1)
        )
        try:
            agent.run(task, TestHold())
        except (Permanent, Transient):
            assert attack.ended or attack.refused or attack.name == "fork_bomb"
        else:
            assert attack.name not in ENDED
            assert not attack.refused
    check(attack, defended, task.workspace)
