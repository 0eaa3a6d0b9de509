-- What every job wrote and few read: each index is a page more to sync with each mail.

-- Only an interruption moves a job behind later ones of its thread, so only such jobs need an index by thread.
DROP INDEX open_threads;
CREATE INDEX moved_jobs ON jobs (key, thread_id, thread_ord) WHERE state <> 'settled' AND interruptions > 0;

-- A job bears the name of its mail, and is found by that.
DROP INDEX jobs_of_mail;

-- A job's place is behind the last open job of its key; `open_jobs` knows that.
DROP TABLE keys;
