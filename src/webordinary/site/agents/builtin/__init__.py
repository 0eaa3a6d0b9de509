"""The built-in agent: exact, simple edits of HTML pages, free of AI, and all or nothing."""

from webordinary.site.agents.builtin.agent import BuiltinAgent

__all__ = ["BuiltinAgent"]
