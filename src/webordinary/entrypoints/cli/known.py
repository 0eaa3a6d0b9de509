"""Sites, mails and addresses that operators name."""

from __future__ import annotations

import re

from webordinary.app.services import Services
from webordinary.entrypoints.cli.exits import CommandFailed, Exit
from webordinary.model.names import may_name_a_project
from webordinary.model.projects import Project

_WHOLE_ID, _LATELY, _SHOWN = 64, 1000, 100
_ADDRESS = re.compile(r"[^@\s<>]{1,64}@[^@\s<>]{1,253}")


def mail_address(text: str) -> str:
    """A mail address, as the directory keeps it."""
    if not _ADDRESS.fullmatch(text):
        raise CommandFailed(f"{text!r} is not a mail address", "write --sender name@example.com", Exit.USAGE)
    return text.lower()


def known_site(services: Services, name: str) -> Project:
    """The site of this name; else the operator is told where the names are."""
    if may_name_a_project(name) and (project := services.directory.project(name)):
        return project
    raise CommandFailed(f"there is no site {name[:_SHOWN]!r}", "see `webordinary project list`")


def known_mail(services: Services, start: str) -> str:
    """The whole id of the mail whose id begins so, of those received lately."""
    if len(start) == _WHOLE_ID and services.overview.mail(start):
        return start
    found = [mail.email_id for mail in services.overview.recent_mails(None, _LATELY) if mail.email_id.startswith(start)]
    if len(found) != 1:
        how_many = "several mails begin" if found else "no mail begins"
        raise CommandFailed(
            f"{how_many} with {start[:_SHOWN]!r}", "what `webordinary status` shows of its id is enough"
        )
    return found[0]
