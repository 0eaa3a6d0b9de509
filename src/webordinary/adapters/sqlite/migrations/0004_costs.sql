-- What agents cost, one row a run; kept longer than jobs, because money is asked about later.

CREATE TABLE costs (
  cost_id     INTEGER PRIMARY KEY,
  project_id  TEXT NOT NULL,
  day         TEXT NOT NULL,               -- UTC, 2026-05-01
  thread_id   TEXT NOT NULL,
  job_id      TEXT NOT NULL,
  usd         REAL NOT NULL,
  at          REAL NOT NULL
) STRICT;
CREATE INDEX costs_by_day ON costs (project_id, day);
CREATE INDEX costs_by_job ON costs (job_id);
