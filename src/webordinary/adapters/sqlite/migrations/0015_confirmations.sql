-- Held mails can be released: by their sender, who is asked at the registered address, or by the operator.
ALTER TABLE raw_mails ADD COLUMN released INTEGER NOT NULL DEFAULT 0;

CREATE TABLE confirmations (              -- the questions; a token itself is never stored
  digest      TEXT PRIMARY KEY,           -- SHA-256 of the token
  email_id    TEXT NOT NULL,              -- the held mail
  address     TEXT NOT NULL,              -- the registered address that was asked
  day         TEXT NOT NULL,
  expires_at  REAL NOT NULL,
  used_at     REAL
) STRICT;
CREATE INDEX confirmations_of_day ON confirmations (address, day);
CREATE INDEX confirmations_of_mail ON confirmations (email_id);
