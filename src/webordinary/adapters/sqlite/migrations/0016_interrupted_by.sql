-- The thread whose mail interrupted the job; empty if it is not known, and for a job that used up its time.
ALTER TABLE interruptions ADD COLUMN new_thread_id TEXT NOT NULL DEFAULT '';
CREATE INDEX interruptions_of_mail ON interruptions (email_id);
