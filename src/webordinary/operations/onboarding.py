"""Sites as an operator sees them: added, shown, looked at."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from webordinary.adapters.git.origins import Origins
from webordinary.compose.container import Container
from webordinary.compose.sandbox import builders_of, sandbox_of
from webordinary.jobs.ports import Builder, Releases
from webordinary.jobs.publish import choose_builder
from webordinary.jobs.site_files import Stage
from webordinary.jobs.source import BuildFailed, SourceTree
from webordinary.mail.addresses import with_token
from webordinary.model.errors import Permanent
from webordinary.model.events import Event, EventKind
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, Sender
from webordinary.operations import sample
from webordinary.pool.ports import RESUMED
from webordinary.pool.reconciler import Reconciler

LOWEST_FENCE = 0
Export = Callable[[Project, Path], tuple[str, SourceTree]]


def show_first(project: Project, export: Export, builders: Mapping[str, Builder], releases: Releases) -> str | None:
    """Show main on the edit site unless something is shown there; the reason in words if it cannot be built.

    It uses the lowest fence there is: whatever a worker publishes meanwhile or later wins.
    """
    if releases.current(project.project_id, Stage.EDIT) is not None:
        return None
    with tempfile.TemporaryDirectory(prefix="webordinary-") as scratch:
        commit, tree = export(project, Path(scratch) / "export")
        builder = choose_builder(builders, project.builder, tree)
        if isinstance(builder, BuildFailed):
            return builder.reason
        staged = releases.stage(project.project_id, Stage.EDIT, LOWEST_FENCE)
        own = replace(tree, project_id=project.project_id)
        built = builder.build(own, staged, None, _Unhurried())
        if isinstance(built, BuildFailed):
            return built.reason
        releases.activate(releases.finish(project.project_id, Stage.EDIT, staged, commit), LOWEST_FENCE)
    return None


class _Unhurried:
    """A hold for work that nobody interrupts and that carries no claim."""

    worker = "operator"
    fence = LOWEST_FENCE
    job_id = ""

    def check(self) -> None:
        """Go on."""

    @contextmanager
    def on_stop(self, stop: Callable[[], None]) -> Iterator[None]:
        """Nothing is coming."""
        yield


BUILDER_NAMES = ("plain", "npm", "hugo", "mkdocs", "command")
DETECTED = "auto"
"""What an operator says for: the builder that fits the source."""


def project_of(services: Container, project_id: str) -> Project:
    """The settings of a project that exists."""
    if project := services.directory.project(project_id):
        return project
    raise Permanent(f"project {project_id} is gone: add it again with `webordinary project add`")


def mailbox_of(services: Container, sender: str, project_id: str) -> str:
    """Where to write: somebody with several sites must say which one is meant."""
    several = len(services.directory.entries(sender)) > 1
    return with_token(services.config.mailbox, project_id) if several else services.config.mailbox


def diff_of(services: Container, project_id: str, commit: str) -> str:
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
    services: Container,
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
    services.provision(key)
    services.directory.add_project(project, services.clock.now())
    services.directory.add_sender(Sender(sender, key), services.clock.now())
    services.events.emit(Event(EventKind.SITE_ADDED, key=key))
    progress("showing it on the edit site")
    services.config.data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="webordinary-", dir=services.config.data) as name:
        jail = sandbox_of(services.config, "onboarding", Path(name))
        known_builders = builders_of(services.config, jail, Path(name))
        problem = show_first(project, origins.export, known_builders, services.releases)
    return Onboarded(unshown, problem or "")


def repository_left_by(services: Container, project_id: str) -> Path | None:
    """The repository that a removed site of this name left behind; its next one goes on with it."""
    left = services.config.data / "origins" / f"{project_id}.git"
    return left if left.exists() and services.directory.project(project_id) is None else None


def origins_of(services: Container) -> Origins:
    """The repositories that the projects live in."""
    data = services.config.data
    return Origins(data / "origins", data / "mirrors", services.credentials)


def keep_credential(services: Container, project_id: str, credential: bytes) -> None:
    """Use this credential for a project's repository from now on, if it is let in with it."""
    project = project_of(services, project_id)
    with services.credentials.on_trial(project_id, project.repo, credential):
        origins_of(services).check(project)


def ensure_sample(services: Container) -> None:
    """The sample site, its owner and its first release; again is harmless."""
    origin = sample.ensure_sample_origin(services.config.data / "origins" / f"{sample.PROJECT_ID}.git")
    onboard(services, sample.PROJECT_ID, str(origin), sample.USER_ID, sample.SENDER, lambda _: None)


def pause(services: Container, project_id: str, *, paused: bool) -> int:
    """Stop or resume the work on a site; returns how many people's jobs a resume set free."""
    project = services.directory.project(project_id)
    if project is None:
        raise Permanent(f"there is no site {project_id!r}: see `webordinary project list`")
    services.directory.add_project(replace(project, paused=paused), services.clock.now())
    return 0 if paused else resume_jobs(services, project_id)


def resume_jobs(services: Container, project_id: str) -> int:
    """Let what waits on a site look again now; returns how many people's jobs did."""
    keys = services.jobs.let_go(project_id)
    for job in (job for key in keys for job in services.jobs.open_jobs(key, limit=1)):
        services.pool.tickets.notify_owner(job, RESUMED)
    Reconciler(services.pool, services.events).run_once(services.clock.now())
    return len(keys)
