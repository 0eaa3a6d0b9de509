"""The records of the console's users: user, secret, action."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    """What a user may do: look, or look and act."""

    VIEWER = "viewer"
    OPERATOR = "operator"


class SecretKind(StrEnum):
    """What a stored secret is for."""

    SESSION = "session"
    API = "api"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class ConsoleUser:
    """A person, or a script, that may use the console."""

    name: str
    role: Role
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """A session, API token or one-time link of a user; `label` tells a person which one it is."""

    digest: str
    kind: SecretKind
    user: str
    label: str
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class ConsoleAction:
    """One action of a user, as it is written down."""

    at: datetime
    user: str
    action: str
    client: str
