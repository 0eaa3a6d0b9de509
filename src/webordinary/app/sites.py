"""Sites as an operator sees them: added, shown, looked at."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from webordinary import sample
from webordinary.adapters.local.git.origins import Origins
from webordinary.app.services import Services
from webordinary.app.workshop import builders_of, jail_of
from webordinary.config import Config
from webordinary.mail.addresses import with_token
from webordinary.model.errors import Permanent
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, Sender
from webordinary.site.first_release import show_first
from webordinary.site.releases import Stage

BUILDER_NAMES = ("plain", "npm", "hugo", "mkdocs", "command")
DETECTED = "auto"
"""What an operator says for: the builder that fits the source."""


def project_of(services: Services, project_id: str) -> Project:
    """The settings of a project that exists."""
    if project := services.directory.project(project_id):
        return project
    raise Permanent(f"project {project_id} is gone: add it again with `webordinary project add`")


def site_url(config: Config, project_id: str, stage: Stage) -> str:
    """Where a site can be seen."""
    host = f"{project_id}.{config.domain}" if stage is Stage.PUBLIC else f"edit.{project_id}.{config.domain}"
    on_aws = config.backend == "aws" and not config.aws_endpoint
    return f"https://{host}/" if on_aws else f"http://{host}:{config.port}/"


def mailbox_of(services: Services, sender: str, project_id: str) -> str:
    """Where to write: somebody with several sites must say which one is meant."""
    several = len(services.directory.entries(sender)) > 1
    return with_token(services.config.mailbox, project_id) if several else services.config.mailbox


def diff_of(services: Services, project_id: str, commit: str) -> str:
    """What a commit changed, bounded; empty if its project or the commit is gone."""
    project = services.directory.project(project_id)
    return (services.history.diff(project, commit) or "") if project else ""


class Onboarded(NamedTuple):
    """What an operator should know of a site that was added."""

    unshown: tuple[str, ...]
    """Files of its repository that no site can show, because of their names."""
    problem: str
    """Why nothing is shown yet."""


def onboard(
    services: Services,
    project_id: str,
    repo: str,
    user_id: str,
    sender: str,
    progress: Callable[[str], None],
    agent: str = "",
    credential: bytes | None = None,
    builder: str = "",
) -> Onboarded:
    """Add a site and one person who may change it; doing it again changes only what differs.

    Without `agent` a new site gets the one of the settings, and a known one keeps its own.
    """
    key = ProjectUser(project_id, user_id)
    origins = origins_of(services)
    progress("looking at its repository")
    known = services.directory.project(project_id)
    address = origins.settle(project_id, repo)
    if known and known.repo != address:
        raise Permanent(f"{project_id} lives in {known.repo} already: use that as --repo, or another name")
    project = known or Project(project_id, address, agent=services.config.agent)
    if agent:
        project = replace(project, agent=agent)
    if builder:
        project = replace(project, builder="" if builder == DETECTED else builder)
    with services.credentials.on_trial(project_id, address, credential) if credential else nullcontext():
        unshown = origins.check(project)
    progress("making room for it")
    services.make_room(key)
    services.directory.add_project(project, services.clock.now())
    services.directory.add_sender(Sender(sender, key), services.clock.now())
    progress("showing it on the edit site")
    services.config.data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="webordinary-", dir=services.config.data) as name:
        jail = jail_of(services.config, "onboarding", Path(name))
        known_builders = builders_of(services.config, jail, Path(name))
        problem = show_first(project, origins.export, known_builders, services.releases)
    return Onboarded(unshown, problem or "")


def repository_left_by(services: Services, project_id: str) -> Path | None:
    """The repository that a removed site of this name left behind; its next one goes on with it."""
    left = services.config.data / "origins" / f"{project_id}.git"
    return left if left.exists() and services.directory.project(project_id) is None else None


def origins_of(services: Services) -> Origins:
    """The repositories that the projects live in."""
    data = services.config.data
    return Origins(data / "origins", data / "mirrors", services.credentials)


def keep_credential(services: Services, project_id: str, credential: bytes) -> None:
    """Use this credential for a project's repository from now on, if it is let in with it."""
    project = project_of(services, project_id)
    with services.credentials.on_trial(project_id, project.repo, credential):
        origins_of(services).check(project)


def ensure_sample(services: Services) -> None:
    """The sample site, its owner and its first release; again is harmless."""
    origin = sample.ensure_sample_origin(services.config.data / "origins" / f"{sample.PROJECT_ID}.git")
    onboard(services, sample.PROJECT_ID, str(origin), sample.USER_ID, sample.SENDER, lambda _: None)
