"""The built-in agent: exact, simple edits of HTML, Markdown and Astro pages and of colours; all or nothing."""

from webordinary.adapters.agents.builtin.agent import BuiltinAgent

__all__ = ["BuiltinAgent"]
