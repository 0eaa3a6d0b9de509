-- Why a job is held: 'pause' or 'budget'. Before, that was told from how far off its time was.

ALTER TABLE jobs ADD COLUMN held TEXT;
UPDATE jobs SET held = 'pause', not_before = NULL
WHERE state <> 'settled' AND state = 'queued' AND not_before > CAST(strftime('%s', 'now') AS INTEGER) + 7 * 86400;
