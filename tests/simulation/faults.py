"""What can go wrong, how often, and until when: the weather of a world."""

from __future__ import annotations

import random
import sqlite3
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.simulation.scheduler import Crashed
from webordinary.model.errors import Transient

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.process import Process


class Unforeseen(RuntimeError):
    """What no code is prepared for by its name."""


@dataclass(frozen=True, slots=True)
class Climate:
    """Chances per port call, per message, and sizes in seconds; `spot` is the call that attracts the faults."""

    spot: str = ""

    crash: float = 0.0
    pause: float = 0.0
    trouble: float = 0.0
    outages: float = 0.0
    """Chance that trouble lasts: a full disk is full for everybody, for a while."""
    longest_outage: float = 40.0
    surprise: float = 0.0
    """The share of trouble that nobody foresaw: an exception of none of our families."""
    lose: float = 0.0
    double: float = 0.0
    late: float = 0.0
    latest: float = 90.0
    slow: float = 0.0
    skew: float = 0.0
    drift: float = 0.0


EFFECTS = ("end_and_take_next", "end_and_take_next", "push", "activate", "activate", "answer_token")
CALLS = (
    *EFFECTS, "claim_and_start", "start_next", "begin_release", "renew", "record", "enqueue", "bind_token",
    "mark_delivered", "take", "append", "put", "send", "commit",
)  # fmt: skip
WORK = ("perform", "find_done", "save")
CALM = Climate()
CLIMATES: dict[str, tuple[Climate, tuple[str, ...]]] = {
    "calm": (CALM, ("",)),
    "busy": (CALM, ("",)),  # one customer floods the pool
    "hasty": (CALM, ("",)),  # customers write again while their last mail is in work
    "gone": (CALM, ("",)),  # everything is down for days, or the time of day is set ahead and back
    "slow": (Climate(slow=0.002), ("begin_release", "enqueue", "look")),
    "crashes": (Climate(crash=0.002), CALLS),
    "pauses": (Climate(pause=0.001, drift=0.002), EFFECTS),
    "lossy": (Climate(lose=0.4, double=0.2, late=0.3), ("",)),
    "troubled": (Climate(trouble=0.01, outages=0.05), CALLS),
    # Nobody can write for longer than a lease: releases, renewals, claims and endings fail, or their answers are lost.
    "unwritable": (
        Climate(trouble=0.004, outages=0.4, longest_outage=100.0),
        ("begin_release", "end_release", "claim_and_start", "start_next", "end_and_take_next"),
    ),
    "surprising": (Climate(trouble=0.01, outages=0.02, surprise=0.8), (*CALLS, *WORK)),
    "skewed": (Climate(skew=150.0, drift=0.002, slow=0.002, crash=0.0005), CALLS),
    "storm": (
        Climate(
            crash=0.001, pause=0.001, trouble=0.01, outages=0.02, surprise=0.2, lose=0.2, double=0.1, late=0.2,
            slow=0.003, skew=120.0, drift=0.002,
        ),
        (*CALLS, *WORK),
    ),
}  # fmt: skip
"""Each world has one call where faults are frequent: that reaches further than faults spread evenly."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What happens to a process at one point."""

    delay: float = 0.0
    crash: bool = False
    pause: float = 0.0


_RARE = 33.0  # one call in 33 comes to where the dice are rolled again
_SPOT = 200.0
SLOWEST_SECONDS = 10.0
_NOTHING = Fate()
_CRASH = Fate(crash=True)


class Weather:
    """Rolls the dice of one world. Once `calm_down` is called nothing bad happens any more."""

    def __init__(self, climate: Climate, rng: random.Random) -> None:
        self.climate, self.rng = climate, rng
        self.last_strike: float | None = None
        self._outage_until = 0.0
        self.clock_jump = 0.0
        """How far the time of day of all machines is set ahead, in seconds."""

    def calm_down(self) -> None:
        """The end of all faults; clocks stay as wrong as they are."""
        self.climate = replace(CALM, skew=self.climate.skew, drift=self.climate.drift)
        self._outage_until = 0.0

    def struck(self, at: float) -> None:
        """Remember when the last fault was, so that patience is counted from there."""
        self.last_strike = max(at, self.last_strike or 0.0)

    def drift(self) -> float:
        """How fast a machine's monotonic clock runs."""
        return 1.0 + self.rng.uniform(-self.climate.drift, self.climate.drift)

    def skew(self) -> float:
        """How wrong a machine's time of day is."""
        return self.rng.uniform(-self.climate.skew, self.climate.skew)

    def at_point(self, call: str) -> Fate:
        """What happens to a process next to this call."""
        chance, hot = self.rng.random(), call == self.climate.spot
        if chance < 0.6 and not hot:
            return _NOTHING
        if chance < 0.97 and not hot:
            return Fate(delay=self.rng.random() * 0.008)
        return self._bad_luck(_SPOT if hot else _RARE)

    def _bad_luck(self, factor: float) -> Fate:
        climate, rng = self.climate, self.rng
        if rng.random() < climate.crash * factor:
            return _CRASH
        if rng.random() < climate.pause * factor:
            return Fate(pause=rng.uniform(*rng.choice(((0.0, 30.0), (70.0, 250.0), (70.0, 250.0)))))
        if rng.random() < climate.slow * factor:
            return Fate(delay=rng.uniform(0.5, SLOWEST_SECONDS))
        return Fate(delay=rng.random() * 0.05)

    def trouble(self, process: Process, what: str, call: str, how: str) -> None:
        """A full disk, a busy database, an answer that got lost, a mistake of ours."""
        climate, now = self.climate, process.scheduler.now
        if not climate.trouble:
            return
        if self._outage_until <= now:
            if self.rng.random() >= climate.trouble / 2 * (_SPOT / 10 if call == climate.spot else 1.0):
                return
            if self.rng.random() < climate.outages:
                self._outage_until = now + self.rng.uniform(1.0, climate.longest_outage)
        self.struck(now)
        process.note("TROUBLE", what, how)
        if climate.surprise and self.rng.random() < climate.surprise:
            raise Unforeseen(f"{what}: nobody foresaw this ({how})")
        raise Transient(f"{what}: the disk is full ({how})")

    def crashes(self, call: str) -> bool:
        """Whether a process ends in the middle of this call."""
        factor = _RARE if call == self.climate.spot else 1.0
        return self.climate.crash > 0 and self.rng.random() < self.climate.crash * factor

    def deliveries(self, now: float) -> list[float]:
        """After how many seconds a message arrives: never, once, or more often."""
        climate, rng = self.climate, self.rng
        if climate.lose and rng.random() < climate.lose:
            self.struck(now)
            return []
        copies = 2 if climate.double and rng.random() < climate.double else 1
        return [self._way(now) for _ in range(copies)]

    def _way(self, now: float) -> float:
        if self.climate.late and self.rng.random() < self.climate.late:
            self.struck(now)
            return self.rng.uniform(0.0, self.climate.latest)
        return self.rng.random() * 0.005


class CommitFaults:
    """Lets a transaction fail, or its process end, just before the commit: nothing of it may be seen afterwards."""

    def __init__(self, at_work: Callable[[], Process | None]) -> None:
        """`at_work` is the process that commits; the world itself commits without faults."""
        self._at_work = at_work

    def before_commit(self, conn: sqlite3.Connection) -> None:
        """See CommitHook."""
        process = self._at_work()
        if process is None:
            return
        if not process.alive:
            raise Crashed
        if process.weather.crashes("commit"):
            process.crash()
        try:
            process.weather.trouble(process, "commit", "commit", "rolled back")
        except Transient as problem:
            full = sqlite3.OperationalError(str(problem))
            full.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise full from None

    def committed(self) -> None:
        """See CommitHook."""

    def rolled_back(self) -> None:
        """See CommitHook."""
