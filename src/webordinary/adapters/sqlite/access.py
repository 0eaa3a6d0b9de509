"""Users, secrets and actions of the console in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.rows import at
from webordinary.model.console import ConsoleAction, ConsoleUser, Role, SecretKind, StoredSecret

MOST_ACTIONS = 100_000

PUT_USER = """
INSERT INTO console_users (name, role, password_hash, created_at)
VALUES (:name, :role, coalesce(:password_hash, ''), :created_at)
ON CONFLICT (name) DO UPDATE
SET role = :role, password_hash = coalesce(:password_hash, password_hash)"""

INSERT_ROW = """
INSERT INTO console_secrets (digest, kind, user, label, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)"""

TRIM_SECRETS = """
DELETE FROM console_secrets WHERE digest IN (
  SELECT digest FROM console_secrets WHERE user = :user AND kind = :kind
  ORDER BY created_at DESC, rowid DESC LIMIT -1 OFFSET :most)"""


class SqliteConsoleUsers:
    """See ConsoleUsers."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def all(self) -> Sequence[ConsoleUser]:
        with self._db.read() as conn:
            return [_user(row) for row in conn.execute("SELECT * FROM console_users ORDER BY name")]

    def get(self, name: str) -> ConsoleUser | None:
        with self._db.read() as conn:
            row = conn.execute("SELECT * FROM console_users WHERE name = ?", (name,)).fetchone()
        return _user(row) if row else None

    def password_hash(self, name: str) -> str:
        with self._db.read() as conn:
            row = conn.execute("SELECT password_hash FROM console_users WHERE name = ?", (name,)).fetchone()
        return row["password_hash"] if row else ""

    def put(self, user: ConsoleUser, password_hash: str | None) -> None:
        row = {"name": user.name, "role": user.role.value, "password_hash": password_hash}
        with self._db.write() as conn:
            conn.execute(PUT_USER, row | {"created_at": user.created_at.timestamp()})

    def remove(self, name: str) -> bool:
        with self._db.write() as conn:
            conn.execute("DELETE FROM console_secrets WHERE user = ?", (name,))
            return conn.execute("DELETE FROM console_users WHERE name = ?", (name,)).rowcount == 1


class SqliteConsoleSecrets:
    """See ConsoleSecrets."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, secret: StoredSecret, most: int) -> None:
        times = (secret.created_at.timestamp(), secret.expires_at.timestamp())
        with self._db.write() as conn:
            conn.execute(INSERT_ROW, (secret.digest, secret.kind.value, secret.user, secret.label, *times))
            conn.execute(TRIM_SECRETS, {"user": secret.user, "kind": secret.kind.value, "most": most})

    def get(self, digest: str) -> StoredSecret | None:
        with self._db.read() as conn:
            row = conn.execute("SELECT * FROM console_secrets WHERE digest = ?", (digest,)).fetchone()
        return _secret(row) if row else None

    def of(self, user: str) -> Sequence[StoredSecret]:
        with self._db.read() as conn:
            rows = conn.execute("SELECT * FROM console_secrets WHERE user = ? ORDER BY created_at DESC", (user,))
            return [_secret(row) for row in rows]

    def remove(self, digest: str) -> bool:
        with self._db.write() as conn:
            return conn.execute("DELETE FROM console_secrets WHERE digest = ?", (digest,)).rowcount == 1


class SqliteActionLog:
    """See ActionLog. Keeps the newest MOST_ACTIONS."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, action: ConsoleAction) -> None:
        row = (action.at.timestamp(), action.user, action.action[:300], action.client[:100])
        with self._db.write() as conn:
            added = conn.execute("INSERT INTO console_actions (at, user, action, client) VALUES (?, ?, ?, ?)", row)
            conn.execute("DELETE FROM console_actions WHERE id <= ?", ((added.lastrowid or 0) - MOST_ACTIONS,))

    def latest(self, limit: int) -> Sequence[ConsoleAction]:
        with self._db.read() as conn:
            rows = conn.execute("SELECT * FROM console_actions ORDER BY id DESC LIMIT ?", (limit,))
            return [ConsoleAction(at(row["at"]), row["user"], row["action"], row["client"]) for row in rows]


def _user(row: sqlite3.Row) -> ConsoleUser:
    return ConsoleUser(row["name"], Role(row["role"]), at(row["created_at"]))


def _secret(row: sqlite3.Row) -> StoredSecret:
    times = (at(row["created_at"]), at(row["expires_at"]))
    return StoredSecret(row["digest"], SecretKind(row["kind"]), row["user"], row["label"], *times)
