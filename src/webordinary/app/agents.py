"""The agents of one worker, made from the settings; a part of the composition root."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from webordinary.adapters.local.agents.acp.agent import AcpAgent, AcpSettings
from webordinary.adapters.local.agents.claude.access import model_access, why_no_access
from webordinary.adapters.local.agents.claude.agent import ClaudeAgent, ClaudeSettings
from webordinary.adapters.local.agents.claude.aws import AwsCredentials
from webordinary.adapters.local.agents.claude.key_command import KeyCommand
from webordinary.adapters.local.agents.homes import AgentHomes
from webordinary.adapters.local.agents.session_files import SESSIONS, FolderSessionFiles
from webordinary.adapters.local.jail.cells import BubblewrapJail
from webordinary.adapters.local.jail.programs import JailedPrograms
from webordinary.config import Config
from webordinary.model.hold import Hold
from webordinary.site.agents.builtin import BuiltinAgent
from webordinary.site.agents.command import CommandAgent
from webordinary.site.ports import Agent, Jail, SessionFiles
from webordinary.site.reach import Network
from webordinary.site.task import AgentLimits, AgentResult, AgentTask


def agents_of(
    config: Config, jail: Jail, home: Path, env: Mapping[str, str], sessions: SessionFiles | None = None
) -> dict[str, Agent]:
    """By the names that projects use. `env` is the operator's environment; agents see of it what is named.

    What they keep between the mails of a thread lies in `sessions`, else in the data folder.
    """
    homes = AgentHomes(sessions or FolderSessionFiles(config.data / SESSIONS), home / ".agents")
    jailed = isinstance(jail, BubblewrapJail)
    key = KeyCommand(config.agent_key_command, env) if config.agent_key_command else None
    aws = AwsCredentials()
    claude = ClaudeAgent(
        jail,
        homes,
        lambda: model_access(env, key, aws),
        ClaudeSettings(config.agent_model, shell=jailed, grace_seconds=config.interrupt_grace_seconds),
    )
    builtin = BuiltinAgent()
    agents: dict[str, Agent] = {
        "builtin": builtin,
        "claude": claude,
        "auto": AutoAgent(claude, builtin, lambda: _claude_is_ready(config, jail, env, aws)),
    }
    if config.agent_command:
        given = {name: env[name] for name in config.agent_environment if name in env}
        network = Network(hosts=frozenset(config.agent_hosts))
        grace = config.interrupt_grace_seconds
        agents["command"] = CommandAgent(config.agent_command, JailedPrograms(jail, grace), given, network)
        agents["acp"] = AcpAgent(jail, homes, AcpSettings(config.agent_command, given, network, jailed, grace))
    return agents


def limits_of(config: Config) -> AgentLimits:
    """What one mail may use up."""
    return AgentLimits(config.agent_seconds, turns=config.agent_turns, cost_usd=config.agent_cost_usd)


class AutoAgent:
    """Claude Code once it can work, the built-in agent until then."""

    def __init__(self, claude: Agent, builtin: Agent, ready: Callable[[], bool]) -> None:
        self._claude, self._builtin, self._ready = claude, builtin, ready

    def run(self, task: AgentTask, hold: Hold) -> AgentResult:
        """Decided anew for each job; the result says who it was."""
        name, agent = ("claude", self._claude) if self._ready() else ("builtin", self._builtin)
        return replace(agent.run(task, hold), agent=name)


def _claude_is_ready(config: Config, jail: Jail, env: Mapping[str, str], aws: AwsCredentials) -> bool:
    if find_spec("claude_agent_sdk") is None or not (config.agent_key_command or not why_no_access(env, aws)):
        return False
    return not (isinstance(jail, BubblewrapJail) and jail.why_not())
