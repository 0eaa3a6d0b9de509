-- The charts of the pool: one row for ten minutes, kept for a month. Counters grow; a chart shows their differences.
CREATE TABLE samples (
  at      INTEGER PRIMARY KEY,             -- the beginning of the ten minutes
  waiting INTEGER NOT NULL,                -- the most jobs that waited
  record  TEXT NOT NULL                    -- JSON of pool.history.Sample
) STRICT;
CREATE INDEX costs_by_time ON costs (at);
