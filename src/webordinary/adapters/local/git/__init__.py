"""Sources in git: mirrors, workspaces, fenced pushes; the git program does the work."""

from webordinary.adapters.local.git.command import GitFailed
from webordinary.adapters.local.git.history import GitHistory
from webordinary.adapters.local.git.repository import GitRepository

__all__ = ["GitFailed", "GitHistory", "GitRepository"]
