"""The one tool of ours that Claude Code gets: a customer's file is put onto the site as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from claude_agent_sdk import create_sdk_mcp_server, tool
from claude_agent_sdk.types import McpSdkServerConfig

from webordinary.adapters.local.agents import confined
from webordinary.adapters.local.agents.claude.invocation import SERVER
from webordinary.adapters.local.agents.luggage import Packed

_ABOUT = "Put a file that came with the owner's mail onto the site, unchanged. Makes folders as needed."
_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "name of the file, as listed with the mail"},
        "path": {"type": "string", "description": "where it goes, relative to the site, such as images/cup.jpg"},
    },
    "required": ["name", "path"],
}


def site_tools(workspace: Path, luggage: tuple[Packed, ...]) -> McpSdkServerConfig:
    """An MCP server inside this process; it runs outside of the jail, so it follows no link."""
    files = {file.name: file for file in luggage}

    async def add_file(args: dict[str, Any]) -> dict[str, Any]:
        file = files.get(str(args.get("name", "")))
        if file is None:
            return _answer(f"There is no such file; the mail brought: {', '.join(files) or 'none'}.", wrong=True)
        try:
            confined.write(workspace, str(args.get("path", "")), file.path.read_bytes())
        except (OSError, ValueError) as problem:
            return _answer(f"Not possible: {problem}", wrong=True)
        return _answer(f"{file.name} is now at {args['path']}.")

    return create_sdk_mcp_server(SERVER, tools=[tool("add_file", _ABOUT, _SCHEMA)(add_file)])


def _answer(text: str, wrong: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **({"is_error": True} if wrong else {})}
