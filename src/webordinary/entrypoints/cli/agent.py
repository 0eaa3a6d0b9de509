"""`webordinary agent test`: can the agent make a small change here? With --scripted no key is needed."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from webordinary.compose.sandbox import sandbox_of
from webordinary.compose.worker import agents_of, limits_of, scripted_environment
from webordinary.config import Config
from webordinary.entrypoints.cli.options import Commands, add_command, add_group, add_settings, load_config
from webordinary.entrypoints.cli.output import CommandFailed, Exit, clean, print_json
from webordinary.jobs.ports import Agent, AgentLimits, AgentTask, Answered, Asked, Changed, NotUnderstood
from webordinary.model.claims import OperatorToken

PAGE = "<!doctype html>\n<title>Trial</title>\n<main>\n<h1>Before</h1>\n</main>\n"
WISH = "Set the heading of the homepage to “It works”."
WANTED = "<h1>It works</h1>"


@dataclass(frozen=True, slots=True)
class AgentTestResult:
    """How it went; `result` is changed, answered, asked or not understood."""

    agent: str
    ok: bool
    result: str
    words: str
    cost_usd: float
    seconds: float


def run_trial(
    name: str, agent: Agent, site: Path, limits: AgentLimits, tell: Callable[[str], None], seconds: Callable[[], float]
) -> AgentTestResult:
    """Run the agent on the page; its own failures come through with their words."""
    result = agent.run(
        AgentTask(WISH, site, limits=limits, tell=tell), OperatorToken("agent-test", job_id="agent-test")
    )
    ok = isinstance(result, Changed) and WANTED in (site / "index.html").read_text(encoding="utf-8")
    match result:
        case Changed(summary=words):
            kind = "changed"
        case Answered(text=words):
            kind = "answered"
        case Asked(question=words):
            kind = "asked"
        case NotUnderstood(text=words):
            kind = "not understood"
    return AgentTestResult(result.agent or name, ok, kind, words, result.cost_usd, round(seconds(), 2))


SETTINGS = (
    "agent", "agent_command", "agent_environment", "agent_hosts", "agent_key_command", "agent_model", "agent_seconds",
    "agent_turns", "agent_cost_usd", "allow_unjailed_agents", "jail_readable",
)  # fmt: skip
_READY_TOO = "Mails to sites that have this agent will be done by it."
_READY = {
    "builtin": "It needs no key and does simple wishes only, such as a title or a photo; "
    "`webordinary doctor` says what an AI agent still needs here."
}
_ONLY_A_SCRIPT = "Its program and its sandbox are in order here; for real mails it needs a key, see docs/agents.md."
_DID = {
    "changed": "says that it is done",
    "answered": "only answered",
    "asked": "asked a question back",
    "not understood": "did not understand",
}
_TODO = "Its program runs, so look at what it was told: try again, then another --agent-model or --agent."


def add_to(commands: Commands) -> None:
    parts = add_group(commands, "agent", "try an agent out", "Who edits the sites.")
    test = add_command(parts, "test", run, "let an agent change a page in a scratch folder, and look at the result")
    test.add_argument("--scripted", action="store_true", help="claude with a scripted model: no key, no cost")
    add_settings(test, SETTINGS)


def run(args: argparse.Namespace) -> int:
    """Try it, say how it went."""
    config = load_config(args)
    name = "claude" if args.scripted else config.agent
    if args.scripted and args.agent not in (None, "claude"):
        raise CommandFailed("only the agent claude has a scripted model", "leave out --agent or --scripted", Exit.USAGE)
    with tempfile.TemporaryDirectory(prefix="webordinary-agent-") as folder, ExitStack() as stack:
        page = Path(folder, "site", "index.html")
        env: Mapping[str, str] = os.environ
        if args.scripted:
            env = stack.enter_context(scripted_environment(env, page, "Before", "It works"))
        trial = _try(config, name, Path(folder), env, quiet=args.json)
    if args.json:
        print_json(trial)
    else:
        print(clean(_verdict_text(trial, scripted=args.scripted)))
    return Exit.OK if trial.ok else Exit.FAILED


def _try(config: Config, name: str, folder: Path, env: Mapping[str, str], *, quiet: bool) -> AgentTestResult:
    home, site = folder / "home", folder / "site"
    home.mkdir()
    site.mkdir()
    (site / "index.html").write_text(PAGE, encoding="utf-8")
    sandbox = sandbox_of(config, "agent-test", home)
    agent = agents_of(config, sandbox, home, env).get(name)
    if agent is None:
        raise CommandFailed(f"the agent {name} has no program", "name it with --agent-command", Exit.USAGE)
    began = time.monotonic()
    if not quiet:
        print(f"asking the agent {name}: {WISH}", file=sys.stderr)
    tell = (lambda words: None) if quiet else lambda words: print(f"  {clean(words)}", file=sys.stderr)
    return run_trial(name, agent, site, limits_of(config), tell, lambda: time.monotonic() - began)


def _verdict_text(trial: AgentTestResult, *, scripted: bool) -> str:
    """The verdict, what to conclude from it, and what the agent said."""
    spent = f", for ${trial.cost_usd:.4f}" if trial.cost_usd and not scripted else ""
    took = f"in {trial.seconds:.1f} s{spent}"
    if not trial.ok:
        verdict = f"the page is not as it was asked for: the agent {trial.agent} ran, and {_DID[trial.result]}, {took}"
        return f"{verdict}. {_TODO} It said: {trial.words}"
    verdict = f"it works: the agent {trial.agent} changed the page as asked, {took}"
    return f"{verdict}. {_ONLY_A_SCRIPT if scripted else _READY.get(trial.agent, _READY_TOO)} It said: {trial.words}"
