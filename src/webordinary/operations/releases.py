"""What an operator does with releases: look at them, and go back to one; the branch of that site gets its content.

A rollback is not a job: the operator's command takes the project's lease under a new fence. It does not wait for a
build: the job that builds loses the lease and starts again from the new state; a push that has begun ends first. The
site is switched first. Then main, or live for the public site, gets a commit with the same content, so that the next
change does not restore what was rolled back.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from webordinary.adapters.git.origins import GitSourceRollback
from webordinary.compose.container import Container
from webordinary.compose.steps import brand_of
from webordinary.jobs.history import LiveState, Notes, words_of
from webordinary.jobs.ports import ProjectLeases, Releases, SourceRollback
from webordinary.jobs.report import lines_of, undone_words
from webordinary.jobs.site_files import Release, Stage, manifest_of
from webordinary.mail.addresses import with_token
from webordinary.mail.replies.answers import rolled_back
from webordinary.mail.replies.compose import compose
from webordinary.model.claims import OperatorToken, ProjectLease
from webordinary.model.errors import Permanent, Transient, WebOrdinaryError
from webordinary.model.events import Event, EventKind
from webordinary.model.jobs import ChangeLine, Job
from webordinary.model.mail import Command, ParsedMail
from webordinary.model.projects import Project, Sender
from webordinary.operations.onboarding import project_of


@dataclass(frozen=True, slots=True)
class KeptRelease:
    """One release as an operator sees it; `files` is 0 where it does not tell, `change` is empty."""

    release: str
    made_at: datetime
    files: int
    shown: bool
    change: str


def releases_of(services: Container, project_id: str, stage: Stage) -> list[KeptRelease]:
    """The kept releases of a site, the newest first."""
    project = project_of(services, project_id)
    shown, kept = services.releases.current(project_id, stage), services.releases.list(project_id, stage)
    changes = services.history.subjects(project, [release.name for release in kept])
    return [
        KeptRelease(
            release.name,
            release.made_at or datetime.fromtimestamp(0, UTC),
            release.files or len(manifest_of(release.path)),
            release.path == shown,
            changes.get(release.name, ""),
        )
        for release in kept
    ]


def roll_back(services: Container, project_id: str, stage: Stage, name: str) -> RolledBack:
    """Show an earlier release again, under the project's lease in the operator's own name."""
    project, operator = project_of(services, project_id), f"operator-{os.getpid()}-{secrets.token_hex(4)}"
    rollback = Rollback(
        leases=services.leases,
        releases=services.releases,
        source=GitSourceRollback(services.config.data / "mirrors", operator, services.credentials),
        now=services.clock.now,
        wait=time.sleep,
    )
    before = _state(services, project)
    with services.registered(operator):
        done = rollback.roll_back(project, stage, name, operator)
    data = {"project": project_id, "stage": stage.value, "release": done.release.name, "commit": done.commit}
    services.events.emit(Event(EventKind.SITE_ROLLED_BACK, worker=operator, data=data))
    if before and done.commit:
        done = _with_changes(services, project, done, before)
        now = services.clock.now()
        noted = project_of(services, project_id)
        noted = replace(noted, rolled_back_at=now.timestamp(), waiting_then=done.waiting)
        services.directory.add_project(noted, now)
        _tell_people(services, project_id, done, now)
    return done


def _state(services: Container, project: Project) -> LiveState | None:
    """What waits to be published; None where that cannot be found out, as it must not hold a rollback up."""
    public = services.releases.current(project.project_id, Stage.PUBLIC)
    with suppress(WebOrdinaryError, OSError):
        return services.history.state(project, public.name if public else "")
    return None


def _with_changes(services: Container, project: Project, done: RolledBack, before: LiveState) -> RolledBack:
    """With what the rollback took away and brought back."""
    after = _state(services, project)
    waiting = lines_of(after.waiting) if after else ()
    if done.release.stage is Stage.EDIT:
        lost, undos = services.history.put_back(project, before.main, done.release.name)
        gone = [ChangeLine(words_of(note), note.customer, sha) for sha, note in lost]
        back = [ChangeLine(undone_words(words_of(note)), note.customer, note.undoes) for _, note in undos]
        return replace(done, gone=tuple(gone), back=tuple(back), waiting=waiting)
    was, now = set(lines_of(before.waiting)), set(waiting)
    hidden: Notes = ()
    with suppress(WebOrdinaryError, OSError):  # as above: what waits now is told all the same
        hidden = services.history.no_longer_public(project, before, done.release.name)
    gone = [ChangeLine(words_of(note), note.customer, sha) for sha, note in hidden]
    known = {one.commit for one in gone}
    gone += [one for one in waiting if one not in was and one.commit not in known]
    back = [one for one in lines_of(before.waiting) if one not in now]
    return replace(done, gone=tuple(gone), back=tuple(back), waiting=waiting)


MOST_TOLD = 50
"""People of a site who are told of a rollback."""


def _tell_people(services: Container, project_id: str, done: RolledBack, now: datetime) -> None:
    """Write to each person of the site what is shown now; an answer goes on in their newest conversation."""
    if not (done.gone or done.back):
        return
    people = [one for one in services.directory.senders() if one.key.project_id == project_id][:MOST_TOLD]
    newest = {one.address: _newest_mail(services, one) for one in people}
    reply_to = with_token(services.config.mailbox, project_id)
    for person in people:
        job, mail = newest[person.address]
        thread_id = job.thread_id if job else ""
        spoken = [one for one in (mail, *(other for _, other in newest.values())) if one][:1]
        is_edit = done.release.stage is Stage.EDIT
        answer = rolled_back(done.gone, done.back, done.waiting, person.key.user_id, person.role, is_edit=is_edit)
        to = ParsedMail("", person.address, "", "", None, (), (), "", "", Command.EDIT, 0, automatic=False)
        reply = compose(
            answer, email_id=job.email_id if job else f"rolled-back/{project_id}/{person.address}", mail=to,
            mailbox=services.config.mailbox, sent_at=now, kind=f"rolled-back-{int(now.timestamp())}",
            thread_id=thread_id, reply_to="" if job else reply_to, brand=brand_of(services.config), earlier=spoken,
            subject=answer.headline,
        )  # fmt: skip
        if job and not services.profile.replies_leave_at_once:  # else its Message-ID changes, and it is filed then
            services.mail_deps.threads.add_message(thread_id, reply.message_id, job.email_id)
        services.outbox.put(reply, now)


def _newest_mail(services: Container, person: Sender) -> tuple[Job | None, ParsedMail | None]:
    """The newest mail of a person: the console shows the reply beside it, and it tells their language."""
    for job in services.jobs.settled_jobs(person.key, 1):
        mail = services.mail_deps.parsed_mails.load(job.email_id)
        if mail and mail.sender.lower() == person.address:
            return job, mail
    return None, None


WAIT_SECONDS = 30.0
_PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class RolledBack:
    """`commit` is the new one on the site's branch; None if the branch had that content, or does not exist yet."""

    release: Release
    flipped: bool
    commit: str | None = None
    gone: tuple[ChangeLine, ...] = ()
    """Changes that the site does not show any more."""
    back: tuple[ChangeLine, ...] = ()
    """Changes that it shows again."""
    waiting: tuple[ChangeLine, ...] = ()
    """What its people would publish now with `publish all`."""
    problem: str = ""
    """Why the branch has no such commit: the next change would restore what was rolled back."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """The ports of one rollback."""

    leases: ProjectLeases
    releases: Releases
    source: SourceRollback
    now: Callable[[], datetime]
    wait: Callable[[float], None]

    def roll_back(self, project: Project, stage: Stage, name: str, operator: str) -> RolledBack:
        """Activate the named release, or the one before the current one; raises Permanent if there is none."""
        release = self.find(project.project_id, stage, name)
        lease = self._take(project.project_id, OperatorToken(operator))
        try:
            self.leases.confirm(lease)
            flipped = self.releases.activate(release, lease.fence)
            if self.releases.current(project.project_id, stage) != release.path:
                raise Transient(f"a newer publication of {project.project_id} came first; look at it, then try again")
            return self._follow(project, release, flipped, lease)
        finally:
            self.leases.release(lease)

    def find(self, project_id: str, stage: Stage, name: str) -> Release:
        """By a prefix of its name; without a name, the release before the current one."""
        kept = self.releases.list(project_id, stage)
        if name:
            found = [release for release in kept if release.name.startswith(name)]
            if len(found) == 1:
                return found[0]
            words = "several releases begin" if found else "no kept release begins"
            raise Permanent(f"{words} with {name!r}; see `webordinary release list {project_id}`")
        paths = [release.path for release in kept]
        shown = self.releases.current(project_id, stage)
        before = kept[paths.index(shown) + 1 :] if shown in paths else ()
        if not before:
            raise Permanent(f"{project_id} has no earlier release on its {stage} site to go back to")
        return before[0]

    def _follow(self, project: Project, release: Release, flipped: bool, lease: ProjectLease) -> RolledBack:
        try:
            return RolledBack(release, flipped, self.source.restore(project, release.stage, release.name, lease))
        except (Transient, Permanent) as problem:
            return RolledBack(release, flipped, problem=str(problem))

    def _take(self, project_id: str, token: OperatorToken) -> ProjectLease:
        began = self.now()
        while True:
            lease = self.leases.overtake(project_id, token, self.now())
            if lease is not None:
                return lease
            if (self.now() - began).total_seconds() > WAIT_SECONDS:
                raise Transient(f"a change of {project_id} is being published right now; try again when it is done")
            self.wait(_PAUSE_SECONDS)
