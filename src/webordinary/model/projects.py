"""Project and sender settings, as the operator onboarded them."""

from __future__ import annotations

from dataclasses import dataclass

from webordinary.model.names import ProjectUser


@dataclass(frozen=True, slots=True)
class Project:
    """A site with its repository. `builder` empty means: detect it."""

    project_id: str
    repo: str
    builder: str = ""
    agent: str = "builtin"
    default_instruction: str = ""
    """What a mail without words asks for."""
    daily_cap_usd: float = 0.0
    """What agents may cost on one day; 0 means the cap of the configuration."""
    paused: bool = False
    """The operator wants nothing done on it for now; mails are kept."""
    output: bool = False
    """Programs of the customer read what became of each mail from an output queue (on AWS)."""
    domains: tuple[str, ...] = ()
    """Domains of the customer's own that show the public site; the first one is used in links."""
    edit_password: str = ""
    """Hash of the password that visitors of the edit site need; empty: none."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "domains", tuple(self.domains))  # stores return a list


@dataclass(frozen=True, slots=True)
class Sender:
    """A mail address that may change a project, as a user of it."""

    address: str
    key: ProjectUser


@dataclass(frozen=True, slots=True)
class Thread:
    """A mail conversation: one git branch, one agent session, one key."""

    thread_id: str
    key: ProjectUser
    subject: str
    agent_session: str = ""
