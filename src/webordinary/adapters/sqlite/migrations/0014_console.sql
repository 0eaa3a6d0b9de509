-- Users of the console, their sessions and tokens (digests only), and what they did.
CREATE TABLE console_users (
  name TEXT PRIMARY KEY,
  role TEXT NOT NULL,  -- viewer | operator
  password_hash TEXT NOT NULL,
  created_at REAL NOT NULL
);
CREATE TABLE console_secrets (
  digest TEXT PRIMARY KEY,
  kind TEXT NOT NULL,  -- session | api | link
  user TEXT NOT NULL REFERENCES console_users (name),
  label TEXT NOT NULL,
  created_at REAL NOT NULL,
  expires_at REAL NOT NULL
);
CREATE INDEX console_secrets_of_user ON console_secrets (user, kind, created_at);
CREATE TABLE console_actions (
  id INTEGER PRIMARY KEY,
  at REAL NOT NULL,
  user TEXT NOT NULL,
  action TEXT NOT NULL,
  client TEXT NOT NULL
);
