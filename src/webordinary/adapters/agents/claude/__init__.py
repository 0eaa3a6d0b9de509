"""Claude Code as an agent, through `claude-agent-sdk`; that library is imported when the first job needs it."""

from webordinary.adapters.agents.claude.access import ModelAccess, model_access
from webordinary.adapters.agents.claude.agent import ClaudeAgent

__all__ = ["ClaudeAgent", "ModelAccess", "model_access"]
