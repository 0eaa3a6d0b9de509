"""Sites as an operator sees them: added, shown, given a domain, paused, removed.

Removal undoes everything that onboarding made; the repository is the customer's, and stays. A removed person leaves
the site as it is.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from webordinary.adapters.git.mirrors import EmptyRepository
from webordinary.adapters.git.origins import Origins
from webordinary.compose.container import Container
from webordinary.compose.sandbox import builders_of, sandbox_of
from webordinary.jobs.deploy import LEASE_WAIT_SECONDS
from webordinary.jobs.edit import choose_builder
from webordinary.jobs.ports import Builder, Releases
from webordinary.jobs.site_files import Stage
from webordinary.jobs.source import BuildFailed, SourceTree
from webordinary.mail.addresses import with_token
from webordinary.mail.ports import change_project
from webordinary.model.claims import OperatorToken, ProjectLease
from webordinary.model.errors import Permanent, Transient, WebOrdinaryError
from webordinary.model.events import Event, EventKind
from webordinary.model.jobs import Job, JobOutcome, JobResult, Settlement
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, Sender, existing, site_folder
from webordinary.operations import sample
from webordinary.operations.mails import renamed
from webordinary.pool.ports import RESUMED
from webordinary.pool.reconciler import Reconciler, end_workflow
from webordinary.pool.transitions import all_open

LOWEST_FENCE = 0
MAX_PROBLEM = 8000
Export = Callable[[Project, Path], tuple[str, SourceTree]]


def show_main(
    project: Project, export: Export, builders: Mapping[str, Builder], releases: Releases, fence: int
) -> BuildFailed | str:
    """Build main as it is now and show it on the edit site; returns the commit. What is shown already stays."""
    with tempfile.TemporaryDirectory(prefix="webordinary-") as scratch:
        commit, tree = export(project, Path(scratch) / "export")
        tree = tree.of(project)
        release = releases.find(project.project_id, Stage.EDIT, commit)
        if release is None:
            builder = choose_builder(builders, project.builder, tree)
            if isinstance(builder, BuildFailed):
                return builder
            staged = releases.stage(project.project_id, Stage.EDIT, fence)
            built = builder.build(tree, staged, None, OperatorToken("operator"))
            if isinstance(built, BuildFailed):
                return built
            release = releases.finish(project.project_id, Stage.EDIT, staged, commit)
        releases.activate(release, fence)
    return commit


BUILDER_NAMES = ("plain", "npm", "hugo", "mkdocs", "command")
DETECTED = "auto"
"""What an operator says for: the builder that fits the source."""


def project_of(services: Container, project_id: str) -> Project:
    """The settings of a project that exists."""
    return existing(services.directory.project(project_id), project_id)


def mailbox_of(services: Container, sender: str, project_id: str) -> str:
    """The address to write to; with several sites its token names the site."""
    several = len(services.directory.entries(sender)) > 1
    return with_token(services.config.mailbox, project_id) if several else services.config.mailbox


def moved_mailboxes(services: Container, sender: str, project_id: str) -> dict[str, str]:
    """The other site of a person, by name, with where to write for it: its address changed as this site was added."""
    others = [one for one in services.directory.entries(sender) if one.key.project_id != project_id]
    return {one.key.project_id: mailbox_of(services, sender, one.key.project_id) for one in others if len(others) == 1}


def diff_of(services: Container, project_id: str, commit: str) -> str:
    """What a commit changed, bounded; empty if its project or the commit is gone, or its repository cannot be read."""
    project = services.directory.project(project_id)
    with suppress(WebOrdinaryError):
        return (services.history.diff(project, commit) or "") if project else ""
    return ""


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
    by: str = "operator",
    folder: str | None = None,
) -> Onboarded:
    """Add a site and one person who may change it; doing it again changes only what differs.

    Without `agent` a new site gets the one of the settings, and a known one keeps its own. So does its `folder`.
    """
    key = ProjectUser(project_id, user_id)
    origins = origins_of(services)
    renamed(services, sender, key)
    progress("looking at its repository")
    known = services.directory.project(project_id)
    left = repository_left_by(services, project_id)
    address = origins.settle(project_id, repo)
    copied = known is None and left is None
    if left and address == str(left) and not origins.holds(project_id, repo):
        raise Permanent(
            f"{left} is kept from a removed site {project_id}, and lacks what is in {repo}: name another site, say "
            f"--repo {left} to go on with it, or move it away to begin anew"
        )
    if known and not _same_place(known.repo, address):
        raise Permanent(f"{project_id} lives in {known.repo} already: use that as --repo, or another name")
    project = known or Project(project_id, address, agent=services.config.agent)
    if folder is not None:
        project = _in_folder(services, project, folder)
    if project != known:  # one more person of a site is no question of folders
        _refuse_overlap(services, project)
    if agent:
        project = replace(project, agent=agent)
    if builder:
        project = replace(project, builder="" if builder == DETECTED else builder)
    unshown, problem = tuple[str, ...](), ""
    with services.credentials.on_trial(project_id, address, credential) if credential else nullcontext():
        try:
            unshown = origins.check(project)
            if folder:
                origins.check_folder(project)
        except EmptyRepository as empty:  # the site is built after the first push, by its webhook or `rebuild`
            problem = f"{empty}."
        except WebOrdinaryError:
            if copied:
                origins.forget_copy(project_id)
            raise
    progress("making room for it")
    services.provision(key)
    services.directory.add_project(project, services.clock.now())
    services.directory.add_sender(Sender(sender, key), services.clock.now())
    services.events.emit(Event(EventKind.SITE_ADDED, key=key, data={"by": by}))
    progress("showing it on the edit site")
    if not problem and services.releases.current(project_id, Stage.EDIT) is None:
        # The lowest fence there is: a release of a worker, made meanwhile or later, wins.
        problem = _build_and_note(services, project, LOWEST_FENCE)
    return Onboarded(unshown, problem)


def _same_place(one: str, other: str) -> bool:
    """Whether two addresses are the same; a folder of this machine may be written in several ways."""
    return one == other or (Path(one).is_absolute() and Path(one).resolve() == Path(other).resolve())


def _refuse_overlap(services: Container, project: Project) -> None:
    """Sites of one repository lie in folders apart: publishing and going back would change a neighbour's files."""
    for other in _neighbours(services, project):
        ours, theirs = (PurePosixPath(one.folder) for one in (project, other))
        if ours.is_relative_to(theirs) or theirs.is_relative_to(ours):
            where = f"in its folder {theirs}" if other.folder else "at its top"
            raise Permanent(
                f"{project.repo} is the repository of {other.project_id}, which lies {where}: several sites of a "
                "repository each need a folder of their own, beside the others (--folder)"
            )


_ELSEWHERE = re.compile(r"(?:[a-z+]+://)?(?:[^@/]*@)?(?P<host>[^/:@]+)(?::\d+(?=/))?[:/]/*(?P<path>.+)", re.I)


def _address_of(project: Project) -> str:
    """The address of its repository, the same for all spellings: https or ssh, with a user, a port or an ending."""
    address = project.repo.rstrip("/").removesuffix(".git").removeprefix("file://")
    found = _ELSEWHERE.fullmatch(address)
    return f"{found['host']}/{found['path']}".lower() if found else address


def _in_folder(services: Container, project: Project, folder: str) -> Project:
    moved = replace(project, folder=site_folder(folder))
    if moved != project and services.releases.current(project.project_id, Stage.EDIT) is not None:
        where = project.folder or "the top"
        raise Permanent(f"{project.project_id} shows {where} of its repository: remove it, then add it with its folder")
    return moved


def rebuild(services: Container, project_id: str, *, pushed: bool = False) -> str:
    """Build main as it is now and show it on the edit site; the problem if it fails.

    After a developer's push, nothing is built where it changed other sites of the same repository alone.
    It holds the lease of the project, so that no job deploys meanwhile; a failed build changes nothing that is shown.
    """
    project, operator = project_of(services, project_id), f"operator-{os.getpid()}-{secrets.token_hex(4)}"
    if pushed and not _concerned(services, project):
        return ""
    with services.registered(operator):
        lease = _lease(services, project_id, OperatorToken(operator))
        try:
            return _build_and_note(services, project, lease.fence)
        finally:
            services.leases.release(lease)


def _concerned(services: Container, project: Project) -> bool:
    """Whether a push to its repository may change what a site shows."""
    shown, others = services.releases.current(project.project_id, Stage.EDIT), _neighbours(services, project)
    if shown is None or project.build_problem or not others:
        return True
    return origins_of(services).concerns(project, shown.name, [one.folder for one in others])


def _neighbours(services: Container, project: Project) -> list[Project]:
    """The other sites of its repository."""
    others = (one for one in services.directory.projects() if one.project_id != project.project_id)
    return [one for one in others if _address_of(one) == _address_of(project)]


def _lease(services: Container, project_id: str, token: OperatorToken) -> ProjectLease:
    until = services.clock.monotonic() + LEASE_WAIT_SECONDS
    while (lease := services.leases.take(project_id, token, services.clock.now())) is None:
        if services.clock.monotonic() > until:
            raise Transient(f"a change of {project_id} is being published right now; try again when it is done")
        time.sleep(0.2)
    return lease


def _build_and_note(services: Container, project: Project, fence: int) -> str:
    """Build, and keep the problem with the settings of the site, where the console and `doctor` find it."""
    services.config.data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="webordinary-", dir=services.config.data) as name:
        sandbox = sandbox_of(services.config, "onboarding", Path(name))
        builders = builders_of(services.config, sandbox, Path(name))
        try:
            outcome = show_main(project, origins_of(services).export, builders, services.releases, fence)
        except Permanent as refused:  # a commit that is never checked out is a problem of its site, too
            outcome = BuildFailed(str(refused))
    project = project_of(services, project.project_id)
    failed = isinstance(outcome, BuildFailed)
    lines = (outcome.reason, outcome.log[-MAX_PROBLEM:].strip()) if isinstance(outcome, BuildFailed) else ()
    text = "\n".join(dict.fromkeys(filter(None, lines)))  # a log may be the reason alone
    if failed or project.build_problem:
        failed_at = services.clock.now().timestamp() if failed else 0.0
        change_project(
            services.directory,
            project.project_id,
            lambda one: replace(one, build_problem=text, build_failed_at=failed_at),
        )
    data = {"project": project.project_id, "stage": Stage.EDIT.value}
    if isinstance(outcome, BuildFailed):
        services.events.emit(Event(EventKind.SITE_NOT_BUILT, data=data | {"reason": outcome.reason[:500]}))
        return outcome.reason
    services.events.emit(Event(EventKind.SITE_PUBLISHED, data=data | {"commit": outcome}))
    return ""


@dataclass(frozen=True, slots=True)
class SiteHealth:
    """Whether a site shows what it should: `tone` is good, warn or bad."""

    tone: str
    words: str
    log: str = ""
    shown_at: datetime | None = None


def health_of(services: Container, project: Project) -> SiteHealth:
    """The health of one site, by what its edit site shows and its last build."""
    kept = services.releases.list(project.project_id, Stage.EDIT)
    path = services.releases.current(project.project_id, Stage.EDIT) if kept else None
    shown = next((release for release in kept if release.path == path), None)
    at = shown.made_at if shown else None
    if shown is None:
        why = "nothing is shown: its first build failed" if project.build_problem else "nothing is shown yet"
        return SiteHealth("bad", why, project.build_problem)
    if project.build_problem and at and at.timestamp() < project.build_failed_at:
        return SiteHealth("warn", "its last build failed; the release before is shown", project.build_problem, at)
    if project.paused:
        return SiteHealth("warn", "paused: its mails wait", shown_at=at)
    return SiteHealth("good", "in order", shown_at=at)


def hook_mac(project: Project | None) -> hmac.HMAC | None:
    """What the body of a webhook's call goes through, as GitHub, Gitea and Forgejo sign it; None without a webhook."""
    return hmac.new(project.hook_secret.encode(), digestmod=hashlib.sha256) if project and project.hook_secret else None


def repository_left_by(services: Container, project_id: str) -> Path | None:
    """The repository that a removed site of this name left behind; a new site of the name uses it."""
    left = services.config.data / "origins" / f"{project_id}.git"
    return left if left.exists() and services.directory.project(project_id) is None else None


def origins_of(services: Container) -> Origins:
    """The repositories that the projects live in."""
    data = services.config.data
    return Origins(data / "origins", data / "mirrors", services.credentials)


def keep_credential(services: Container, project_id: str, credential: bytes, by: str = "operator") -> None:
    """Use this credential for a project's repository from now on, if it is let in with it."""
    project = project_of(services, project_id)
    with services.credentials.on_trial(project_id, project.repo, credential):
        origins_of(services).check(project)
    services.events.emit(Event(EventKind.SITE_CHANGED, data={"project": project_id, "by": by}))


def forget_credential(services: Container, project_id: str, by: str = "operator") -> bool:
    """Remove the credential; the machine's own access to the repository is used again. False if there was none."""
    project_of(services, project_id)
    forgotten = services.credentials.forget(project_id)
    services.events.emit(Event(EventKind.SITE_CHANGED, data={"project": project_id, "by": by}))
    return forgotten


def ensure_sample(services: Container) -> None:
    """The sample site, its owner and its first release; again is harmless."""
    origin = sample.ensure_sample_origin(services.config.data / "origins" / f"{sample.PROJECT_ID}.git")
    onboard(services, sample.PROJECT_ID, str(origin), sample.USER_ID, sample.SENDER, lambda _: None)


def pause(services: Container, project_id: str, *, paused: bool, by: str = "operator") -> int:
    """Stop or resume the work on a site; returns how many people's jobs a resume set free."""
    if services.directory.project(project_id) is None:
        raise Permanent(f"there is no site {project_id!r}: see `webordinary project list`")
    change_project(services.directory, project_id, lambda one: replace(one, paused=paused))
    services.events.emit(Event(EventKind.SITE_CHANGED, data={"project": project_id, "by": by}))
    return 0 if paused else resume_jobs(services, project_id)


def resume_jobs(services: Container, project_id: str) -> int:
    """Let what waits on a site look again now; returns how many people's jobs did."""
    keys = services.jobs.let_go(project_id)
    for job in (job for key in keys for job in services.jobs.open_jobs(key, limit=1)):
        services.pool.tickets.notify_owner(job, RESUMED)
    Reconciler(services.pool, services.events).run_once(services.clock.now())
    return len(keys)


_STOPPED = Settlement(
    JobOutcome.CANCELLED,
    JobResult("Your address may not change this site any more, so this was stopped. Nothing was changed."),
)


@dataclass(frozen=True, slots=True)
class ProjectRemoval:
    """What a removal would delete."""

    project: Project
    senders: tuple[Sender, ...]
    keys: tuple[ProjectUser, ...]
    """Everybody who could change it, or has work under way on it."""
    busy: tuple[ProjectUser, ...]
    """Whose jobs are still open; without their project they end as dead letters."""


@dataclass(frozen=True, slots=True)
class SenderRemoval:
    """An address that will not change a site any more."""

    project_id: str
    address: str
    entry: Sender | None
    """None if it may not change it now."""
    others: tuple[Sender, ...]
    """Who still may."""
    jobs: tuple[Job, ...]
    """Its open jobs, in whichever conversation they were asked for."""


def plan_project_removal(services: Container, project_id: str) -> ProjectRemoval:
    """What removing a project would take away; raises Permanent if it is not there."""
    project = project_of(services, project_id)
    senders = _senders_of(services, project_id)
    keys = _keys_of(services, project_id, senders)
    busy = tuple(key for key in keys if services.jobs.open_jobs(key, limit=1))
    return ProjectRemoval(project, senders, keys, busy)


def plan_sender_removal(services: Container, project_id: str, address: str) -> SenderRemoval:
    """What it would mean that this address may not change the project any more."""
    senders = _senders_of(services, project_id)
    open_jobs = (job for key in _keys_of(services, project_id, senders) for job in all_open(services.jobs, key))
    return SenderRemoval(
        project_id,
        address,
        next((sender for sender in senders if sender.address == address), None),
        tuple(sender for sender in senders if sender.address != address),
        tuple(job for job in open_jobs if _asked_by(services, job) == address),
    )


def remove_person(
    services: Container, leaving: SenderRemoval, *, force: bool = False, by: str = "operator"
) -> tuple[Job, ...]:
    """Let an address change nothing more, then stop what it asked for; again is harmless. What was stopped.

    Its conversations stay, as others of the site may go on in them; on AWS that is what its queues are kept for.
    """
    if leaving.jobs and not force:
        raise Permanent(
            f"{leaving.address} has open jobs on {leaving.project_id} ({len(leaving.jobs)}): wait until they are done, "
            "see `webordinary queues`, or say --force to stop them"
        )
    services.directory.remove_sender(leaving.address, leaving.project_id)
    services.events.emit(Event(EventKind.SITE_CHANGED, data={"project": leaving.project_id, "by": by}))
    asked = plan_sender_removal(services, leaving.project_id, leaving.address).jobs  # one may have come meanwhile
    for job in asked:
        end_workflow(job, _STOPPED, services.pool, services.clock.now())
    return asked


def _asked_by(services: Container, job: Job) -> str:
    mail = services.mail_deps.parsed_mails.load(job.email_id)
    return mail.sender.lower() if mail else ""


def _senders_of(services: Container, project_id: str) -> tuple[Sender, ...]:
    return tuple(sender for sender in services.directory.senders() if sender.key.project_id == project_id)


def _keys_of(services: Container, project_id: str, senders: Sequence[Sender]) -> tuple[ProjectUser, ...]:
    """Those of the people of a project, and of people who left it while others go on in their conversations."""
    return tuple(dict.fromkeys((*(sender.key for sender in senders), *services.jobs.keys_of(project_id))))


def remove(
    services: Container,
    leaving: ProjectRemoval,
    progress: Callable[[str], None],
    *,
    force: bool = False,
    by: str = "operator",
) -> None:
    """Remove the site. A second call continues after a crash: the records, which name the rest, go last."""
    project_id = leaving.project.project_id
    if leaving.busy and not force:
        raise Permanent(
            f"{project_id} has open jobs ({', '.join(map(str, leaving.busy))}): wait until they are done, see "
            "`webordinary queues`, or say --force to give them up"
        )
    progress("removing what was made for it")
    services.deprovision(project_id, leaving.keys)
    services.credentials.forget(project_id)
    services.directory.remove_project(project_id)
    _release_claims(services, leaving.keys)
    services.events.emit(Event(EventKind.SITE_CHANGED, data={"project": project_id, "by": by}))


def _release_claims(services: Container, keys: Sequence[ProjectUser]) -> None:
    """A worker keeps a claim for the next mail, which never comes to a site that is gone. One with open jobs ends them
    first."""
    for key in keys:
        claim = None if services.jobs.open_jobs(key, limit=1) else services.pool.claims.look(key)
        if claim and services.pool.claims.begin_release(claim):
            services.pool.claims.end_release(claim)
            services.events.emit(Event(EventKind.CLAIM_RELEASED, key=key, worker=claim.worker))
