-- The order of a job is the id of its row, so that an order is never used twice and costs no counter.
-- Settled jobs keep the orders that they had; open ones get new ones, in the order of their queues.

UPDATE jobs SET id = renumbered.id, ord = renumbered.id
FROM (
  SELECT id AS old, (SELECT max(id) FROM jobs) + row_number() OVER (ORDER BY key, ord) AS id
  FROM jobs WHERE state <> 'settled') AS renumbered
WHERE jobs.id = renumbered.old;
