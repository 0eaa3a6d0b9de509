"""The first mail of a new site: on an emulator it is sent, on AWS itself the operator is told what to write."""

from __future__ import annotations

import argparse
import secrets

from webordinary.app.backends import AWS
from webordinary.app.services import Services
from webordinary.config import Config
from webordinary.entrypoints.cli.exits import CommandFailed, Exit
from webordinary.mail.write import Letter, write_mail

SUBJECT, TEXT = "A first mail", "What can I ask you to change on my site?"
"""A question that every agent answers: it goes the whole way and changes nothing, whatever else is under way."""


def add_flag(parser: argparse.ArgumentParser) -> None:
    """Whether one is sent."""
    about = (
        "send a first mail, which changes nothing (on an emulator of AWS, there for a new site also if not asked for)"
    )
    parser.add_argument("--sample-mail", action=argparse.BooleanOptionalAction, default=None, help=about)


def send(services: Services, sender: str, mailbox: str, *, wanted: bool | None, new: bool) -> str | None:
    """Post it where it can be posted; the name that it goes by. A site that is there already gets one if it is wanted.

    One more person's first mail is their own: an answer to what they never wrote would only puzzle them.
    """
    config = services.config
    if config.backend != AWS or not config.aws_endpoint:
        if wanted:
            raise CommandFailed(
                "a sample mail is posted on an emulator of AWS only", f"write one to {mailbox}", Exit.USAGE
            )
        return None
    if not (new if wanted is None else wanted):
        return None
    from webordinary.app.cloud import Cloud  # noqa: PLC0415 - an extra, and slow to import
    from webordinary.app.cloud_operating import post_mail  # noqa: PLC0415

    assert isinstance(services, Cloud)
    letter = Letter(sender, mailbox, SUBJECT, TEXT, message_id=f"<{secrets.token_hex(16)}@example.com>")
    return post_mail(services, write_mail(letter, services.clock.now()), sender, mailbox)


def words(config: Config, project_id: str, sender: str, mailbox: str, email_id: str | None, *, new: bool) -> list[str]:
    """What to do next."""
    if email_id:
        return [
            f"a first mail is on its way as {email_id[:12]}, and changes nothing: {TEXT}",
            "`webordinary status` shows what becomes of it",
        ]
    if config.backend != AWS or config.aws_endpoint or not new:
        return []
    return [
        f"visitors reach it once CloudFront serves it: add {project_id} to the projects of your deployment, as in",
        f"  webordinary aws deploy -c domain={config.domain} -c projects=…,{project_id}",
        f"then write from {sender} to {mailbox}: {TEXT}",
        "it changes nothing, goes the whole way, and `webordinary status --backend aws` shows what becomes of it",
    ]
