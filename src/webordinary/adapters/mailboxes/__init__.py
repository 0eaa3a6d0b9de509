"""Places that mails wait in until they are taken: an IMAP mailbox, a drop folder."""
