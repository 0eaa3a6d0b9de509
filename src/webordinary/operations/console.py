"""What an operator does from the console and the command line: one function for both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from webordinary.compose.container import Container, site_url
from webordinary.jobs.site_files import Stage
from webordinary.mail.ports import Undelivered
from webordinary.model.errors import Permanent
from webordinary.model.events import Event, EventKind
from webordinary.model.jobs import DeadLetter
from webordinary.model.projects import Project, Sender
from webordinary.model.snapshot import MailSummary
from webordinary.operations import mails, onboarding, releases
from webordinary.operations.mails import MailFilter
from webordinary.operations.releases import KeptRelease
from webordinary.workflow.start import redrive

MOST_ITEMS = 200
COST_DAYS = 30
HELD = MailFilter(state="held")


@dataclass(frozen=True, slots=True)
class SiteState:
    """One site as an operator sees it."""

    project: Project
    people: tuple[Sender, ...]
    addresses: dict[Stage, str]
    shown: dict[Stage, bool]
    releases: dict[Stage, list[KeptRelease]]
    usd_of_30_days: float


@dataclass(frozen=True, slots=True)
class NeedsPerson:
    """What waits for a decision of the operator."""

    held: Sequence[MailSummary]
    not_understood: Sequence[MailSummary]
    dead_letters: Sequence[DeadLetter]
    undelivered: Sequence[Undelivered]


def redrive_letter(services: Container, letter: DeadLetter) -> str:
    """Run a given-up mail once more; returns the name of its execution. Idempotent."""
    services.raw_mails.load(letter.email_id)  # without its mail it could only be given up again
    name = redrive(letter, services.workflows, services.dead_letters)
    data = {"redrive": letter.redrives + 1}
    services.events.emit(Event(EventKind.DEAD_LETTER_REDRIVEN, letter.email_id, letter.job_id, data=data))
    return name


def drop_letter(services: Container, letter: DeadLetter) -> bool:
    """Forget a dead letter; its mail stays. False if it is gone already."""
    if not services.dead_letters.remove(letter.letter_id):
        return False
    data = {"reason": letter.reason[:200]}
    services.events.emit(Event(EventKind.DEAD_LETTER_DROPPED, letter.email_id, letter.job_id, data=data))
    return True


class Console:
    """The operator's actions on one system. Each raises Permanent with words for a person."""

    def __init__(self, services: Container) -> None:
        self._services = services

    def needs_person(self) -> NeedsPerson:
        """What waits for the operator, bounded."""
        services = self._services
        return NeedsPerson(
            mails.find_mails(services, HELD, MOST_ITEMS),
            mails.mails_for_a_person(services, MOST_ITEMS),
            services.dead_letters.all(MOST_ITEMS),
            services.undelivered.all(MOST_ITEMS),
        )

    def find(self, wanted: MailFilter, limit: int) -> Sequence[MailSummary]:
        """The newest mails that fit."""
        return mails.find_mails(self._services, wanted, limit)

    def release(self, email_id: str, by: str) -> None:
        """Let a held mail act for its sender."""
        mails.release_mail(self._services, email_id, by)

    def answer(self, email_id: str, text: str, by: str) -> None:
        """Write to the customer in the conversation of a mail."""
        mails.answer_mail(self._services, email_id, text, by)

    def drop_held(self, email_id: str, by: str) -> None:
        """Never do a held mail."""
        mails.drop_mail(self._services, email_id, by)

    def redrive(self, letter_id: int) -> None:
        """Run a given-up mail once more."""
        redrive_letter(self._services, self._letter(letter_id))

    def drop(self, letter_id: int) -> None:
        """Forget a dead letter."""
        drop_letter(self._services, self._letter(letter_id))

    def send_again(self, email_id: str) -> None:
        """Send the undelivered replies of a mail again."""
        found = [reply for reply in self._services.undelivered.all(MOST_ITEMS) if reply.email_id == email_id]
        if not found:
            raise Permanent("no reply to this mail is undelivered: it has left meanwhile")
        for reply in found:
            self._services.undelivered.send_again(reply, self._services.clock.now())

    def sites(self) -> Sequence[Project]:
        """Every site by name."""
        return self._services.directory.projects()

    def site(self, project_id: str) -> SiteState | None:
        """One site with its people, releases and costs."""
        services = self._services
        project = services.directory.project(project_id)
        if project is None:
            return None
        since = (services.clock.now() - timedelta(days=COST_DAYS)).date()
        people = (sender for sender in services.directory.senders() if sender.key.project_id == project_id)
        return SiteState(
            project,
            tuple(people),
            {stage: site_url(services.config, project_id, stage, project.domains) for stage in Stage},
            {stage: services.current_site(project_id, stage) is not None for stage in Stage},
            {stage: releases.releases_of(services, project_id, stage) for stage in Stage},
            sum(spent.usd for spent in services.ledger.listing(project_id, since)),
        )

    def pause(self, project_id: str, *, paused: bool) -> None:
        """Stop or resume the work on a site."""
        onboarding.pause(self._services, project_id, paused=paused)

    def roll_back(self, project_id: str, stage: Stage, release: str) -> None:
        """Show an earlier release again."""
        done = releases.roll_back(self._services, project_id, stage, release)
        if done.problem:
            raise Permanent(f"{release} is shown, but its source did not follow: {done.problem}")

    def _letter(self, letter_id: int) -> DeadLetter:
        letter = self._services.dead_letters.get(letter_id)
        if letter is None:
            raise Permanent("this dead letter is gone: it was redriven or dropped meanwhile")
        return letter
