-- Mails are forgotten with all that was made of them; those that were never admitted go sooner.
ALTER TABLE raw_mails ADD COLUMN stopped TEXT NOT NULL DEFAULT '';  -- held | refused
CREATE INDEX raw_mails_not_admitted ON raw_mails (received_at, size) WHERE stopped <> '' OR placed = 0;
CREATE INDEX thread_messages_of_mail ON thread_messages (email_id);
CREATE INDEX outbox_by_time ON outbox (created_at);
