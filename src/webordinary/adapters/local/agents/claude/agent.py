"""ClaudeAgent: one job is one run of the program, in a cell, resumed by thread."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from webordinary.adapters.local.agents.claude.access import ModelAccess
from webordinary.adapters.local.agents.claude.endings import Ending, judge
from webordinary.adapters.local.agents.claude.invocation import Invocation
from webordinary.adapters.local.agents.footprint import footprint
from webordinary.adapters.local.agents.homes import AgentHome, AgentHomes, Memo
from webordinary.adapters.local.agents.luggage import pack
from webordinary.adapters.local.agents.outcome import result_of
from webordinary.adapters.local.agents.process import AgentProcess
from webordinary.model.claims import INTERRUPT_GRACE_SECONDS
from webordinary.model.errors import JobTimedOut, Permanent, WebOrdinaryError
from webordinary.model.hold import Hold
from webordinary.site.ports import Jail
from webordinary.site.reach import Network, Reach
from webordinary.site.task import AgentResult, AgentTask

NAME = "claude"
_UPSTREAM = "model"
MISSING = "the agent claude needs the extra package: pip install 'webordinary[claude]'"


@dataclass(frozen=True, slots=True)
class ClaudeSettings:
    """What the operator may choose."""

    model: str = ""
    shell: bool = False
    retries: int = 4
    grace_seconds: float = INTERRUPT_GRACE_SECONDS


class ClaudeAgent:
    """See the site room's Agent. `access` is asked before each run, as keys may change."""

    def __init__(
        self, jail: Jail, homes: AgentHomes, access: Callable[[], ModelAccess], settings: ClaudeSettings | None = None
    ) -> None:
        self._jail, self._homes, self._access = jail, homes, access
        self._settings = settings or ClaudeSettings()

    def run(self, task: AgentTask, hold: Hold) -> AgentResult:
        """Follow the instruction; an interrupted run keeps its session, so that it can go on."""
        cli = bundled_cli()
        hold.check()
        access = self._access()
        before = footprint(task.workspace)
        with self._homes.open(NAME, task, _is_transcript) as home:
            went_on = home.memo.interrupted
            ending, cost = self._run_in_cell(cli, access, home, task, hold)
            capped = None if ending.stopped else judge(ending, task.limits, cost)
            home.memo = Memo(NAME, ending.session, ending.total_cost_usd, ending.stopped)
        hold.check()
        if ending.stopped:
            raise JobTimedOut(f"the agent claude ran longer than {task.limits.seconds:.0f} s")
        if capped:
            return capped
        return result_of(
            ending.said, ending.words, differs=footprint(task.workspace) != before, went_on=went_on,
            session=ending.session, cost_usd=cost,
        )  # fmt: skip

    def _run_in_cell(
        self, cli: Path, access: ModelAccess, home: AgentHome, task: AgentTask, hold: Hold
    ) -> tuple[Ending, float]:
        """How it ended and what it cost; that is written down before anybody judges what it left behind."""
        from webordinary.adapters.local.agents.claude.talk import talk  # noqa: PLC0415  see there

        luggage = pack(task.attachments, home.folder / "attachments")
        settings = home.folder / "settings.json"
        chosen = self._settings
        invocation = Invocation(
            cli, home.files, home.folder / "attachments", settings, task.limits, chosen.model, home.memo.session,
            chosen.shell, chosen.retries,
        )  # fmt: skip
        reach = Reach(
            readable=(cli.parent, home.folder / "attachments", settings),
            writable=(home.files,),
            network=Network({_UPSTREAM: access.upstream}),
        )
        settings.touch(mode=0o600)
        with self._jail.cell(task.workspace, invocation.env(access.env), reach) as cell:
            # Not a variable: the environment is given before the address is known. Not a flag: others can read those.
            settings.write_text(json.dumps({"env": {access.address_variable: cell.url(_UPSTREAM)}}), encoding="utf-8")
            process = partial(AgentProcess.start, cell.argv(invocation.args()), cell.env, task.workspace)
            try:
                ending = talk(process, task, luggage, hold, self._settings.grace_seconds)
            except WebOrdinaryError:
                task.tell("ended before it said what it cost")
                raise
            cost = max(0.0, ending.total_cost_usd - home.memo.total_cost_usd)
            task.spent(cost)
            return ending, cost


def bundled_cli() -> Path:
    """The program that comes with the SDK; raises Permanent when the extra is not installed."""
    found = find_spec("claude_agent_sdk")
    if found is None or not found.origin:
        raise Permanent(MISSING)
    cli = Path(found.origin).parent / "_bundled" / "claude"
    if not cli.is_file():
        raise Permanent(f"{cli} is missing: {MISSING}")
    return cli


def _is_transcript(path: Path) -> bool:
    return path.parts[0] == "projects" and path.suffix == ".jsonl"
