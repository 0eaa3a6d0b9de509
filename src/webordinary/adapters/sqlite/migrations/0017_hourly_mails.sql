-- Admitted mails of this hour by scope: 'project amelia', 'domain example.com'.
CREATE TABLE hourly_mails (
  scope     TEXT NOT NULL,
  hour      INTEGER NOT NULL,             -- hours since the epoch
  email_id  TEXT NOT NULL,
  PRIMARY KEY (scope, hour, email_id)
) STRICT, WITHOUT ROWID;
