"""What customers and operators do in one world: drawn from a seed before anything runs."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from enum import StrEnum

from tests.simulation.faults import CLIMATES, Climate
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.worker.settings import Settings

PEOPLE = {
    "scott@example.com": ProjectUser("amelia", "scott"),
    "ines@example.com": ProjectUser("amelia", "ines"),
    "ann@example.com": ProjectUser("bakery", "ann"),
    "bo@example.com": ProjectUser("chess", "bo"),
}


class Manner(StrEnum):
    """How the agent takes an instruction."""

    CHANGES = "changes"
    SHARED_FILE = "changes a file that others change too"
    ANSWERS = "answers"
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
        return self.command if self.command is not Command.EDIT else f"please make change {self.number}"


@dataclass(frozen=True, slots=True)
class Intervention:
    """Something an operator or a machine does at a moment."""

    at: float
    what: str
    whom: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """One world before it begins."""

    seed: int
    climate_name: str
    climate: Climate
    workers: int
    same_host: bool
    settings: Settings
    letters: tuple[Letter, ...]
    interventions: tuple[Intervention, ...]

    @property
    def calm(self) -> bool:
        """Nothing bad is planned: then everything must succeed, and quickly."""
        return self.climate_name == "calm" and not self.interventions

    @property
    def faults_end_at(self) -> float:
        """From here on everything must come to rest."""
        last = max(one.at for one in (*self.letters, *self.interventions))
        return last + 120.0

    def __str__(self) -> str:
        where = "one host" if self.same_host else "many hosts"
        slots, idle = self.settings.slots, self.settings.idle_release
        mails = "\n".join(f"  {letter}" for letter in self.letters)
        weather = f"{self.climate_name} around {self.climate.spot or 'nothing'}"
        workers = f"{self.workers} workers of {slots} slots on {where}, idle release {idle:g} s"
        return f"seed {self.seed}: {weather}; {workers}\n{mails}"


def draw(seed: int, climate_name: str = "", spot: str = "") -> Scenario:
    """The scenario of a seed; climate and spot may be chosen instead of drawn."""
    dice = random.Random(seed)
    drawn = dice.choice(sorted(CLIMATES))
    climate_name = climate_name or drawn
    climate, spots = CLIMATES[climate_name]
    climate = replace(climate, spot=spot or dice.choice(spots))
    people = list(PEOPLE)[: dice.choice((2, 2, 3, 4))]  # the first two share a project
    letters = _letters(dice, people)
    return Scenario(
        seed=seed,
        climate_name=climate_name,
        climate=climate,
        workers=dice.choice((1, 2, 2, 2, 3, 3)),
        same_host=dice.random() < 0.5,
        settings=Settings(
            slots=dice.choice((1, 1, 2)),
            idle_release=dice.choice((1.0, 10.0, 1800.0) if climate_name != "slow" else (0.5, 1.0, 3.0)),
            job_limit=dice.choice((120.0, 3600.0)),
            stop_grace=20.0,
            # Where nothing is lost, everybody must be served long before a reconciler helps.
            reconcile=300.0 if climate_name in ("calm", "slow") else 20.0,
        ),
        letters=letters,
        interventions=(*_interventions(dice, letters, climate_name), *_breaks(seed, letters)),
    )


def _letters(dice: random.Random, people: list[str]) -> tuple[Letter, ...]:
    letters: list[Letter] = []
    at = 0.0
    for number in range(dice.randint(4, 9)):
        at += dice.choice((0.0, 0.01, 0.3, 1.0, 1.0, 5.0, 30.0, 150.0)) * dice.random()
        sender = dice.choice(people)
        earlier = [one.number for one in letters if one.sender == sender]
        answers_to = dice.choice(earlier) if earlier and dice.random() < 0.4 else None
        command = _command(dice) if answers_to is not None or dice.random() < 0.1 else Command.EDIT
        manner = dice.choices(tuple(Manner), weights=(40, 5, 4, 1, 1, 1, 1, 1))[0]
        seconds = dice.choice((0.2, 3.0, 20.0, 90.0)) * dice.random()
        files = dice.choice((0, 0, 0, 1, 2)) if command is Command.EDIT else 0
        letters.append(Letter(number, sender, at, command, answers_to, files, manner, seconds))
    return tuple(letters)


def _command(dice: random.Random) -> Command:
    return dice.choices(tuple(Command), weights=(10, 1, 1, 1, 2))[0]


def _interventions(dice: random.Random, letters: tuple[Letter, ...], climate_name: str) -> tuple[Intervention, ...]:
    if climate_name == "calm" and dice.random() < 0.7:
        return ()
    kinds = ("stop worker", "stop worker", "stop execution")
    last = letters[-1].at + 30.0
    return tuple(
        Intervention(dice.uniform(0, last), dice.choice(kinds), dice.randrange(9))
        for _ in range(dice.choice((0, 0, 1, 2)))
    )


def _breaks(seed: int, letters: tuple[Letter, ...]) -> tuple[Intervention, ...]:
    """Now and then a project is paused for a while; drawn apart, so that the other seeds stay as they were."""
    dice = random.Random(f"breaks {seed}")
    if dice.random() < 0.7:
        return ()
    begin, whom = dice.uniform(0, letters[-1].at + 10.0), dice.randrange(len(PEOPLE))
    end = begin + dice.choice((0.2, 5.0, 60.0, 900.0)) * dice.random()
    return (Intervention(begin, "pause", whom), Intervention(end, "resume", whom))
