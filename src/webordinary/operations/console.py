"""What an operator does from the console and the command line: one function for both."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from webordinary.compose.container import Container, site_url
from webordinary.jobs.site_files import Stage
from webordinary.mail.ports import Undelivered
from webordinary.model.errors import Permanent, WebOrdinaryError
from webordinary.model.events import Event, EventKind
from webordinary.model.jobs import DeadLetter
from webordinary.model.names import ProjectUser, job_id_of
from webordinary.model.projects import DomainFinding, Project, Sender, site_folder
from webordinary.model.snapshot import MailFilter, MailPage, MailState, MailSummary, Spent, state_of
from webordinary.operations import mails, onboarding, releases, site_settings
from webordinary.operations.onboarding import SiteHealth
from webordinary.operations.releases import KeptRelease
from webordinary.pool.metrics import PoolHistory
from webordinary.workflow.start import redrive

MOST_ITEMS = 200
SHOWN_STATES = (MailState.HELD, MailState.NOT_UNDERSTOOD, MailState.FAILED, MailState.REFUSED)
"""Of mails that need a person; dead letters and undelivered replies are listed beside them."""
COST_DAYS = 30
RECENTLY = timedelta(days=3)
PAGE_SIZE = 25
MOST_QUOTED = 50
"""Mails of a kind whose words are shown; reading each is a call."""
QUOTED_CHARACTERS = 300
MOST_REHEARSALS = 20
"""Their results are kept in memory, the newest."""
MOST_BUILDS = 20
"""Asked for and not done; they run one after another."""
_REMOTE = re.compile(r"(https?|ssh|git)://[^\s/]+/\S+|[\w.-]+@[\w.-]+:\S+")


@dataclass(frozen=True, slots=True)
class SiteState:
    """One site as an operator sees it."""

    project: Project
    health: SiteHealth
    building: bool
    counts: Mapping[MailState, int]
    people: tuple[Sender, ...]
    addresses: dict[Stage, str]
    shown: dict[Stage, bool]
    releases: dict[Stage, list[KeptRelease]]
    costs: Sequence[tuple[str, float]]
    """By day, the newest first."""
    daily_cap_usd: float
    credential: str
    waiting: int
    """Open jobs."""
    mailboxes: Mapping[str, str]
    """Where each person writes, by address."""
    lacks_publisher: bool
    """It has people, and none of them may publish it."""


@dataclass(frozen=True, slots=True)
class NewSite:
    """A site to add, and one person who may change it."""

    key: ProjectUser
    repo: str
    sender: str
    credential: str = ""
    folder: str = ""


@dataclass(frozen=True, slots=True)
class SiteSetup:
    """A site that is being added, or could not be."""

    doing: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A mail that runs, or ran, once more on copies: see `operations.replay`."""

    done: bool = False
    outcome: str = ""
    reply: str = ""
    diff: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class NeedsPerson:
    """What waits for a decision of the operator."""

    held: Sequence[MailSummary]
    not_understood: Sequence[MailSummary]
    failed: Sequence[MailSummary]
    refused: Sequence[MailSummary]
    """Of addresses that may change nothing: perhaps a customer who writes from another one."""
    authors: Mapping[str, str]
    """The address in From of refused mails, by mail; that of the envelope may be another."""
    dead_letters: Sequence[DeadLetter]
    undelivered: Sequence[Undelivered]
    broken_sites: Sequence[Project]
    """Sites that show nothing."""
    unreleasable: Mapping[str, str] = field(default_factory=dict)
    """Why a held mail cannot be released, by mail."""
    words: Mapping[str, str] = field(default_factory=dict)
    """The beginning of what the customer wrote, by mail: of mails that were admitted, and left undone."""


def redrive_letter(services: Container, dead_letter: DeadLetter) -> str:
    """Run a given-up mail once more; returns the name of its execution. Idempotent."""
    services.raw_mails.load(dead_letter.email_id)  # without its mail it could only be given up again
    name = redrive(dead_letter, services.workflows, services.dead_letters)
    data = {"redrive": dead_letter.redrives + 1}
    services.events.emit(Event(EventKind.DEAD_LETTER_REDRIVEN, dead_letter.email_id, dead_letter.job_id, data=data))
    return name


def drop_letter(services: Container, dead_letter: DeadLetter) -> bool:
    """Delete a dead letter; its mail stays. False if there is none."""
    if not services.dead_letters.remove(dead_letter.letter_id):
        return False
    data = {"reason": dead_letter.reason[:200]}
    services.events.emit(Event(EventKind.DEAD_LETTER_DROPPED, dead_letter.email_id, dead_letter.job_id, data=data))
    return True


class Console:
    """The operator's actions on one system. Each raises Permanent with words for a person."""

    def __init__(self, services: Container) -> None:
        self.services = services
        self._guard, self._one_build = threading.Lock(), threading.Lock()
        self._building: set[str] = set()
        self._adding: dict[str, SiteSetup] = {}
        self._one_rehearsal = threading.Lock()
        self._rehearsals: dict[str, Rehearsal] = {}

    def needs_person(self) -> NeedsPerson:
        """What waits for the operator, bounded."""
        services, found = self.services, self._by_state()
        held, unclear, failed, refused = (found[state] for state in SHOWN_STATES)
        dead_letters, held_first = services.dead_letters.all(MOST_ITEMS), [one.email_id for one in held[:MOST_QUOTED]]
        quoted = [one.email_id for group in (unclear, failed, dead_letters) for one in group[:MOST_QUOTED]]
        return NeedsPerson(
            held,
            unclear,
            failed,
            refused,
            {one.email_id: mails.author_of(services, one.email_id) for one in refused[:MOST_QUOTED]},
            dead_letters,
            services.undelivered.all(MOST_ITEMS),
            [one for one in services.directory.projects() if services.current_site(one.project_id, Stage.EDIT) is None],
            {mail: why for mail in held_first if (why := mails.why_unreleasable(services, mail))},
            {email_id: words for email_id in quoted if (words := self._words_of(email_id))},
        )

    def _words_of(self, email_id: str) -> str:
        mail = self.services.mail_deps.parsed_mails.load(email_id)
        words = " ".join(mail.text.split()) if mail else ""
        return words if len(words) <= QUOTED_CHARACTERS else words[: QUOTED_CHARACTERS - 1] + "…"

    def find(self, mail_filter: MailFilter, page: int) -> MailPage:
        """A page of the mails that fit, newest first; the first page is 1."""
        return self.services.mail_index.find(mail_filter, PAGE_SIZE, (page - 1) * PAGE_SIZE)

    def counts(self, project_id: str = "") -> Mapping[MailState, int]:
        """How many mails there are in each state."""
        return self.services.mail_index.counts(project_id)

    def counts_by_site(self, projects: Sequence[Project]) -> Mapping[str, Mapping[MailState, int]]:
        """How many mails of each of these sites there are in each state."""
        return self.services.mail_index.counts_by_site([project.project_id for project in projects])

    def waiting(self) -> int:
        """How many mails need a person, beside those that were given up; 0 where counting costs calls."""
        counts = {} if self.reach else self.counts()
        return sum(counts.get(state, 0) for state in mails.NEEDS_PERSON if state is not MailState.DEAD)

    @property
    def reach(self) -> str:
        """Which mails are searched, in words; empty if all are."""
        return self.services.mail_index.reach

    def _by_state(self) -> Mapping[MailState, Sequence[MailSummary]]:
        """The mails that may need a person. Without an index the newest are looked at, once for all states."""
        index, since = self.services.mail_index, self.services.clock.now() - RECENTLY
        if index.reach:
            newest = index.find(MailFilter(), MOST_ITEMS).mails
            return {
                state: [
                    mail
                    for mail in newest
                    if state_of(mail) is state and (state is not MailState.REFUSED or mail.received_at >= since)
                ]
                for state in SHOWN_STATES
            }
        return {
            state: index.find(
                MailFilter(state=state.value, since=since if state is MailState.REFUSED else None), MOST_ITEMS
            ).mails
            for state in SHOWN_STATES
        }

    def keys(self) -> Sequence[ProjectUser]:
        """Every person of every site."""
        return sorted({sender.key for sender in self.services.directory.senders()}, key=str)

    def rehearse(self, email_id: str, by: str) -> bool:
        """Have a mail run once more on copies, in a thread; False if one of them runs already."""
        services = self.services
        if services.jobs.get(job_id_of(email_id)) is None:
            raise Permanent(f"mail {email_id[:12]} never became a job: there is nothing to rehearse")
        if not self._one_rehearsal.acquire(blocking=False):
            return False
        with self._guard:
            self._rehearsals.pop(email_id, None)
            self._rehearsals[email_id] = Rehearsal()
            for old in [*self._rehearsals][:-MOST_REHEARSALS]:
                del self._rehearsals[old]
        try:
            threading.Thread(target=self._rehearse, args=(email_id, by), name="rehearsal", daemon=True).start()
        except RuntimeError as problem:
            with self._guard:
                del self._rehearsals[email_id]
            self._one_rehearsal.release()
            raise Permanent("this machine can start no thread now; rehearse the mail again later") from problem
        return True

    def rehearsal(self, email_id: str) -> Rehearsal | None:
        """The rehearsal of a mail since this process began; None if there was none."""
        return self._rehearsals.get(email_id)

    def _rehearse(self, email_id: str, by: str) -> None:
        from webordinary.operations.replay import replay  # noqa: PLC0415 - only a rehearsal needs a worker's parts

        services, rehearsal = self.services, Rehearsal(done=True, problem="It failed; the log says why.")
        try:
            with tempfile.TemporaryDirectory(prefix="rehearsal-", dir=services.config.data) as folder:
                ran = replay(services, email_id, Path(folder).resolve())
            rehearsal = Rehearsal(
                True, ran.settlement.outcome.value, ran.reply, ran.diff, ran.settlement.result.error or ""
            )
        except WebOrdinaryError as problem:
            rehearsal = Rehearsal(done=True, problem=str(problem))
        finally:
            with self._guard:
                self._rehearsals[email_id] = rehearsal
            self._one_rehearsal.release()
            services.events.emit(Event(EventKind.MAIL_REHEARSED, email_id, data={"by": by}))

    def history(self, seconds: int, count: int) -> PoolHistory:
        """The pool's past in `count` bars that end now, or why it cannot be told."""
        now = self.services.clock.now()
        start = datetime.fromtimestamp((int(now.timestamp()) // seconds - count + 1) * seconds, UTC)
        try:
            return self.services.pool_history.history(start, seconds, count)
        except WebOrdinaryError as problem:
            return PoolHistory(problem=str(problem))

    def redrive(self, letter_id: int) -> None:
        """Run a given-up mail once more."""
        redrive_letter(self.services, self._letter(letter_id))

    def drop(self, letter_id: int) -> None:
        """Forget a dead letter."""
        drop_letter(self.services, self._letter(letter_id))

    def send_again(self, email_id: str) -> None:
        """Send the undelivered replies of a mail again."""
        found = [reply for reply in self.services.undelivered.all(MOST_ITEMS) if reply.email_id == email_id]
        if not found:
            raise Permanent("no reply to this mail is undelivered: it has left meanwhile")
        for reply in found:
            self.services.undelivered.send_again(reply, self.services.clock.now())

    def site(self, project_id: str) -> SiteState | None:
        """One site with its people, releases and costs."""
        services = self.services
        project = services.directory.project(project_id)
        if project is None:
            return None
        since = (services.clock.now() - timedelta(days=COST_DAYS)).date()
        people = [sender for sender in services.directory.senders() if sender.key.project_id == project_id]
        return SiteState(
            project,
            onboarding.health_of(services, project),
            project_id in self._building,
            self.counts(project_id),
            tuple(people),
            {stage: site_url(services.config, project_id, stage, project.domains) for stage in Stage},
            {stage: services.current_site(project_id, stage) is not None for stage in Stage},
            {stage: releases.releases_of(services, project_id, stage) for stage in Stage},
            _by_day(services.ledger.listing(project_id, since)),
            project.daily_cap_usd or services.config.daily_cap_usd,
            services.credentials.kind(project_id).value,
            sum(len(services.jobs.open_jobs(key, limit=MOST_ITEMS)) for key in services.jobs.keys_of(project_id)),
            {one.address: onboarding.mailbox_of(services, one.address, project_id) for one in people},
            site_settings.lacks_publisher(services, project_id),
        )

    def rebuild(self, project_id: str, *, pushed: bool = False) -> bool:
        """Have main built and shown, in a thread; False if that is under way. Its end is an event."""
        onboarding.project_of(self.services, project_id)
        with self._guard:
            if project_id in self._building or len(self._building) >= MOST_BUILDS:
                return False
            self._building.add(project_id)
        threading.Thread(
            target=self._rebuild, args=(project_id, pushed), name=f"rebuild {project_id}", daemon=True
        ).start()
        return True

    @property
    def adding(self) -> Mapping[str, SiteSetup]:
        """By name, the sites that are being added and those that could not be, since this process began."""
        return dict(self._adding)

    def add_site(self, site: NewSite, by: str) -> None:
        """Add a site in a thread, as `webordinary project add` does. Raises Permanent where it cannot begin."""
        name = site.key.project_id
        if not _REMOTE.fullmatch(site.repo):  # a folder of this machine may hold what its visitors must not read
            raise Permanent(
                "a site is added here by the address of its git repository, such as https://… or git@…; "
                "a folder of this machine with `webordinary project add`"
            )
        if self.services.directory.project(name):
            raise Permanent(f"there is a site {name} already; `webordinary project add` adds people to it")
        site_folder(site.folder)
        with self._guard:
            for old in [one for one, stands in self._adding.items() if stands.problem][: -MOST_BUILDS // 2]:
                del self._adding[old]
            if len(self._adding) >= MOST_BUILDS or self._adding.get(name, SiteSetup(problem="-")).doing:
                raise Permanent(f"{name} is being added already, or too many sites are: wait for them")
            self._adding[name] = SiteSetup("waiting for another build")
        threading.Thread(target=self._add, args=(site, by), name=f"add {name}", daemon=True).start()

    def _add(self, site: NewSite, by: str) -> None:
        name, problem = site.key.project_id, "it failed; the log says why"

        def say(words: str) -> None:
            self._adding[name] = SiteSetup(words)

        try:
            with self._one_build:
                secret = site.credential.encode() or None
                onboarding.onboard(
                    self.services, name, site.repo, site.key.user_id, site.sender, say, credential=secret, by=by,
                    folder=site.folder,
                )  # fmt: skip
            problem = ""
        except WebOrdinaryError as error:
            problem = str(error)
        finally:
            if problem:
                self._adding[name] = SiteSetup(problem=problem)
                data = {"project": name, "reason": problem[:500]}
                self.services.events.emit(Event(EventKind.SITE_NOT_BUILT, data=data))
            else:
                del self._adding[name]

    def _rebuild(self, project_id: str, pushed: bool) -> None:
        try:
            with self._one_build:
                onboarding.rebuild(self.services, project_id, pushed=pushed)
        except WebOrdinaryError as problem:
            data = {"project": project_id, "reason": str(problem)[:500]}
            self.services.events.emit(Event(EventKind.SITE_NOT_BUILT, data=data))
        finally:
            with self._guard:
                self._building.discard(project_id)

    def remove_person(self, project_id: str, address: str, by: str) -> None:
        """An address may change a site no longer; refused while its jobs are open."""
        onboarding.project_of(self.services, project_id)
        leaving = onboarding.plan_sender_removal(self.services, project_id, address)
        onboarding.remove_person(self.services, leaving, by=by)

    def look_at_domain(self, project_id: str, domain: str) -> DomainFinding | None:
        """Whether a domain of a site leads to it; None for a domain that it does not have."""
        project = self.services.directory.project(project_id)
        if project is None or domain not in project.domains:
            return None
        return site_settings.look_at_domain(self.services, project_id, domain)

    def remove_site(self, project_id: str, by: str, *, force: bool) -> None:
        """Remove a site and what was made for it; its repository stays. Open jobs are given up by `force` only."""
        if project_id in self._building:
            raise Permanent(f"{project_id} is being built: wait until that is done, then remove it")
        leaving = onboarding.plan_project_removal(self.services, project_id)
        onboarding.remove(self.services, leaving, lambda _: None, force=force, by=by)

    def roll_back(self, project_id: str, stage: Stage, release: str) -> None:
        """Show an earlier release again."""
        done = releases.roll_back(self.services, project_id, stage, release)
        if done.problem:
            raise Permanent(f"{release} is shown, but its source did not follow: {done.problem}")

    def _letter(self, letter_id: int) -> DeadLetter:
        dead_letter = self.services.dead_letters.get(letter_id)
        if dead_letter is None:
            raise Permanent("this dead letter is gone: it was redriven or dropped meanwhile")
        return dead_letter


def _by_day(listing: Iterable[Spent]) -> list[tuple[str, float]]:
    days: dict[str, float] = {}
    for spent in listing:
        days[spent.day] = days.get(spent.day, 0.0) + spent.usd
    return sorted(days.items(), reverse=True)
