-- What a sender may do: ask for changes (editor), publish them (publisher), or both.
ALTER TABLE senders ADD COLUMN role TEXT NOT NULL DEFAULT 'both' CHECK (role IN ('both', 'editor', 'publisher'));
