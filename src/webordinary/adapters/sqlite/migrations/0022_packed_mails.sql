-- The record of a parsed mail is compressed as replies are; rows of earlier versions stay as they are until they go.
CREATE TABLE new_parsed_mails (
  email_id    TEXT PRIMARY KEY,
  message_id  TEXT NOT NULL,
  sender      TEXT NOT NULL,
  subject     TEXT NOT NULL,
  record      BLOB NOT NULL,               -- JSON of model.mail.ParsedMail, packed
  parsed_at   REAL NOT NULL
) STRICT;
INSERT INTO new_parsed_mails (email_id, message_id, sender, subject, record, parsed_at)
  SELECT email_id, message_id, sender, subject, CAST(record AS BLOB), parsed_at FROM parsed_mails;
DROP TABLE parsed_mails;
ALTER TABLE new_parsed_mails RENAME TO parsed_mails;
