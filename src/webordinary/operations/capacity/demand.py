"""Demand: the mails of a day by time, thread and job length, generated from a seed."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from webordinary.model.claims import JOB_LIMIT_SECONDS
from webordinary.model.errors import Permanent
from webordinary.model.names import ProjectUser

MAX_PROJECTS = 200_000
MAX_MAILS = 500_000
MAX_WORKERS = 10_000


class OutOfBounds(Permanent):
    """A question that cannot be simulated: which part of it, and what would fit."""


def within(name: str, value: float, lowest: float, highest: float) -> None:
    """Raise OutOfBounds unless `value` lies between the two."""
    if not lowest <= value <= highest:  # says no to NaN, too
        raise OutOfBounds(f"{name} {value:,g}: use {lowest:,g} to {highest:,g}")


DAY_SECONDS = 86_400.0
BINS = 96
BIN_SECONDS = DAY_SECONDS / BINS

# Weights of the hours from midnight on: quiet nights, two humps around lunch, a slow evening.
CURVES = {
    "business": (
        0.4, 0.3, 0.2, 0.2, 0.3, 0.5, 1.0, 2.2, 5.0, 8.2, 9.2, 8.8,
        6.5, 7.4, 8.8, 8.6, 7.6, 5.6, 4.0, 3.6, 3.4, 2.8, 1.6, 0.8,
    ),
    "flat": (1.0,) * 24,
}  # fmt: skip


def moments(curve: str, count: int, rng: random.Random) -> list[float]:
    """So many moments of one day, in order, as the curve has them."""
    weights = list(accumulate(_quarters(CURVES[curve])))
    bins = rng.choices(range(BINS), cum_weights=weights, k=count)
    return sorted((quarter + rng.random()) * BIN_SECONDS for quarter in bins)


def bin_of(seconds: float) -> int:
    """The quarter of an hour that a moment falls into; what comes after midnight counts as the last one."""
    return min(BINS - 1, int(seconds // BIN_SECONDS))


def _quarters(hours: tuple[float, ...]) -> list[float]:
    """The same curve without its steps: a straight line from the middle of each hour to that of the next."""
    return [_between(hours, (quarter + 0.5) / 4 - 0.5) for quarter in range(BINS)]


def _between(hours: tuple[float, ...], at: float) -> float:
    low = int(at // 1)
    share = at - low
    return hours[low % 24] * (1 - share) + hours[(low + 1) % 24] * share


LONGEST_JOB = JOB_LIMIT_SECONDS * 0.95
SHORTEST_JOB = 1.0
MAX_USERS = 20
MOST_HOURS = 16.0
_STEEPNESS = 0.8
_PLATEAU = 0.01
"""The share of projects that are about equally busy at the top: people write dozens of mails a day, not thousands."""


@dataclass(frozen=True, slots=True)
class Demand:
    """One day of mail. Job times are lognormal: most jobs are short, a few take long."""

    projects: int
    mails: int
    seed: int = 1
    curve: str = "business"
    job_seconds: float = 300.0
    """The mean."""
    job_spread: float = 0.8
    """The standard deviation of the logarithm; 0 makes all jobs equal."""
    users_per_project: float = 2.0
    """The mean; how many a project has is geometric."""
    same_thread: float = 0.5
    """How many mails go on in their writer's last conversation; the others begin one and may interrupt."""

    def __post_init__(self) -> None:
        within("projects", self.projects, 1, MAX_PROJECTS)
        within("mails a day", self.mails, 1, MAX_MAILS)
        within("seconds of a job", self.job_seconds, SHORTEST_JOB, LONGEST_JOB)
        within("spread of the jobs", self.job_spread, 0.0, 2.0)
        within("users of a project", self.users_per_project, 1.0, MAX_USERS)
        within("share of the same conversation", self.same_thread, 0.0, 1.0)
        if self.curve not in CURVES:
            raise OutOfBounds(f"day {self.curve!r}: use {' or '.join(CURVES)}")


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail: when it is there, whose it is, and how long its job will take."""

    number: int
    at: float
    key: ProjectUser
    thread_id: str
    seconds: float


def mails_of(demand: Demand) -> list[Mail]:
    """The mails of the day, in the order of their coming."""
    rng = random.Random(demand.seed)  # noqa: S311  a repeatable day, no secret
    people, threads = _People(demand, rng), dict[ProjectUser, int]()
    mails = []
    for number, at in enumerate(moments(demand.curve, demand.mails, rng)):
        key = people.next_writer()
        if key not in threads or rng.random() >= demand.same_thread:
            threads[key] = number
        mails.append(Mail(number, at, key, f"thread-{threads[key]}", _seconds(demand, rng)))
    _check_busiest(mails)
    return mails


def _check_busiest(mails: Sequence[Mail]) -> None:
    """The mails of one person are served one after another, so no number of workers helps with too many of them."""
    work: defaultdict[ProjectUser, float] = defaultdict(float)
    for mail in mails:
        work[mail.key] += mail.seconds
    hours = max(work.values()) / 3600
    if hours > MOST_HOURS:
        raise OutOfBounds(
            f"the busiest person writes mails for {hours:,.0f} hours of work a day, which are done one after another: "
            f"use more projects, fewer mails or shorter jobs, until that is {MOST_HOURS:g} or less"
        )


def _seconds(demand: Demand, rng: random.Random) -> float:
    typical = math.log(demand.job_seconds) - demand.job_spread**2 / 2
    return min(LONGEST_JOB, max(SHORTEST_JOB, rng.lognormvariate(typical, demand.job_spread)))


class _People:
    """Projects by popularity, Zipf-like with a plateau, and in each the first user writes most."""

    def __init__(self, demand: Demand, rng: random.Random) -> None:
        self._rng = rng
        offset = max(1.0, demand.projects * _PLATEAU)
        self._popularity = list(accumulate((rank + offset) ** -_STEEPNESS for rank in range(demand.projects)))
        self._users = [_users(demand.users_per_project, rng) for _ in range(demand.projects)]
        self._known: dict[tuple[int, int], ProjectUser] = {}

    def next_writer(self) -> ProjectUser:
        project = self._rng.choices(range(len(self._users)), cum_weights=self._popularity)[0]
        ranks = range(self._users[project])
        user = self._rng.choices(ranks, weights=[1 / (rank + 1) for rank in ranks])[0]
        if (project, user) not in self._known:
            self._known[project, user] = ProjectUser(f"site-{project}", f"user{user}")
        return self._known[project, user]


def _users(mean: float, rng: random.Random) -> int:
    users = 1
    while users < MAX_USERS and rng.random() < 1 - 1 / mean:
        users += 1
    return users
