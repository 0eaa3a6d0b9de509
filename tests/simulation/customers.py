"""Customers and operators: they write, write again when nobody answers the door, and wait for their replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.photos import picture
from tests.simulation.scenario import DAY, PEOPLE, Intervention, Letter
from webordinary.mail.intake import name_of
from webordinary.mail.write import CustomerMail as Written
from webordinary.mail.write import OutgoingFile, write_mail
from webordinary.model.errors import Backoff
from webordinary.model.mail import Envelope
from webordinary.model.names import job_id_of, thread_id_of

if TYPE_CHECKING:
    from tests.simulation.harness import SimulationHarness

MAILBOX = "edit@localhost"
RETRIES = Backoff(10.0, cap=3600.0)
"""Of the mail servers of the customers."""
_PHOTO = picture("PNG", (8, 6))


class SimulatedCustomers:
    """`accepted` holds the mails that were promised an answer, by their email_id."""

    def __init__(self, world: SimulationHarness) -> None:
        self._world = world
        self.accepted: dict[str, Letter] = {}
        self.letters = {letter.text: letter for letter in world.scenario.letters}

    def arrive(self) -> None:
        """Begin to write."""
        for letter in self._world.scenario.letters:
            self._spawn(f"letter {letter.number}", lambda letter=letter: self._write(letter))
        for intervention in self._world.scenario.interventions:
            self._spawn(intervention.what, lambda what=intervention: self._intervene(what))

    @property
    def all_written(self) -> bool:
        """Every letter was taken."""
        return len(self.accepted) == len(self._world.scenario.letters)

    def email_id(self, letter: Letter) -> str:
        """The name that intake will give a letter."""
        return name_of(self._raw(letter), MAILBOX)

    def _spawn(self, name: str, run: object) -> None:
        self._world.scheduler.spawn(self._world.heaven.life, name, run)  # type: ignore[arg-type]

    def _write(self, letter: Letter) -> None:
        world, raw = self._world, self._raw(letter)
        email_id = name_of(raw, MAILBOX)
        world.journal.call(f"mail{letter.number}", email_id)
        world.journal.call(f"job{letter.number}", job_id_of(email_id))
        world.journal.call(f"thread{letter.number}", thread_id_of(_message_id(letter.number)))
        world.heaven.sleep(letter.at)
        tries = 0
        while not self._handed_over(raw, letter):
            world.heaven.sleep(RETRIES.delay(tries, world.rng))
            tries += 1
        self.accepted[email_id] = letter

    def _handed_over(self, raw: bytes, letter: Letter) -> bool:
        house, accepted = self._world.house, self._world.heaven.stop_event()
        if house is None or not house.process.alive:
            return False
        envelope = Envelope("127.0.0.1", letter.sender, MAILBOX, self._world.heaven.now())
        house.take(raw, envelope, accepted)
        return accepted.wait(30.0)

    def _raw(self, letter: Letter) -> bytes:
        files = [OutgoingFile(f"photo{n}.png", "image/png", _PHOTO) for n in range(letter.files)]
        chain = self._chain(letter)
        written = Written(
            sender=letter.sender,
            recipient=MAILBOX,
            subject=f"letter {letter.number}",
            text=letter.text,
            files=files,
            message_id=_message_id(letter.number),
            in_reply_to=chain[-1] if chain else "",
            references=chain,
        )
        return write_mail(written, self._world.heaven.now())

    def _chain(self, letter: Letter) -> list[str]:
        chain: list[str] = []
        parent = letter.answers_to
        while parent is not None:
            chain.insert(0, _message_id(parent))
            parent = self._world.scenario.letters[parent].answers_to
        return chain

    def _intervene(self, intervention: Intervention) -> None:
        world = self._world
        world.heaven.sleep(intervention.at)
        if intervention.what == "stop worker":
            working = world.working()
            if working:
                chosen = working[intervention.whom % len(working)]
                chosen.process.note("SIGTERM")
                chosen.stopping = True
                chosen.worker.stop()
        elif intervention.what in ("pause", "resume"):
            project_id = list(PEOPLE.values())[intervention.whom].project_id
            world.pause(project_id, paused=intervention.what == "pause")
        elif intervention.what == "down":
            world.go_down(intervention.ends_at)
        elif intervention.what == "clock":
            world.weather.clock_jump = intervention.whom * DAY
            world.weather.struck(world.scheduler.now)
        elif intervention.what == "employ":
            world.add_worker(intervention.whom)
        elif world.house:
            letters = world.scenario.letters
            letter = letters[intervention.whom % len(letters)]
            world.house.stop_execution(self.email_id(letter))


def _message_id(number: int) -> str:
    return f"<letter-{number}@example.com>"
