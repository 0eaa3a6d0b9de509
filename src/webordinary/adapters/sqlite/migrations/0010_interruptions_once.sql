-- Who answers for a job asks for its last interruption to be written down, which has mostly been done before.
DELETE FROM interruptions
WHERE interruption_id NOT IN (SELECT min(interruption_id) FROM interruptions GROUP BY job_id, times);
CREATE UNIQUE INDEX interruptions_of_jobs ON interruptions (job_id, times);
