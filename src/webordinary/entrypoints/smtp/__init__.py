"""Mail comes in by SMTP, and test mails go out by it."""
