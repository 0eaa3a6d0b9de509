"""Sites and mails that operators name."""

from __future__ import annotations

from webordinary.app.services import Services
from webordinary.entrypoints.cli.exits import CommandFailed
from webordinary.model.projects import Project

_WHOLE_ID, _LATELY = 64, 1000


def known_site(services: Services, name: str) -> Project:
    """The site of this name; else the operator is told where the names are."""
    if project := services.directory.project(name):
        return project
    raise CommandFailed(f"there is no site {name!r}", "see `webordinary project list`")


def known_mail(services: Services, start: str) -> str:
    """The whole id of the mail whose id begins so, of those received lately."""
    if len(start) == _WHOLE_ID:
        return start
    found = [mail.email_id for mail in services.overview.recent_mails(None, _LATELY) if mail.email_id.startswith(start)]
    if len(found) != 1:
        how_many = "several mails begin" if found else "no mail begins"
        raise CommandFailed(f"{how_many} with {start!r}", "what `webordinary status` shows of its id is enough")
    return found[0]
