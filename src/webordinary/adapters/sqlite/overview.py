"""A look at the whole system in SQLite: every query is bounded and walks an index."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from webordinary.adapters.records import attachment_from_json, mail_from_json
from webordinary.adapters.sqlite.claims import names_of
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.executions import MAX_STATES, all_events
from webordinary.adapters.sqlite.rows import at, at_or_none, result_of, unpacked
from webordinary.asl.ports import states_entered
from webordinary.model.claims import ClaimStatus
from webordinary.model.jobs import JobOutcome, JobState
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser, job_id_of
from webordinary.model.projects import Sender
from webordinary.model.snapshot import (
    ClaimSummary,
    DeadLetterSummary,
    JobSummary,
    MailDetail,
    MailSummary,
    MailText,
    PoolSnapshot,
    QueueSummary,
    RunningJob,
    SentReply,
    StateVisit,
    TimelineEntry,
    UnclaimedQueue,
    WorkerSummary,
    with_names,
    workers_in,
)


@lru_cache(maxsize=1024)  # lists are looked at after every event, and nearly all of their jobs are as they were
def job_of(row: tuple[Any, ...]) -> JobSummary:
    """A row of JOBS, without its mail."""
    job_id, key, thread_id, command, state, attempts, interruptions, worker, outcome, result, *times = row
    person = ProjectUser.parse(key)
    return JobSummary(
        job_id=job_id,
        key=person,
        thread_id=thread_id,
        command=Command(command),
        state=JobState(state),
        attempts=attempts,
        interruptions=interruptions,
        worker=worker,
        outcome=JobOutcome(outcome) if outcome else None,
        result=result_of(result, person),
        queued_at=at_or_none(times[0]),
        started_at=at_or_none(times[1]),
        settled_at=at_or_none(times[2]),
    )


def text_of(row: sqlite3.Row) -> MailText:
    """The words of a parsed mail."""
    mail = mail_from_json(unpacked(row["record"]))
    return MailText(
        message_id=mail.message_id,
        sender_name=mail.sender_name,
        text=mail.text,
        elided=mail.elided,
        references=tuple(dict.fromkeys((*mail.references, *mail.in_reply_to))),
    )


def reply_of(row: sqlite3.Row) -> SentReply:
    """A row of the outbox."""
    return SentReply(
        kind=row["kind"],
        recipient=row["recipient"],
        message_id=row["message_id"],
        raw=unpacked(row["raw"]),
        created_at=at(row["created_at"]),
        sent_at=at_or_none(row["sent_at"]),
        last_error=row["last_error"],
    )


def entry_of(row: sqlite3.Row) -> TimelineEntry:
    """A stored event."""
    return TimelineEntry(
        seq=row["seq"],
        at=at(row["at"]),
        kind=row["kind"],
        email_id=row["email_id"],
        key=row["key"],
        worker=row["worker"],
        data=json.loads(row["data"]),
    )


def worker_of(row: sqlite3.Row) -> WorkerSummary:
    """A worker that has not ended."""
    return WorkerSummary(row["worker"], row["name"], row["pid"], row["slots"], at(row["started_at"]))


def running_of(row: sqlite3.Row) -> RunningJob:
    """A job under way."""
    return RunningJob(
        row["worker"],
        ProjectUser.parse(row["key"]),
        row["email_id"],
        row["subject"],
        at_or_none(row["started_at"]),
    )


def claim_of(row: sqlite3.Row) -> ClaimSummary:
    """A claim, with its worker's name."""
    return ClaimSummary(
        key=ProjectUser.parse(row["key"]),
        worker=row["worker_name"],
        fence=row["fence"],
        claimed_at=at(row["claimed_at"]),
        lease_expires_at=at(row["lease_expires_at"]),
        worker_id=row["worker"],
        status=ClaimStatus(row["status"]),
        busy=bool(row["busy"]),
    )


def queue_of(row: sqlite3.Row) -> QueueSummary:
    """The open jobs of a key."""
    return QueueSummary(
        key=ProjectUser.parse(row["key"]),
        open=row["open"],
        running=row["running"],
        waiting_since=at_or_none(row["waiting_since"]),
        unowned_since=at_or_none(row["unowned_since"]),
        preparing=row["preparing"],
        queued=row["queued"],
        owner=row["owner"],
    )


def unclaimed_of(row: sqlite3.Row) -> UnclaimedQueue:
    """The hints, counted."""
    return UnclaimedQueue(row["depth"], at_or_none(row["oldest_since"]))


def dead_letter_of(row: sqlite3.Row) -> DeadLetterSummary:
    """A mail given up."""
    return DeadLetterSummary(row["email_id"], row["subject"], row["reason"], at(row["died_at"]), row["letter_id"])


MAX_ROWS = 200
MAX_TIMELINE = 300
MAX_COUNT = 1000

NEWEST = "SELECT email_id FROM raw_mails ORDER BY received_at DESC, email_id DESC LIMIT :limit"

NEWEST_BEFORE = """
SELECT email_id FROM raw_mails
WHERE (received_at, email_id) < (SELECT received_at, email_id FROM raw_mails WHERE email_id = :before)
ORDER BY received_at DESC, email_id DESC LIMIT :limit"""

# Each arm walks one of the partial indexes that the system itself finds its unfinished work by. An execution is named
# after its mail, with a suffix where that was redriven.
IN_FLIGHT = """
SELECT email_id FROM (SELECT email_id FROM raw_mails WHERE started = 0 ORDER BY received_at DESC LIMIT :limit)
UNION SELECT email_id FROM (
  SELECT substr(name, 1, 64) AS email_id FROM executions WHERE look_at IS NOT NULL ORDER BY look_at LIMIT :limit)
UNION SELECT email_id FROM (SELECT email_id FROM jobs WHERE state <> 'settled' LIMIT :limit)
UNION SELECT email_id FROM (
  SELECT email_id FROM jobs
  WHERE (state = 'settled' AND called_back = 0 AND task_token IS NOT NULL) OR preempted_token IS NOT NULL
  LIMIT :limit)
UNION SELECT email_id FROM (SELECT email_id FROM outbox WHERE sent_at IS NULL AND given_up = 0 LIMIT :limit)
LIMIT :limit"""

# A mail that was redriven has several executions, {email_id}-r1 and so on: the newest tells how it stands.
MAILS = """
SELECT r.email_id, r.received_at, r.mail_from, r.recipient, r.stopped, p.sender, p.subject,
       x.started_at, x.finished_at IS NOT NULL AS ended
FROM raw_mails r
LEFT JOIN parsed_mails p ON p.email_id = r.email_id
LEFT JOIN executions x ON x.id = (
  SELECT max(id) FROM executions WHERE name >= r.email_id AND name < r.email_id || '.')
WHERE r.email_id IN (SELECT value FROM json_each(:ids))
ORDER BY r.received_at DESC, r.email_id DESC"""

# So has it several jobs: its first, and {job_id}-r1 and so on.
JOBS = """
SELECT j.email_id, j.job_id, j.key, j.thread_id, j.command, j.state, j.attempts, j.interruptions,
       coalesce(w.name, j.worker), j.outcome, j.result, j.queued_at, j.started_at, j.settled_at
FROM json_each(:ids) AS mine JOIN jobs j ON j.job_id >= mine.value AND j.job_id < mine.value || '.'
LEFT JOIN workers w ON w.worker = j.worker
ORDER BY j.id"""

MILESTONES = """
SELECT email_id, kind, max(at) AS at FROM events
WHERE email_id IN (SELECT value FROM json_each(:ids))
  AND kind IN ('MailRefused', 'MailHeld', 'MailReleased', 'MailDropped', 'OperatorAnswered',
               'MailClosed', 'MailRetried', 'AgentFinished', 'ChangeCommitted',
               'SiteBuilt', 'SitePublished')
GROUP BY email_id, kind"""

# That a mail has to wait is no answer to it.
ANSWERS = """
SELECT email_id, max(CASE WHEN kind NOT IN ('held', 'confirm') THEN sent_at END) AS sent_at,
       max(CASE WHEN kind NOT IN ('held', 'confirm') THEN created_at END) AS written_at,
       max(sent_at IS NULL AND given_up = 0) AS waits
FROM outbox WHERE email_id IN (SELECT value FROM json_each(:ids)) GROUP BY email_id"""

STOPPED_BECAUSE = """
SELECT email_id, json_extract(data, '$.reason') AS reason FROM events
WHERE email_id IN (SELECT value FROM json_each(:ids)) AND kind IN ('MailRefused', 'MailHeld') ORDER BY seq"""
DEAD = "SELECT email_id, reason FROM dead_letters WHERE email_id IN (SELECT value FROM json_each(:ids))"

TEXT = "SELECT record FROM parsed_mails WHERE email_id = :id"
ATTACHMENTS = "SELECT record FROM attachments WHERE email_id = :id ORDER BY position LIMIT :limit"
REPLIES = "SELECT * FROM outbox WHERE email_id = :id ORDER BY outbox_id LIMIT :limit"
TIMELINE = "SELECT * FROM events WHERE email_id = :id ORDER BY seq LIMIT :limit"

EXECUTION = """
SELECT id, path FROM executions WHERE name >= :id AND name < :id || '.' ORDER BY id DESC LIMIT 1"""

WORKERS = "SELECT * FROM workers WHERE ended_at IS NULL ORDER BY name, worker LIMIT :limit"

RUNNING = """
SELECT j.worker, j.key, j.email_id, j.started_at, p.subject
FROM jobs j LEFT JOIN parsed_mails p ON p.email_id = j.email_id
WHERE j.state <> 'settled' AND j.state = 'running' LIMIT :limit"""

CLAIMS = """
SELECT c.*, coalesce(w.name, c.worker) AS worker_name, EXISTS (
  SELECT 1 FROM jobs j INDEXED BY open_jobs
  WHERE j.key = c.key AND j.state <> 'settled' AND j.state = 'running' AND j.fence = c.fence) AS busy
FROM claims c LEFT JOIN workers w ON w.worker = c.worker
WHERE c.status <> 'free' ORDER BY c.worker, c.key LIMIT :limit"""

# A lease that ran out left its key without an owner at that moment, also the job that its owner had begun.
# Work without an owner comes first, so that a limit never hides it.
QUEUES = """
SELECT j.key, count(*) AS open, sum(j.state = 'running') AS running, sum(j.state = 'queued') AS queued,
       sum(j.state = 'preparing') AS preparing,
       min(CASE WHEN j.state = 'queued' THEN j.queued_at END) AS waiting_since,
       min(CASE WHEN j.state <> 'preparing' AND coalesce(c.lease_expires_at, 0) <= :now
                 AND coalesce(j.not_before, 0) <= :now
           THEN max(j.queued_at, coalesce(j.not_before, 0), coalesce(c.lease_expires_at, 0)) END) AS unowned_since,
       max(CASE WHEN c.lease_expires_at > :now THEN coalesce(w.name, c.worker) END) AS owner, max(c.worker) AS owner_id
FROM jobs j
LEFT JOIN claims c ON c.key = j.key AND c.status = 'held'
LEFT JOIN workers w ON w.worker = c.worker
WHERE j.state <> 'settled' GROUP BY j.key ORDER BY unowned_since IS NULL, unowned_since, j.key LIMIT :limit"""

UNCLAIMED = "SELECT count(*) AS depth, min(waiting_since) AS oldest_since FROM hints"

DEAD_LETTERS = """
SELECT d.letter_id, d.email_id, d.reason, d.died_at, p.subject
FROM dead_letters d LEFT JOIN parsed_mails p ON p.email_id = d.email_id
ORDER BY d.letter_id DESC LIMIT :limit"""

DEAD_LETTER_COUNT = "SELECT count(*) FROM (SELECT 1 FROM dead_letters LIMIT :limit)"

SENDERS = "SELECT address, project_id, user_id FROM senders ORDER BY address, project_id LIMIT :limit"

EVENTS_AFTER = "SELECT * FROM events WHERE seq > :seq ORDER BY seq LIMIT :limit"

LAST_SEQ = "SELECT coalesce(max(seq), 0) FROM events"


class SqliteOverview:
    """Reads what the other tables' owners wrote; writes nothing. A worker that died without goodbye is not shown."""

    def __init__(self, database: Database, is_dead: Callable[[str], bool] = lambda _: False) -> None:
        self._database, self._is_dead = database, is_dead

    def recent_mails(self, before: str | None, limit: int) -> Sequence[MailSummary]:
        with self._snapshot() as conn:
            query = NEWEST if before is None else NEWEST_BEFORE
            return summaries(conn, _ids(conn.execute(query, {"before": before, "limit": limit})))

    def mails_in_flight(self, limit: int) -> Sequence[MailSummary]:
        with self._snapshot() as conn:
            return summaries(conn, _ids(conn.execute(IN_FLIGHT, {"limit": limit})))

    def mail(self, email_id: str) -> MailDetail | None:
        with self._snapshot() as conn:
            found = summaries(conn, [email_id])
            return _detail(conn, found[0]) if found else None

    def pool(self, now: datetime, limit: int = MAX_ROWS) -> PoolSnapshot:
        with self._snapshot() as conn:
            bound = {"limit": limit, "now": now.timestamp()}
            present = [worker_of(row) for row in conn.execute(WORKERS, bound)]
            return PoolSnapshot(
                workers=tuple(worker for worker in present if not self._is_dead(worker.worker)),
                running=tuple(running_of(row) for row in conn.execute(RUNNING, bound)),
                claims=tuple(self._claim(row) for row in conn.execute(CLAIMS, bound)),
                queues=tuple(self._queue(row) for row in conn.execute(QUEUES, bound)),
                dead_letters=tuple(dead_letter_of(row) for row in conn.execute(DEAD_LETTERS, bound)),
                dead_letter_count=conn.execute(DEAD_LETTER_COUNT, {"limit": MAX_COUNT}).fetchone()[0],
                unclaimed=unclaimed_of(conn.execute(UNCLAIMED).fetchone()),
            )

    def _claim(self, row: sqlite3.Row) -> ClaimSummary:
        claim = claim_of(row)
        return replace(claim, dead=True, busy=False) if self._is_dead(claim.worker_id) else claim

    def _queue(self, row: sqlite3.Row) -> QueueSummary:
        queue = queue_of(row)
        return replace(queue, owner=None) if row["owner_id"] and self._is_dead(row["owner_id"]) else queue

    def senders(self) -> Sequence[Sender]:
        with self._database.read() as conn:
            rows = conn.execute(SENDERS, {"limit": MAX_ROWS}).fetchall()
        return [_sender(*row) for row in rows]

    def events_after(self, seq: int, limit: int) -> Sequence[TimelineEntry]:
        with self._database.read() as conn:
            rows = conn.execute(EVENTS_AFTER, {"seq": seq, "limit": min(limit, MAX_COUNT)}).fetchall()
        return [entry_of(row) for row in rows]

    def last_seq(self) -> int:
        with self._database.read() as conn:
            newest: int = conn.execute(LAST_SEQ).fetchone()[0]
            return newest

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """Let several queries see one instant."""
        with self._database.read() as conn:
            conn.execute("BEGIN")
            try:
                yield conn
            finally:
                conn.execute("ROLLBACK")


@lru_cache(maxsize=MAX_ROWS)
def _sender(address: str, project_id: str, user_id: str) -> Sender:
    return Sender(address, ProjectUser(project_id, user_id))


def _ids(rows: Iterable[sqlite3.Row]) -> list[str]:
    return [row["email_id"] for row in rows]


def summaries(conn: sqlite3.Connection, email_ids: Sequence[str]) -> list[MailSummary]:
    """These mails as they stand, newest first."""
    ids = {"ids": json.dumps(email_ids)}
    first_jobs = {"ids": json.dumps([job_id_of(email_id) for email_id in email_ids])}
    jobs = {row[0]: job_of(row[1:]) for row in conn.execute(JOBS, first_jobs)}
    answers = {row["email_id"]: row for row in conn.execute(ANSWERS, ids)}
    dead = {row["email_id"]: row["reason"] for row in conn.execute(DEAD, ids)}
    milestones: dict[str, dict[str, datetime]] = defaultdict(dict)
    for row in conn.execute(MILESTONES, ids):
        milestones[row["email_id"]][row["kind"]] = at(row["at"])
    rows = conn.execute(MAILS, ids).fetchall()
    stopped = {"ids": json.dumps([row["email_id"] for row in rows if row["stopped"]])}
    reasons = {row["email_id"]: row["reason"] for row in conn.execute(STOPPED_BECAUSE, stopped)}  # the last one counts
    for row in rows:
        reached = milestones[row["email_id"]]
        if "MailReleased" in reached:
            reached.pop("MailHeld", None)
        refused_at, again_at = reached.get("MailRefused"), reached.get("MailRetried")
        if refused_at and again_at and again_at > refused_at and row["stopped"] != "refused":
            reached.pop("MailRefused")
    return [
        MailSummary(
            email_id=row["email_id"],
            received_at=at(row["received_at"]),
            sender=row["sender"] or row["mail_from"],
            recipient=row["recipient"],
            subject=row["subject"],
            job=jobs.get(row["email_id"]),
            milestones=milestones[row["email_id"]],
            answered_at=at_or_none(answer["sent_at"]) if answer and _of_this_run(answer, row) else None,
            ended=bool(row["ended"]) and not (answer and answer["waits"]),
            dead_reason=dead.get(row["email_id"]),
            stopped=row["stopped"],
            stopped_because=reasons.get(row["email_id"]),
        )
        for row in rows
        for answer in [answers.get(row["email_id"])]
    ]


def _of_this_run(answer: sqlite3.Row, mail: sqlite3.Row) -> bool:
    """What a redriven mail was answered before its redrive does not count."""
    written_at, started_at = answer["written_at"], mail["started_at"]
    return started_at is None or (written_at is not None and written_at >= started_at)


def _detail(conn: sqlite3.Connection, summary: MailSummary) -> MailDetail:
    bound = {"id": summary.email_id, "limit": MAX_TIMELINE}
    text = conn.execute(TEXT, bound).fetchone()
    timeline = [entry_of(row) for row in conn.execute(TIMELINE, bound)]
    names = names_of(conn, workers_in(timeline))
    return MailDetail(
        summary=summary,
        text=text_of(text) if text else None,
        attachments=tuple(attachment_from_json(row["record"]) for row in conn.execute(ATTACHMENTS, bound)),
        replies=tuple(reply_of(row) for row in conn.execute(REPLIES, bound)),
        timeline=tuple(with_names(entry, names) for entry in timeline),
        path=_path(conn, bound),
    )


def _path(conn: sqlite3.Connection, bound: Mapping[str, object]) -> tuple[StateVisit, ...]:
    execution = conn.execute(EXECUTION, bound).fetchone()
    if execution is None:
        return ()
    kept = execution["path"]
    entered = json.loads(kept) if kept else states_entered(all_events(conn, execution["id"]))[:MAX_STATES]
    return tuple(StateVisit(*one) for one in entered)
