"""Sources in git: mirrors, workspaces, fenced pushes; the git program does the work."""

from webordinary.adapters.local.git.cache import WorkspaceCache
from webordinary.adapters.local.git.command import GitFailed
from webordinary.adapters.local.git.credentials import Credentials
from webordinary.adapters.local.git.history import GitHistory
from webordinary.adapters.local.git.repository import GitRepository

__all__ = ["Credentials", "GitFailed", "GitHistory", "GitRepository", "WorkspaceCache"]
