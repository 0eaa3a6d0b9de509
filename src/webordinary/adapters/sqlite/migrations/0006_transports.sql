-- What transports know more: verdicts on a mail that came, and what became of a reply that left.

ALTER TABLE raw_mails ADD COLUMN verdicts TEXT;   -- JSON of model.mail.TransportVerdicts
ALTER TABLE outbox ADD COLUMN thread_id TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN sent_as TEXT;       -- the Message-ID that a transport gave it in place of ours
ALTER TABLE outbox ADD COLUMN bounced TEXT;       -- why it came back
