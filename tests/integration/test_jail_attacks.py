"""A hijacked agent in the jail: every attack by name, through the command agent."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.targets import ATTACKS, SECRET, Attack, AttackedCheckout, AttackTargets, house, working_jail
from tests.fakes.cancel_token import FakeCancelToken
from webordinary.adapters.agents.command import CommandAgent
from webordinary.adapters.sandbox.sandbox import BubblewrapSandbox, SandboxedPrograms
from webordinary.jobs.ports import AgentLimits, AgentTask, AttachedFile
from webordinary.model.errors import Permanent
from webordinary.model.mail import Attachment, AttachmentKind

pytestmark = pytest.mark.needs("bwrap", "git")


@pytest.fixture
def defended() -> Iterator[AttackTargets]:
    with house() as made:
        yield made


@pytest.fixture
def jail(tmp_path: Path) -> BubblewrapSandbox:
    return working_jail(tmp_path / "scratch")


@pytest.fixture
def checkout(tmp_path: Path) -> AttackedCheckout:
    return AttackedCheckout(tmp_path)


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_an_attack_through_the_command_agent_fails(
    attack: Attack,
    defended: AttackTargets,
    jail: BubblewrapSandbox,
    checkout: AttackedCheckout,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workspace = checkout.path
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    defended.arm(workspace)
    photo = Attachment("photo.jpg", "image/jpeg", AttachmentKind.IMAGE, 7, "0" * 64)
    task = AgentTask(
        "please", workspace, (AttachedFile(photo, defended.folder / "attachment"),), limits=AgentLimits(seconds=150)
    )
    agent = CommandAgent(defended.argv(attack), SandboxedPrograms(jail))
    if attack.ended or attack.refused:
        with pytest.raises(Permanent):
            agent.run(task, FakeCancelToken())
    else:
        try:
            agent.run(task, FakeCancelToken())
        except Permanent:
            assert attack.name == "fork_bomb"  # root's processes are counted by us, others' by the kernel
    defended.check(attack, workspace)
    if attack.name == "surviving_daemon":
        with (workspace / "alive").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert not [name for name in checkout.commit() if ".git/" in name.lower() or "~" in name]
    assert not defended.canary.exists(), "our own git ran what the agent planted"
