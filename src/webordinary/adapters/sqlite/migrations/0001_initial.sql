-- Points in time are seconds since the epoch, UTC. A job's or claim's key is 'project#user'.

CREATE TABLE projects (
  project_id  TEXT PRIMARY KEY,
  settings    TEXT NOT NULL,               -- JSON of model.projects.Project
  created_at  REAL NOT NULL
) STRICT;

CREATE TABLE senders (
  address     TEXT NOT NULL,               -- lower case
  project_id  TEXT NOT NULL REFERENCES projects (project_id),
  user_id     TEXT NOT NULL,
  created_at  REAL NOT NULL,
  PRIMARY KEY (address, project_id)
) STRICT;

CREATE TABLE raw_mails (                   -- one row per accepted (mail, recipient); the file is on disk first
  email_id     TEXT PRIMARY KEY,
  path         TEXT NOT NULL,              -- relative to the data folder
  peer         TEXT NOT NULL,
  mail_from    TEXT NOT NULL,
  recipient    TEXT NOT NULL,
  size         INTEGER NOT NULL,
  received_at  REAL NOT NULL,
  started      INTEGER NOT NULL DEFAULT 0, -- its workflow was started
  placed       INTEGER NOT NULL DEFAULT 0  -- it has its place among its sender's jobs, or will get none
) STRICT;
CREATE INDEX raw_mails_unplaced ON raw_mails (mail_from, received_at) WHERE placed = 0;
CREATE INDEX raw_mails_without_workflow ON raw_mails (received_at) WHERE started = 0;
CREATE INDEX raw_mails_by_time ON raw_mails (received_at);

CREATE TABLE parsed_mails (
  email_id    TEXT PRIMARY KEY,
  message_id  TEXT NOT NULL,
  sender      TEXT NOT NULL,
  subject     TEXT NOT NULL,
  record      TEXT NOT NULL,               -- JSON of model.mail.ParsedMail
  parsed_at   REAL NOT NULL
) STRICT;

CREATE TABLE attachments (
  email_id  TEXT NOT NULL,
  position  INTEGER NOT NULL,
  record    TEXT NOT NULL,                 -- JSON of model.mail.Attachment or RefusedAttachment
  PRIMARY KEY (email_id, position)
) STRICT;

CREATE TABLE threads (
  thread_id      TEXT PRIMARY KEY,
  key            TEXT NOT NULL,
  subject        TEXT NOT NULL,
  agent_session  TEXT NOT NULL DEFAULT '',
  created_at     REAL NOT NULL
) STRICT;

CREATE TABLE thread_messages (
  message_id  TEXT PRIMARY KEY,
  thread_id   TEXT NOT NULL REFERENCES threads (thread_id)
) STRICT;

CREATE TABLE outbox (                      -- a reply is written once per (mail, kind), then delivered until done
  outbox_id     INTEGER PRIMARY KEY,
  email_id      TEXT NOT NULL,
  kind          TEXT NOT NULL,
  recipient     TEXT NOT NULL,
  message_id    TEXT NOT NULL,
  raw           BLOB NOT NULL,
  created_at    REAL NOT NULL,
  sent_at       REAL,
  attempts      INTEGER NOT NULL DEFAULT 0,
  next_try_at   REAL NOT NULL,
  last_error    TEXT,
  given_up      INTEGER NOT NULL DEFAULT 0,
  UNIQUE (email_id, kind)
) STRICT;
CREATE INDEX outbox_unsent ON outbox (next_try_at) WHERE sent_at IS NULL AND given_up = 0;

CREATE TABLE keys (                        -- the order counter outlives finished jobs
  key         TEXT PRIMARY KEY,
  last_order  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (                        -- the truth about work
  id                INTEGER PRIMARY KEY,
  job_id            TEXT NOT NULL UNIQUE,
  key               TEXT NOT NULL,
  ord               INTEGER NOT NULL,      -- its place in the key's queue; an interruption moves it to the tail
  thread_ord        INTEGER NOT NULL,      -- its place in its thread; never changes
  thread_id         TEXT NOT NULL,
  email_id          TEXT NOT NULL,
  command           TEXT NOT NULL,
  state             TEXT NOT NULL,         -- preparing | queued | running | settled
  outcome           TEXT,
  attempts          INTEGER NOT NULL DEFAULT 0,
  interruptions     INTEGER NOT NULL DEFAULT 0,
  worker            TEXT,
  fence             INTEGER NOT NULL DEFAULT 0,
  cancel_requested  INTEGER NOT NULL DEFAULT 0,
  task_token        TEXT,                  -- whom to call back when it settles
  preempted_token   TEXT,                  -- whom to tell that it was interrupted
  called_back       INTEGER NOT NULL DEFAULT 0,
  result            TEXT,                  -- JSON of model.jobs.JobResult
  recorded_at       REAL NOT NULL,
  queued_at         REAL,
  not_before        REAL,
  started_at        REAL,
  settled_at        REAL
) STRICT;
CREATE UNIQUE INDEX open_jobs ON jobs (key, ord) WHERE state <> 'settled';
CREATE INDEX open_threads ON jobs (key, thread_id, thread_ord) WHERE state <> 'settled';
CREATE INDEX owed_callbacks ON jobs (id)
  WHERE (state = 'settled' AND called_back = 0 AND task_token IS NOT NULL) OR preempted_token IS NOT NULL;
CREATE INDEX jobs_of_mail ON jobs (email_id);

CREATE TABLE claims (
  key               TEXT PRIMARY KEY,
  worker            TEXT NOT NULL,
  fence             INTEGER NOT NULL,
  beat              INTEGER NOT NULL,
  status            TEXT NOT NULL,         -- held | releasing | free
  claimed_at        REAL NOT NULL,
  last_activity_at  REAL NOT NULL,
  lease_expires_at  REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_of_worker ON claims (worker) WHERE status = 'held';

CREATE TABLE hints (                       -- the unclaimed queue: at most one hint per key
  key            TEXT PRIMARY KEY,
  waiting_since  REAL NOT NULL,
  preferred      TEXT,                     -- the worker that still has the checkout
  sent_at        REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX hints_by_wait ON hints (waiting_since);

CREATE TABLE interrupts (
  key            TEXT NOT NULL,
  job_id         TEXT NOT NULL,
  new_thread_id  TEXT NOT NULL,
  reason         TEXT NOT NULL,
  sent_at        REAL NOT NULL,
  PRIMARY KEY (key, job_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE interruptions (               -- the audit of what was interrupted, kept 30 days
  interruption_id  INTEGER PRIMARY KEY,
  email_id         TEXT NOT NULL,
  job_id           TEXT NOT NULL,
  worker           TEXT NOT NULL,
  times            INTEGER NOT NULL,
  reason           TEXT NOT NULL,
  at               REAL NOT NULL
) STRICT;

CREATE TABLE project_leases (              -- who may publish a project; over as soon as its job does not run
  project_id  TEXT PRIMARY KEY,
  fence       INTEGER NOT NULL,
  worker      TEXT NOT NULL,
  job_id      TEXT NOT NULL,
  job_fence   INTEGER NOT NULL,
  status      TEXT NOT NULL                -- held | free
) STRICT, WITHOUT ROWID;

CREATE TABLE workers (
  worker      TEXT PRIMARY KEY,
  name        TEXT NOT NULL,               -- what the page calls it
  pid         INTEGER NOT NULL,
  slots       INTEGER NOT NULL,
  started_at  REAL NOT NULL,
  ended_at    REAL
) STRICT, WITHOUT ROWID;

CREATE TABLE dead_letters (
  letter_id  INTEGER PRIMARY KEY,
  email_id   TEXT NOT NULL,
  job_id     TEXT,
  reason     TEXT NOT NULL,
  died_at    REAL NOT NULL,
  UNIQUE (email_id, reason)
) STRICT;

CREATE TABLE events (
  seq       INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused, so that a reader can go on from the last it saw
  at        REAL NOT NULL,
  kind      TEXT NOT NULL,
  email_id  TEXT,
  job_id    TEXT,
  key       TEXT,
  worker    TEXT,
  data      TEXT NOT NULL
) STRICT;
CREATE INDEX events_of_mail ON events (email_id, seq) WHERE email_id IS NOT NULL;
