"""AcpAgent: one job is one prompt to a fresh process of the agent, in a cell, in the thread's session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from webordinary.adapters.local.agents.acp.parts import AcpEnding, Surroundings
from webordinary.adapters.local.agents.acp.rules import read_last_message
from webordinary.adapters.local.agents.footprint import footprint
from webordinary.adapters.local.agents.homes import AgentHome, AgentHomes, Memo
from webordinary.adapters.local.agents.luggage import pack
from webordinary.adapters.local.agents.outcome import result_of
from webordinary.adapters.local.agents.process import AgentProcess
from webordinary.adapters.local.agents.telling import Narrator
from webordinary.model.claims import INTERRUPT_GRACE_SECONDS
from webordinary.model.errors import JobTimedOut, Permanent
from webordinary.model.hold import Hold
from webordinary.site.ports import Jail
from webordinary.site.reach import Network, Reach
from webordinary.site.task import AgentResult, AgentTask, NotUnderstood

NAME = "acp"
MISSING = "the agent acp needs the extra package: pip install 'webordinary[acp]'"
_TALK_BYTES = 64_000_000
_NOT_KEPT = frozenset({".cache", ".npm", "node_modules", "Cache"})


@dataclass(frozen=True, slots=True)
class AcpSettings:
    """What the operator chose: the program, what it may know and whom it may call."""

    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    network: Network = field(default_factory=Network)
    jailed: bool = True
    grace_seconds: float = INTERRUPT_GRACE_SECONDS


class AcpAgent:
    """See the site room's Agent."""

    def __init__(self, jail: Jail, homes: AgentHomes, settings: AcpSettings) -> None:
        if not settings.command:
            raise Permanent("the agent acp needs a program: name it in agent_command")
        self._jail, self._homes, self._settings = jail, homes, settings

    def run(self, task: AgentTask, hold: Hold) -> AgentResult:
        """Follow the instruction; an interrupted run keeps its session, so that it can go on."""
        if find_spec("acp") is None:
            raise Permanent(MISSING)
        hold.check()
        before = footprint(task.workspace)
        with self._homes.open(NAME, task, _worth_keeping) as home:
            went_on = home.memo.interrupted
            ending = self._run_in_cell(home, task, hold)
            home.memo = Memo(NAME, ending.session, ending.total_cost_usd, ending.stopped)
        hold.check()
        if ending.stopped:
            raise JobTimedOut(f"the agent {self._settings.command[0]} ran longer than {task.limits.seconds:.0f} s")
        if ending.capped:
            words = f"This took {ending.capped}, so I stopped. Nothing was changed. Please ask for it in smaller steps."
            return NotUnderstood(words, ending.session, ending.cost_usd)
        said, words = read_last_message(ending.last_message)
        if ending.reason == "refusal":
            return NotUnderstood(words or "I cannot help with this.", ending.session, ending.cost_usd)
        differs = footprint(task.workspace) != before
        return result_of(
            said, words, differs=differs, went_on=went_on, session=ending.session, cost_usd=ending.cost_usd
        )

    def _run_in_cell(self, home: AgentHome, task: AgentTask, hold: Hold) -> AcpEnding:
        from webordinary.adapters.local.agents.acp.talk import talk  # noqa: PLC0415  imports a heavy library

        chosen = self._settings
        luggage = pack(task.attachments, home.folder / "attachments")
        narrator = Narrator(task.tell, task.workspace)
        around = Surroundings(task.workspace, home.folder / "attachments", chosen.jailed, narrator, task.limits)
        env = {**chosen.env, "HOME": str(home.files)}
        reach = Reach((home.folder / "attachments",), (home.files,), chosen.network)
        with self._jail.cell(task.workspace, env, reach) as cell:
            start = partial(
                AgentProcess.start, cell.argv(chosen.command), cell.env, task.workspace, talk_bytes=_TALK_BYTES
            )
            return talk(start, task, home.memo, luggage, around, hold, chosen.grace_seconds)


def _worth_keeping(path: Path) -> bool:
    return not _NOT_KEPT & set(path.parts)
