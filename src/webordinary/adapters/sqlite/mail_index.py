"""The index of mails in SQLite: full text, states, counts. It follows the events, and catches up before each look."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime

from webordinary.adapters.records import mail_from_json
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.overview import summaries
from webordinary.adapters.sqlite.rows import unpacked
from webordinary.model.snapshot import MailFilter, MailPage, MailState, MailSummary, state_of

BITE, EVENTS_BITE, RECHECKED = 100, 1000, 100
MAX_CATCH_UP = 20
"""Bites before one look: a page waits at most for 2,000 mails, the service does the rest."""
MAX_COUNTED = 10_000
MAX_WORDS = 12
FIRST_IDEOGRAPH = "\u2e80"
BODY_CHARACTERS = 4000

IS_BEHIND = """
SELECT EXISTS (SELECT 1 FROM raw_mails WHERE rowid > number) OR EXISTS (SELECT 1 FROM events WHERE events.seq > c.seq)
FROM mail_index_cursor c"""
NEW_MAILS = "SELECT rowid AS number, email_id FROM raw_mails WHERE rowid > :number ORDER BY rowid LIMIT :limit"
NEW_EVENTS = "SELECT seq, email_id FROM events WHERE seq > :seq ORDER BY seq LIMIT :limit"
NUMBERS = "SELECT rowid AS number, email_id FROM raw_mails WHERE email_id IN (SELECT value FROM json_each(:ids))"
OLDEST_OPEN = "SELECT email_id FROM mail_index WHERE state = 'open' ORDER BY number LIMIT :limit"
PUT = """
INSERT INTO mail_index (number, email_id, received_at, state, project_id, user_id)
VALUES (:number, :email_id, :received_at, :state, :project_id, :user_id)
ON CONFLICT (number) DO UPDATE SET state = :state, project_id = :project_id, user_id = :user_id
WHERE state <> :state OR project_id <> :project_id OR user_id <> :user_id"""
# A mail that was not admitted is not parsed: it is found by its envelope, until it is released and parsed.
OF_ENVELOPE = """
DELETE FROM mail_search WHERE rowid IN (
  SELECT number FROM mail_index i JOIN parsed_mails p ON p.email_id = i.email_id
  WHERE i.searchable = 1 AND i.email_id IN (SELECT value FROM json_each(:ids)))"""
SEARCHABLE = """
SELECT i.number, coalesce(p.sender, r.mail_from) AS sender, coalesce(p.subject, '') AS subject, p.record
FROM mail_index i JOIN raw_mails r ON r.email_id = i.email_id LEFT JOIN parsed_mails p ON p.email_id = i.email_id
WHERE i.email_id IN (SELECT value FROM json_each(:ids))
  AND i.searchable < CASE WHEN p.email_id IS NOT NULL THEN 2 WHEN i.state <> 'open' THEN 1 ELSE 0 END"""
ADD_SEARCHABLE = "INSERT INTO mail_search (rowid, sender, subject, body) VALUES (?, ?, ?, ?)"
MARK_SEARCHABLE = """
UPDATE mail_index SET searchable = CASE
  WHEN EXISTS (SELECT 1 FROM parsed_mails p WHERE p.email_id = mail_index.email_id) THEN 2
  WHEN state <> 'open' THEN 1 ELSE searchable END
WHERE searchable < 2 AND email_id IN (SELECT value FROM json_each(:ids))"""
ADVANCE = "UPDATE mail_index_cursor SET number = max(number, :number), seq = max(seq, :seq)"
COUNTS_BY_SITE = """
SELECT project_id, state, mails FROM mail_counts WHERE project_id IN (SELECT value FROM json_each(?))"""
# A mail that was not admitted has no job; its site is that of its sender, if there is one only.
SITE_OF_SENDER = """
SELECT min(project_id) AS project_id, min(user_id) AS user_id
FROM senders WHERE address = :sender HAVING count(*) = 1"""


class SqliteMailIndex:
    """See MailIndex. Several processes may keep it at once: every write is made from the tables as they are then."""

    name = "mail-index"
    reach = ""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, mail_filter: MailFilter, limit: int, offset: int = 0, before: str = "") -> MailPage:
        """A page of the mails that fit, newest first."""
        self.catch_up()
        source, values = _source(mail_filter)
        values |= {"limit": limit, "offset": offset, "most": MAX_COUNTED, "before": before}
        older = " AND i.number < (SELECT number FROM mail_index WHERE email_id = :before)" if before else ""
        order = "s.rowid" if values["match"] else "i.number"  # each is the order in which its rows are stored
        rows = f"SELECT i.email_id {source}{older} ORDER BY {order} DESC LIMIT :limit OFFSET :offset"
        with self._database.read() as conn:
            conn.execute("BEGIN")
            try:
                total = self._total(conn, mail_filter, source, values)
                ids = [row["email_id"] for row in conn.execute(rows, values)]
                found = sorted(summaries(conn, ids), key=lambda mail: ids.index(mail.email_id))
            finally:
                conn.execute("ROLLBACK")
        return MailPage(tuple(found), total, counted=total < MAX_COUNTED or _is_kept(mail_filter))

    def counts(self, project_id: str = "") -> Mapping[MailState, int]:
        """How many mails there are in each state."""
        self.catch_up()
        with self._database.read() as conn:
            return self._counts(conn, project_id)

    def counts_by_site(self, project_ids: Sequence[str]) -> Mapping[str, Mapping[MailState, int]]:
        """How many mails of each of these sites there are in each state."""
        self.catch_up()
        counts: dict[str, dict[MailState, int]] = {project_id: {} for project_id in project_ids}
        with self._database.read() as conn:
            for project_id, state, mails in conn.execute(COUNTS_BY_SITE, (json.dumps(list(project_ids)),)):
                counts[project_id][MailState(state)] = mails
        return counts

    def run_once(self, now: datetime) -> int:
        """Catch up, and look again at open mails whose last event may be lost."""
        self.catch_up()
        with self._database.read() as conn:
            stale = [row["email_id"] for row in conn.execute(OLDEST_OPEN, {"limit": RECHECKED})]
            fresh = {mail.email_id for mail in summaries(conn, stale) if state_of(mail) is not MailState.OPEN}
        if fresh:
            with self._database.write() as conn:
                _index(conn, sorted(fresh))
        return len(fresh)

    def catch_up(self, bites: int = MAX_CATCH_UP) -> None:
        """Index new mails, a bounded number of them."""
        for _ in range(bites):
            with self._database.read() as conn:
                if not conn.execute(IS_BEHIND).fetchone()[0]:
                    return
            with self._database.write() as conn:
                cursor = dict(conn.execute("SELECT number, seq FROM mail_index_cursor").fetchone())
                new = conn.execute(NEW_MAILS, {**cursor, "limit": BITE}).fetchall()
                events = conn.execute(NEW_EVENTS, {**cursor, "limit": EVENTS_BITE}).fetchall()
                touched = {row["email_id"] for row in (*new, *events) if row["email_id"]}
                _index(conn, sorted(touched))
                reached = {"number": new[-1]["number"] if new else 0, "seq": events[-1]["seq"] if events else 0}
                conn.execute(ADVANCE, reached)

    def _total(
        self, conn: sqlite3.Connection, mail_filter: MailFilter, source: str, values: Mapping[str, object]
    ) -> int:
        if _is_kept(mail_filter):
            counts = self._counts(conn, mail_filter.project_id)
            return counts.get(MailState(mail_filter.state), 0) if mail_filter.state else sum(counts.values())
        counted = f"SELECT count(*) FROM (SELECT 1 {source} LIMIT :most)"  # noqa: S608
        total: int = conn.execute(counted, values).fetchone()[0]
        return total

    @staticmethod
    def _counts(conn: sqlite3.Connection, project_id: str) -> dict[MailState, int]:
        where = "WHERE project_id = :project_id" if project_id else ""
        query = f"SELECT state, sum(mails) AS mails FROM mail_counts {where} GROUP BY state"  # noqa: S608
        return {MailState(row["state"]): row["mails"] for row in conn.execute(query, {"project_id": project_id})}


def _is_kept(mail_filter: MailFilter) -> bool:
    """Whether the kept counts know the total."""
    return not (mail_filter.text or mail_filter.sender or mail_filter.user_id or mail_filter.since or mail_filter.until)


def _source(mail_filter: MailFilter) -> tuple[str, dict[str, object]]:
    """FROM and WHERE of a filter, of fixed parts, with the values to bind."""
    match = _match(mail_filter)
    parts = {
        "mail_search MATCH :match": match,
        "i.state = :state": mail_filter.state,
        "i.project_id = :project_id": mail_filter.project_id,
        "i.user_id = :user_id": mail_filter.user_id,
        "i.received_at >= :since": mail_filter.since,
        "i.received_at < :until": mail_filter.until,
    }
    where = " AND ".join(part for part, given in parts.items() if given) or "1"
    values = {
        "match": match,
        "state": mail_filter.state,
        "project_id": mail_filter.project_id,
        "user_id": mail_filter.user_id,
        "since": mail_filter.since.timestamp() if mail_filter.since else 0.0,
        "until": mail_filter.until.timestamp() if mail_filter.until else 0.0,
    }
    tables = "mail_search s CROSS JOIN mail_index i ON i.number = s.rowid" if match else "mail_index i"
    return f"FROM {tables} WHERE {where}", values


def _match(mail_filter: MailFilter) -> str:
    """An FTS5 query of plain words: each must occur, as the beginning of a word."""
    words = [f'"{word}"{_open_end(word)}' for word in _words(mail_filter.text)]
    return " AND ".join([*words, *(f'sender : "{word}"{_open_end(word)}' for word in _words(mail_filter.sender))])


def _words(text: str) -> Sequence[str]:
    """Each once: every word costs a look at all mails that have it."""
    return list({word.lower(): word for word in re.findall(r"\w+", text)}.values())[:MAX_WORDS]


def _open_end(word: str) -> str:
    """A letter begins a word in almost every mail: it stands for itself, unless it is a word of Chinese or the like."""
    return "*" if len(word) > 1 or word >= FIRST_IDEOGRAPH else ""


def _index(conn: sqlite3.Connection, email_ids: list[str]) -> None:
    """Write the rows of these mails from the tables as they are now."""
    for first in range(0, len(email_ids), BITE):
        ids = {"ids": json.dumps(email_ids[first : first + BITE])}
        numbers = {row["email_id"]: row["number"] for row in conn.execute(NUMBERS, ids)}
        for mail in summaries(conn, list(numbers)):
            conn.execute(PUT, {"number": numbers[mail.email_id], **_row(conn, mail)})
        conn.execute(OF_ENVELOPE, ids)
        for row in conn.execute(SEARCHABLE, ids).fetchall():
            body = mail_from_json(unpacked(row["record"])).text[:BODY_CHARACTERS] if row["record"] else ""
            conn.execute(ADD_SEARCHABLE, (row["number"], row["sender"], row["subject"], body))
        conn.execute(MARK_SEARCHABLE, ids)


def _row(conn: sqlite3.Connection, mail: MailSummary) -> dict[str, object]:
    project_id, user_id = (mail.job.key.project_id, mail.job.key.user_id) if mail.job else ("", "")
    if not mail.job and (site := conn.execute(SITE_OF_SENDER, {"sender": mail.sender.lower()}).fetchone()):
        project_id, user_id = site["project_id"], site["user_id"]
    return {
        "email_id": mail.email_id,
        "received_at": mail.received_at.timestamp(),
        "state": state_of(mail).value,
        "project_id": project_id,
        "user_id": user_id,
    }
