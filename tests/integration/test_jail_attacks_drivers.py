"""A hijacked agent in the jail: every attack by name, through Claude Code's own shell and as an ACP agent."""

from __future__ import annotations

import fcntl
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.attacks.targets import ATTACKS, SECRET, SMALL, Attack, AttackedCheckout, AttackTargets, house, working_jail
from tests.extras import needs_extra
from tests.fakes.cancel_token import FakeCancelToken
from tests.integration.claude_site import KEY, ends
from webordinary.adapters.agents.acp_agent import AcpAgent, AcpSettings
from webordinary.adapters.agents.claude_access import model_access
from webordinary.adapters.agents.claude_agent import ClaudeAgent, ClaudeSettings
from webordinary.adapters.agents.scripted_model import ScriptedApi, Use
from webordinary.adapters.agents.session_store import SessionStore
from webordinary.adapters.files.stores import FolderSessionFiles
from webordinary.adapters.sandbox.bubblewrap import MEGABYTE
from webordinary.jobs.ports import AgentLimits, AgentTask
from webordinary.model.errors import Permanent, Transient

needs_extra("acp", "acp")
needs_extra("claude_agent_sdk", "claude")
pytestmark = pytest.mark.needs("bwrap", "git")
ROOMY = replace(SMALL, processes=200, memory_bytes=1_000 * MEGABYTE, disk_bytes=90 * MEGABYTE)
"""Claude Code itself needs some of it."""
ENDED = ("memory", "disk_filling", "long_paths", "many_files")
"""Those that use up what all share end the whole run; output without end is the shell tool's to bound."""


@pytest.fixture
def defended(monkeypatch: pytest.MonkeyPatch) -> Iterator[AttackTargets]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    with house() as made:
        yield made


@pytest.fixture
def checkout(tmp_path: Path) -> AttackedCheckout:
    return AttackedCheckout(tmp_path)


@pytest.fixture
def task(checkout: AttackedCheckout, defended: AttackTargets) -> AgentTask:
    defended.arm(checkout.path)
    limits = AgentLimits(seconds=150)
    return AgentTask("please", checkout.path, limits=limits, project_id="amelia", thread_id="a" * 16)


def check(attack: Attack, defended: AttackTargets, checkout: AttackedCheckout) -> None:
    defended.check(attack, checkout.path)
    if attack.name == "surviving_daemon":
        with (checkout.path / "alive").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert not [name for name in checkout.commit() if ".git/" in name.lower() or "~" in name]
    assert not defended.canary.exists(), "our own git ran what the agent planted"


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_an_attack_through_an_acp_agent_fails(
    attack: Attack, defended: AttackTargets, checkout: AttackedCheckout, task: AgentTask, tmp_path: Path
) -> None:
    homes = SessionStore(FolderSessionFiles(tmp_path / "kept"), tmp_path / "agents")
    settings = AcpSettings(defended.argv(attack), sandboxed=True)
    agent = AcpAgent(working_jail(tmp_path / "scratch"), homes, settings)
    with pytest.raises((Permanent, Transient)):  # it speaks no protocol: there is no result to take
        agent.run(task, FakeCancelToken())
    check(attack, defended, checkout)


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_an_attack_through_claude_code_fails(
    attack: Attack, defended: AttackTargets, checkout: AttackedCheckout, task: AgentTask, tmp_path: Path
) -> None:
    homes = SessionStore(FolderSessionFiles(tmp_path / "kept"), tmp_path / "agents")
    command = Use("Bash", {"command": shlex.join(defended.argv(attack)), "timeout": 60_000})
    with ScriptedApi([command, ends("changed", "Hacked.")]) as api:
        access = model_access({"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": api.url})
        agent = ClaudeAgent(
            working_jail(tmp_path / "scratch", ROOMY), homes, lambda: access, ClaudeSettings(shell=True, retries=1)
        )
        try:
            agent.run(task, FakeCancelToken())
        except (Permanent, Transient):
            assert attack.ended or attack.refused or attack.name == "fork_bomb"
        else:
            assert attack.name not in ENDED
            assert not attack.refused
    check(attack, defended, checkout)
