"""Counting what is unfinished never walks over what is finished; and older data folders are brought along."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import pytest

from webordinary.adapters.sqlite import events as queries
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.dead_letters import SqliteDeadLetters
from webordinary.adapters.sqlite.events import SqliteLevels
from webordinary.adapters.sqlite.executions import SqliteExecutions
from webordinary.adapters.sqlite.mails import SqliteRawMails
from webordinary.adapters.sqlite.overview import SqliteOverview
from webordinary.asl.engine import Engine
from webordinary.model.mail import Email, Envelope
from webordinary.workflow.definition import embedded

BIG = ("raw_mails", "jobs", "outbox", "executions", "events")


def counts() -> list[str]:
    """Names of the module's queries that take no parameter."""
    texts = {name: text for name, text in vars(queries).items() if name.isupper() and isinstance(text, str)}
    return [name for name, text in texts.items() if "SELECT" in text and not set("?:") & set(text)]


@pytest.mark.parametrize("name", counts())
def test_every_count_walks_an_index_of_unfinished_work(tmp_path: Path, name: str) -> None:
    database = Database(tmp_path / "levels.db")
    database.migrate()
    with database.read() as conn:
        plan = [row["detail"] for row in conn.execute(f"EXPLAIN QUERY PLAN {getattr(queries, name)}")]
    database.close()
    assert [step for step in plan if step.startswith("SCAN") and "INDEX" not in step and step.endswith(BIG)] == [], plan


def test_a_mail_whose_workflow_has_begun_counts_before_it_has_a_job(tmp_path: Path) -> None:
    database, email_id = Database(tmp_path / "levels.db"), "a" * 64
    database.migrate()
    mails = SqliteRawMails(database, tmp_path)
    envelope = Envelope("127.0.0.1", "scott@example.com", "edit@localhost", datetime.now(UTC))
    mails.store(Email(email_id, envelope, b"Subject: hi\r\n\r\n"))
    engine = Engine(SqliteExecutions(database), embedded(), dict.fromkeys(embedded().handlers, lambda _: {}))
    engine.start(email_id, {"emailId": email_id})
    mails.mark_started(email_id)
    assert SqliteLevels(database).look(0).mails_in_flight == 1
    [mail] = SqliteOverview(database).mails_in_flight(10)
    database.close()
    assert mail.email_id == email_id


def test_letters_written_before_redrives_were_known_are_still_there(tmp_path: Path) -> None:
    folder = resources.files("webordinary.adapters.sqlite") / "migrations"
    with sqlite3.connect(tmp_path / "old.db") as conn:
        for script in ("0001_initial.sql", "0002_workflow.sql"):
            conn.executescript((folder / script).read_text(encoding="utf-8"))
        conn.execute("INSERT INTO dead_letters (email_id, reason, died_at) VALUES ('a', 'broke', 1.0)")
        conn.execute("PRAGMA user_version = 2")
    conn.close()
    database = Database(tmp_path / "old.db")
    database.migrate()
    [letter] = SqliteDeadLetters(database).all(10)
    database.close()
    assert (letter.letter_id, letter.email_id, letter.redrives) == (1, "a", 0)
