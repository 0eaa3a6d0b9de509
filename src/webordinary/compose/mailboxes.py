"""The mailbox that is read, put together from the settings."""

from __future__ import annotations

from webordinary.adapters.mailboxes.imap import ImapSettings
from webordinary.adapters.passwords import password_source
from webordinary.config import Config


def imap_settings(config: Config) -> ImapSettings:
    """The IMAP mailbox of the settings."""
    password = password_source(config.imap_password, config.imap_password_file, config.imap_token_command)
    return ImapSettings(
        host=config.imap_host,
        port=config.imap_port,
        user=config.imap_user or config.mailbox,
        password=password,
        is_token=bool(config.imap_token_command),
        security=config.imap_security,
        folder=config.imap_folder,
        taken_folder=config.imap_taken_folder,
        max_bytes=config.max_mail_bytes,
        oldest_days=config.retention_days,
    )
