-- How many mails of a person became jobs within this hour.
CREATE INDEX jobs_by_time ON jobs (key, recorded_at);
