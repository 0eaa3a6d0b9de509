-- The states that an execution came through, for the page of its mail: JSON of [name, retries] pairs.
ALTER TABLE executions ADD COLUMN path TEXT;
