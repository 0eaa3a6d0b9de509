"""The intake of mails, the mailbox that is read, and the secrets of the settings."""

from __future__ import annotations

from webordinary.adapters.mailboxes import ImapSettings
from webordinary.adapters.passwords import Password, password_source
from webordinary.compose.container import Container
from webordinary.config import Config
from webordinary.services.mail_intake import Intake
from webordinary.workflow.start import start


def intake_of(container: Container) -> Intake:
    """Accepts mails from any transport and starts their workflows."""
    return Intake(container.accept_mail, lambda email_id: start(email_id, container.workflows, container.raw_mails))


def push_secret(config: Config) -> Password:
    """The secret that signs mails posted by HTTP."""
    return password_source(config.push_secret, config.push_secret_file)


def relay_password(config: Config) -> Password:
    """The password at the server that sends replies."""
    return password_source(config.relay_password, config.relay_password_file)


def oidc_secret(config: Config) -> Password:
    """The secret of the console at the provider of its sign-in."""
    return password_source(config.oidc_client_secret, config.oidc_client_secret_file)


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
