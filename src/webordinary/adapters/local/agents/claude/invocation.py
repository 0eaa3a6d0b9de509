"""How the command-line program of Claude Code is started: what it may do, and what it must not pick up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from webordinary.adapters.local.agents.claude.prompt import OUTCOME_SCHEMA, SYSTEM
from webordinary.site.task import AgentLimits

FILE_TOOLS = ("Read", "Edit", "Write", "Glob", "Grep")
SHELL_TOOLS = ("Bash",)
SERVER = "site"
_SERVERS = {SERVER: {"type": "sdk", "name": SERVER}}
_QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
    "CLAUDE_AGENT_SDK_CLIENT_APP": "webordinary",
}


@dataclass(frozen=True, slots=True)
class Invocation:
    """One start of the program. `shell` lets it run commands: only where a jail holds them."""

    cli: Path
    config: Path
    attachments: Path
    settings: Path
    limits: AgentLimits
    model: str = ""
    session: str = ""
    shell: bool = False
    retries: int = 4

    def args(self) -> list[str]:
        """The program and its flags; nothing that the site's repository says about the agent is loaded."""
        tools = (*FILE_TOOLS, *(SHELL_TOOLS if self.shell else ()))
        allowed = (f"Read(/{self.attachments}/**)", f"mcp__{SERVER}__add_file", *(SHELL_TOOLS if self.shell else ()))
        denied = ("Read(/.git/**)", "Edit(/.git/**)", "Edit(/.claude/**)", "Edit(/.mcp.json)")
        return [
            str(self.cli), "--output-format", "stream-json", "--input-format", "stream-json", "--verbose",
            "--append-system-prompt", SYSTEM,
            "--tools", ",".join(tools), "--allowedTools", ",".join(allowed), "--disallowedTools", ",".join(denied),
            "--permission-mode", "acceptEdits",
            "--setting-sources=", "--settings", str(self.settings),
            "--strict-mcp-config", "--mcp-config", json.dumps({"mcpServers": _SERVERS}),
            "--json-schema", json.dumps(OUTCOME_SCHEMA),
            "--max-turns", str(self.limits.turns), "--max-budget-usd", str(self.limits.left_usd),
            *(["--model", self.model] if self.model else []),
            *([f"--resume={self.session}"] if self.session else []),
        ]  # fmt: skip

    def env(self, access: Mapping[str, str]) -> dict[str, str]:
        """What it sees of the world; no key is in it."""
        return {
            **_QUIET,
            **access,
            "CLAUDE_CONFIG_DIR": str(self.config),
            "CLAUDE_CODE_MAX_RETRIES": str(self.retries),
        }
