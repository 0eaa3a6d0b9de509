-- What the console lists, counts and searches. Made from the other tables; a row may lag a moment behind them.
CREATE TABLE mail_index (
  number      INTEGER PRIMARY KEY,         -- rowid of raw_mails: the order in which mails came
  email_id    TEXT NOT NULL UNIQUE,
  received_at REAL NOT NULL,
  state       TEXT NOT NULL,               -- model.snapshot.MailState
  project_id  TEXT NOT NULL,
  user_id     TEXT NOT NULL,
  searchable  INTEGER NOT NULL DEFAULT 0   -- in mail_search: 0 not, 1 its envelope, 2 its text
) STRICT;
CREATE INDEX mail_index_by_state ON mail_index (state);
CREATE INDEX mail_index_by_project ON mail_index (project_id);
CREATE INDEX mail_index_by_project_state ON mail_index (project_id, state);

CREATE TABLE mail_counts (
  project_id  TEXT NOT NULL,
  state       TEXT NOT NULL,
  mails       INTEGER NOT NULL,
  PRIMARY KEY (project_id, state)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER mail_index_added AFTER INSERT ON mail_index BEGIN
  INSERT INTO mail_counts VALUES (new.project_id, new.state, 1) ON CONFLICT DO UPDATE SET mails = mails + 1;
END;
CREATE TRIGGER mail_index_removed AFTER DELETE ON mail_index BEGIN
  UPDATE mail_counts SET mails = mails - 1 WHERE project_id = old.project_id AND state = old.state;
  DELETE FROM mail_search WHERE rowid = old.number;
END;
CREATE TRIGGER mail_index_moved AFTER UPDATE OF project_id, state ON mail_index BEGIN
  UPDATE mail_counts SET mails = mails - 1 WHERE project_id = old.project_id AND state = old.state;
  INSERT INTO mail_counts VALUES (new.project_id, new.state, 1) ON CONFLICT DO UPDATE SET mails = mails + 1;
END;

CREATE VIRTUAL TABLE mail_search USING fts5 (sender, subject, body, tokenize = 'unicode61 remove_diacritics 2');

CREATE TABLE mail_index_cursor (           -- how far the index has read
  cursor_id  INTEGER PRIMARY KEY CHECK (cursor_id = 1),
  number     INTEGER NOT NULL,
  seq        INTEGER NOT NULL
) STRICT;
INSERT INTO mail_index_cursor VALUES (1, 0, (SELECT coalesce(max(seq), 0) FROM events));
