"""What customers and operators do in one world: drawn from a seed before anything runs."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from enum import StrEnum

from tests.simulation.faults import CLIMATES, Climate
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.worker.ports import WorkerSettings

PEOPLE = {
    "scott@example.com": ProjectUser("amelia", "scott"),
    "ines@example.com": ProjectUser("amelia", "ines"),
    "ann@example.com": ProjectUser("bakery", "ann"),
    "bo@example.com": ProjectUser("chess", "bo"),
}


DAY = 24 * 3600.0
_COMMANDS = {Command.EDIT: 10, Command.UNDO: 1, Command.PUBLISH: 1, Command.STATUS: 1, Command.STOP: 2}
"""What customers write, and how often; wishes that are remembered change no job."""
_IDLE_RELEASE = {"slow": (0.5, 1.0, 3.0), "unwritable": (0.5, 1.0, 3.0)}
"""Where releases are at stake there are many."""


class Manner(StrEnum):
    """How the agent takes an instruction."""

    CHANGES = "changes"
    SHARED_FILE = "changes a file that others change too"
    PUBLISHES = "changes, then publishes"
    ANSWERS = "answers"
    UNDOES = "answers, then undoes"
    TRANSIENT = "fails for a while"
    PERMANENT = "fails for good"
    SURPRISE = "fails in a way nobody foresaw"
    DEADLY = "kills its worker"
    ENDLESS = "does not end"


@dataclass(frozen=True, slots=True)
class Letter:
    """One mail of a customer. `answers_to` is the number of an earlier letter whose thread it joins."""

    number: int
    sender: str
    at: float
    command: Command
    answers_to: int | None
    files: int
    manner: Manner
    seconds: float

    def __str__(self) -> str:
        joins = "" if self.answers_to is None else f", answers {self.answers_to}"
        return (
            f"{self.at:8.2f} letter {self.number} of {self.sender}: {self.text!r}, {self.manner}, "
            f"{self.seconds:.1f} s, {self.files} files{joins}"
        )

    @property
    def text(self) -> str:
        """What the body says; the simulated agent finds the letter again by it."""
        if self.command is not Command.EDIT:
            return self.command
        wish = {Manner.PUBLISHES: " and publish it", Manner.UNDOES: " or undo it"}.get(self.manner, "")
        return f"please make change {self.number}{wish}"


@dataclass(frozen=True, slots=True)
class Intervention:
    """Something an operator or a machine does at a moment."""

    at: float
    what: str
    whom: int
    """Which of them; of a downtime and a jump of the clock, how many days."""

    @property
    def ends_at(self) -> float:
        """When it is over."""
        return self.at + (self.whom * DAY if self.what == "down" else 0.0)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One world before it begins."""

    seed: int
    climate_name: str
    climate: Climate
    workers: int
    same_host: bool
    settings: WorkerSettings
    letters: tuple[Letter, ...]
    interventions: tuple[Intervention, ...]

    @property
    def calm(self) -> bool:
        """Nothing bad is planned: then everything must succeed, and quickly."""
        return self.climate_name == "calm" and not self.interventions

    @property
    def faults_end_at(self) -> float:
        """From here on everything must come to rest."""
        written = max(letter.at for letter in self.letters)
        return max([written, *(one.ends_at for one in self.interventions)]) + 120.0

    def __str__(self) -> str:
        where = "one host" if self.same_host else "many hosts"
        slots, idle = self.settings.slots, self.settings.idle_release
        mails = "\n".join(f"  {letter}" for letter in self.letters)
        weather = f"{self.climate_name} around {self.climate.spot or 'nothing'}"
        workers = f"{self.workers} workers of {slots} slots on {where}, idle release {idle:g} s"
        return f"seed {self.seed}: {weather}; {workers}\n{mails}"


def draw(seed: int, climate_name: str = "", spot: str = "") -> Scenario:
    """The scenario of a seed; climate and spot may be chosen instead of drawn."""
    rng = random.Random(seed)
    drawn = rng.choice(sorted(CLIMATES))
    climate_name = climate_name or drawn
    climate, spots = CLIMATES[climate_name]
    climate = replace(climate, spot=spot or rng.choice(spots))
    people = list(PEOPLE)[: rng.choice((2, 2, 3, 4))]  # the first two share a project
    write = {"busy": _flood, "hasty": _haste}.get(climate_name, _letters)
    letters = write(rng, people)
    return Scenario(
        seed=seed,
        climate_name=climate_name,
        climate=climate,
        workers=rng.choice((1, 1, 2) if climate_name == "busy" else (1, 2, 2, 2, 3, 3)),
        same_host=rng.random() < 0.5,
        settings=WorkerSettings(
            slots=rng.choice((1, 1, 2)),
            idle_release=rng.choice(_IDLE_RELEASE.get(climate_name, (1.0, 10.0, 1800.0))),
            job_limit=rng.choice((120.0, 3600.0)),
            stop_grace=20.0,
            # Where nothing is lost, everybody must be served long before a reconciler helps.
            reconcile=300.0 if climate_name in ("calm", "slow", "busy") else 20.0,
        ),
        letters=letters,
        interventions=(*_interventions(rng, letters, climate_name), *_breaks(seed, letters)),
    )


def _letters(rng: random.Random, people: list[str]) -> tuple[Letter, ...]:
    letters: list[Letter] = []
    at = 0.0
    for number in range(rng.randint(4, 9)):
        at += rng.choice((0.0, 0.01, 0.3, 1.0, 1.0, 5.0, 30.0, 150.0)) * rng.random()
        sender = rng.choice(people)
        earlier = [one.number for one in letters if one.sender == sender]
        answers_to = rng.choice(earlier) if earlier and rng.random() < 0.4 else None
        command = _command(rng) if answers_to is not None or rng.random() < 0.1 else Command.EDIT
        manner = rng.choices(tuple(Manner), weights=(40, 5, 3, 4, 2, 1, 1, 1, 1, 1))[0]
        seconds = rng.choice((0.2, 3.0, 20.0, 90.0)) * rng.random()
        files = rng.choice((0, 0, 0, 1, 2)) if command is Command.EDIT else 0
        letters.append(Letter(number, sender, at, command, answers_to, files, manner, seconds))
    return tuple(letters)


def _flood(rng: random.Random, people: list[str]) -> tuple[Letter, ...]:
    """One customer writes a dozen mails of one conversation at once, the others one each while those are worked off."""
    length, flooder = rng.choice((0.05, 0.5, 3.0)), people[0]
    count = rng.randint(8, 14)
    letters = [
        Letter(number, flooder, number * 0.01, Command.EDIT, 0 if number else None, 0, Manner.CHANGES, length)
        for number in range(count)
    ]
    for number, sender in enumerate(people[1:], start=count):
        at = rng.uniform(0.5, count * length)
        letters.append(Letter(number, sender, at, Command.EDIT, None, 0, Manner.CHANGES, length))
    return tuple(sorted(letters, key=lambda letter: letter.at))


def _haste(rng: random.Random, people: list[str]) -> tuple[Letter, ...]:
    """Two customers of one site write again before the last mail is done: on other threads, which interrupts it, or to
    stop, undo or publish it.
    """
    letters: list[Letter] = []
    at = 0.0
    for number in range(rng.randint(5, 10)):
        at += rng.choice((0.05, 0.5, 2.0, 4.0)) * rng.random()
        sender = rng.choice(people[:2])
        earlier = [one.number for one in letters if one.sender == sender]
        answers_to = rng.choice(earlier) if earlier and rng.random() < 0.5 else None
        changed_mind = answers_to is not None and rng.random() < 0.7
        command = (
            rng.choice((Command.STOP, Command.STOP, Command.UNDO, Command.PUBLISH)) if changed_mind else Command.EDIT
        )
        manner = rng.choices((Manner.CHANGES, Manner.PUBLISHES, Manner.UNDOES), weights=(6, 3, 1))[0]
        letters.append(Letter(number, sender, at, command, answers_to, 0, manner, rng.random()))
    return tuple(letters)


def _command(rng: random.Random) -> Command:
    return rng.choices(tuple(_COMMANDS), weights=tuple(_COMMANDS.values()))[0]


def _interventions(rng: random.Random, letters: tuple[Letter, ...], climate_name: str) -> tuple[Intervention, ...]:
    if climate_name == "calm" and rng.random() < 0.7:
        return ()
    if climate_name == "gone":
        return _absence(rng, letters)
    kinds = ("stop worker", "stop worker", "stop execution")
    last = letters[-1].at + 30.0
    return tuple(
        Intervention(rng.uniform(0, last), rng.choice(kinds), rng.randrange(9)) for _ in range(rng.choice((0, 0, 1, 2)))
    )


def _absence(rng: random.Random, letters: tuple[Letter, ...]) -> tuple[Intervention, ...]:
    """Eight days down, or forty days ahead and back, while mails are under way."""
    at = rng.uniform(0.0, letters[-1].at + 10.0)
    if rng.random() < 0.5:
        return (Intervention(at, "down", 8),)
    return (Intervention(at, "clock", 40), Intervention(at + rng.uniform(1.0, 100.0), "clock", 0))


def _breaks(seed: int, letters: tuple[Letter, ...]) -> tuple[Intervention, ...]:
    """Now and then a project is paused for a while; drawn apart, so that the other seeds stay as they were."""
    rng = random.Random(f"breaks {seed}")
    if rng.random() < 0.7:
        return ()
    begin, whom = rng.uniform(0, letters[-1].at + 10.0), rng.randrange(len(PEOPLE))
    end = begin + rng.choice((0.2, 5.0, 60.0, 900.0)) * rng.random()
    return (Intervention(begin, "pause", whom), Intervention(end, "resume", whom))
