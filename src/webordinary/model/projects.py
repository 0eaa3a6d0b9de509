"""Project and sender settings, as the operator onboarded them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from enum import StrEnum
from pathlib import PurePosixPath
from zoneinfo import ZoneInfo

from webordinary.model.errors import InvalidName, Permanent
from webordinary.model.jobs import ChangeLine
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser

MOST_WISHES, WISH_CHARACTERS = 20, 500
"""Standing wishes of one site, and the length of each."""


AGENTS = ("auto", "builtin", "claude", "acp", "command")
WITH_A_PROGRAM = ("acp", "command")
"""Agents that are there once the operator has named their program."""


def time_zone(name: str) -> tzinfo | None:
    """The zone of this name; None if this machine knows none."""
    try:
        return ZoneInfo(name) if name else UTC
    except (KeyError, OSError, ValueError):  # unknown; or the name of a folder, or no name of a file
        return None


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
    """Programs of the customer read what became of each mail: with `webordinary outputs`, on AWS from a queue."""
    domains: tuple[str, ...] = ()
    """Domains of the customer's own that show the public site; the first one is used in links."""
    edit_password: str = ""
    """Hash of the password that visitors of the edit site need; empty: none."""
    allowed_hosts: tuple[str, ...] = ()
    """Other hosts that a change may make pages load from, or `*` for every host and for scripts."""

    wishes: tuple[str, ...] = ()
    """Standing wishes of its people, such as “British spelling”: every agent gets them."""

    approver: str = ""
    """Address of the person who is shown each change of an editor, to publish it; empty: no such person."""

    hook_secret: str = ""
    """Signs the webhook that has the site built again after a push; empty: there is none."""
    build_problem: str = ""
    """What the last build of main by the operator said, if it failed; bounded."""
    build_failed_at: float = 0.0
    """When that was, as a Unix time."""
    folder: str = ""
    """Where the site lies in its repository, such as `apps/web`; empty: at the top."""
    rolled_back_at: float = 0.0
    """When an operator last put one of its sites back, as a Unix time."""
    waiting_then: tuple[ChangeLine, ...] = ()
    """What was on the edit site only, after that."""
    time_zone: str = ""
    """The zone of dates in mails, such as `Europe/Berlin`; empty: UTC."""

    def __post_init__(self) -> None:
        for name in ("domains", "allowed_hosts", "wishes"):
            object.__setattr__(self, name, tuple(getattr(self, name)))  # stores return a list
        object.__setattr__(self, "waiting_then", tuple(ChangeLine(*one) for one in self.waiting_then))

    @property
    def zone(self) -> tzinfo:
        """Its time zone; UTC where this machine does not know the zone."""
        return time_zone(self.time_zone) or UTC

    def names_of(self, files: Sequence[str]) -> tuple[str, ...]:
        """Files of the repository as the site's people know them: below the site's folder."""
        if not self.folder:
            return tuple(files)
        return tuple(file.removeprefix(f"{self.folder}/") for file in files)


_CHANGES = (Command.EDIT, Command.UNDO, Command.REMEMBER, Command.FORGET)
"""What changes the site, now or with each later change."""


class SenderRole(StrEnum):
    """What a sender may do with a site: ask for changes, publish them, or both."""

    BOTH = "both"
    EDITOR = "editor"
    PUBLISHER = "publisher"

    def may(self, command: Command) -> bool:
        """Whether a mail of this sender may ask for it; questions and `stop` are for everybody."""
        if command is Command.PUBLISH:
            return self is not SenderRole.EDITOR
        return self is not SenderRole.PUBLISHER or command not in _CHANGES

    def allowed(self, commands: Iterable[Command]) -> tuple[Command, ...]:
        """Those that a mail of this sender may ask for."""
        return tuple(filter(self.may, commands))


@dataclass(frozen=True, slots=True)
class Sender:
    """A mail address that may change a project, as a user of it."""

    address: str
    key: ProjectUser
    role: SenderRole = SenderRole.BOTH


@dataclass(frozen=True, slots=True)
class Thread:
    """A mail conversation: one git branch, one agent session, one key."""

    thread_id: str
    key: ProjectUser
    subject: str
    agent_session: str = ""


MOST_FOLDER_CHARACTERS = 200


def site_folder(text: str) -> str:
    """A folder of a repository as a project keeps it; empty for the top. Raises InvalidName."""
    path = PurePosixPath(text.strip().strip("/"))
    odd = any(part == ".." or part.lower().startswith(".git") for part in path.parts)
    if odd or len(str(path)) > MOST_FOLDER_CHARACTERS or not str(path).isprintable():
        raise InvalidName(f"{text[:MOST_FOLDER_CHARACTERS]!r} is no folder of a repository, such as apps/web")
    return "" if str(path) == "." else str(path)


def existing(project: Project | None, project_id: str) -> Project:
    """The project that was found; raises Permanent if there is none."""
    if project is None:
        raise Permanent(f"project {project_id} is gone: add it again with `webordinary project add`")
    return project


@dataclass(frozen=True, slots=True)
class DomainFinding:
    """Whether visitors see a site under a domain of its own, as an operator hears of it."""

    domain: str
    points_here: bool
    words: str
    """The finding, and what to do."""
    records: tuple[str, ...] = ()
    """What belongs into its DNS, if that is not right."""
    compared: bool = True
    """False where it is not known whether it leads here."""
