-- How often a start of this job was cut off because everything went down, so that nobody blamed the job for it.

ALTER TABLE jobs ADD COLUMN outages INTEGER NOT NULL DEFAULT 0;
