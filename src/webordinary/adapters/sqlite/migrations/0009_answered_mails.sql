-- An `undo` takes back what the mail asked for that it answers: which mail is that?
ALTER TABLE thread_messages ADD COLUMN email_id TEXT NOT NULL DEFAULT '';  -- the mail itself, or the one it answers
