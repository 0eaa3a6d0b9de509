"""An origin that does not let us in: told apart from one that does not answer, as only a person can mend it."""

from __future__ import annotations

from webordinary.adapters.local.git.command import REMOTE_SECONDS, Git
from webordinary.model.errors import Permanent, Transient
from webordinary.model.projects import Project

_WORDS = 300
_ALWAYS_SAID = "fatal: Could not read from remote repository."
"""What git ends with whatever happened, and some advice after it."""
_NO_ENTRY = (
    "Authentication failed",
    "could not read Username",
    "could not read Password",
    "Permission denied (",
    "The requested URL returned error: 401",
    "The requested URL returned error: 403",
    "Invalid username or password",
    "Invalid username or token",
    "Host key verification failed",
)


class AccessRefused(Permanent):
    """The origin does not take the project's credential, or wants one."""

    def __init__(self, project: Project, words: str) -> None:
        super().__init__(
            f"{project.project_id}: its repository {project.repo} does not let us in ({_short(words)}); "
            f"give it the right credential with `webordinary project credential {project.project_id} FILE`"
        )


def check_access(project: Project, words: str) -> None:
    """Raise AccessRefused if that is what git's words say."""
    if any(refusal in words for refusal in _NO_ENTRY):
        raise AccessRefused(project, words)


def reach(git: Git, project: Project) -> None:
    """Raise AccessRefused if the origin keeps us out, Transient unless it answers."""
    finished = git.attempt("ls-remote", "--quiet", "--", project.repo, "HEAD", seconds=REMOTE_SECONDS)
    if finished.code != 0:
        words = finished.err.decode(errors="replace").strip()
        check_access(project, words)
        raise Transient(f"{project.project_id}: its repository {project.repo} does not answer ({_short(words)})")


def check_writable(git: Git, project: Project, branch: str) -> None:
    """Raise AccessRefused or Permanent unless the origin would take a push; nothing is pushed."""
    ref = f"refs/heads/{branch}"
    args = ("push", "--dry-run", "--quiet", "--no-verify", "--", project.repo, f"{ref}:{ref}")
    finished = git.attempt(*args, seconds=REMOTE_SECONDS)
    words = finished.err.decode(errors="replace").strip()
    if finished.code != 0 and "[rejected]" not in words:  # it moved on meanwhile: it would have taken the push
        check_access(project, words)
        raise Permanent(f"{project.project_id}: its repository {project.repo} takes no push ({_short(words)})")


def _short(words: str) -> str:
    """On one line, as it stands in a sentence."""
    said = words.partition(_ALWAYS_SAID)[0].strip() or words
    return " ".join(said.split())[-_WORDS:]
