"""Sources in git: mirrors, workspaces, fenced pushes; the git program does the work."""

from webordinary.adapters.git.command import GitFailed
from webordinary.adapters.git.credentials import Credentials
from webordinary.adapters.git.origins import GitHistory
from webordinary.adapters.git.repository import GitRepository
from webordinary.adapters.git.workspaces import WorkspaceCache

__all__ = ["Credentials", "GitFailed", "GitHistory", "GitRepository", "WorkspaceCache"]
