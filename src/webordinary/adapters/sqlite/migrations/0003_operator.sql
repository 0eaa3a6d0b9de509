-- A letter knows after how many redrives its mail died, so that redriving it twice starts one execution.
-- Its number is never used again: the operator is told of each letter once.
CREATE TABLE new_dead_letters (
  letter_id  INTEGER PRIMARY KEY AUTOINCREMENT,
  email_id   TEXT NOT NULL,
  job_id     TEXT,
  reason     TEXT NOT NULL,
  died_at    REAL NOT NULL,
  redrives   INTEGER NOT NULL DEFAULT 0,
  UNIQUE (email_id, redrives, reason)
) STRICT;
INSERT INTO new_dead_letters (letter_id, email_id, job_id, reason, died_at)
  SELECT letter_id, email_id, job_id, reason, died_at FROM dead_letters;
DROP TABLE dead_letters;
ALTER TABLE new_dead_letters RENAME TO dead_letters;

CREATE TABLE alarms (                      -- what the operator was told by mail
  name     TEXT PRIMARY KEY,
  mail     TEXT NOT NULL,                  -- kind of the mail in the outbox; a summary tells of several
  told_at  REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX alarms_by_time ON alarms (told_at);

CREATE TABLE tallies (                     -- counts of events, kept before the events themselves are forgotten
  tally_id  INTEGER PRIMARY KEY CHECK (tally_id = 1),
  record    TEXT NOT NULL                  -- JSON of pool.tally.Tally
) STRICT;

CREATE INDEX outbox_given_up ON outbox (outbox_id) WHERE given_up = 1;
