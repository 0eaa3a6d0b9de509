"""What a worker holds: its claims, idle or busy, and which of them has news."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from webordinary.model.claims import Claim
from webordinary.model.jobs import Job
from webordinary.model.names import ProjectUser
from webordinary.worker.hold import RunningHold


@dataclass(slots=True)
class Holding:
    """One claim. Idle when no job runs under it; then it is only kept for warmth."""

    claim: Claim
    used_at: float
    hold: RunningHold | None = None


class Holdings:
    """A worker's claims; safe for its loop, its slots and its lease keeper together."""

    def __init__(self) -> None:
        self._held: dict[ProjectUser, Holding] = {}
        self._news: set[ProjectUser] = set()
        self._late_news: set[ProjectUser] = set()
        self._unread: dict[ProjectUser, bool] = {}
        """News for busy keys, and whether they were heard; else a look is only due."""
        self._abandoned: list[Claim] = []
        self._guard = threading.Lock()

    def begin(self, hold: RunningHold, now: float, yielded: Claim | None = None) -> None:
        """A job runs under this claim; if another was yielded for it, that is dropped in the same step."""
        claim = hold.started.claim
        with self._guard:
            if yielded:
                self._forget(yielded)
            self._held[claim.key] = Holding(claim, now, hold)

    def rest(self, claim: Claim, now: float, *, look: bool = True, last: bool = False) -> None:
        """The claim is ours and idle; unless it is known to be empty, its queue is worth one more look.

        For jobs that wait for their moment. Of work that came in just now there is news, kept while the key was busy.
        With `last`, it is looked at only after the keys that nobody serves.
        """
        with self._guard:
            self._held[claim.key] = Holding(claim, now)
            if look:
                self._news.add(claim.key)
            if last and claim.key in self._news:
                self._news.remove(claim.key)
                self._late_news.add(claim.key)

    def end_of_line(self) -> bool:
        """Whether there are keys to be looked at last; now they are to be looked at."""
        with self._guard:
            late, self._late_news = self._late_news, set()
            self._news |= late
            return bool(late)

    def drop(self, claim: Claim) -> None:
        """The claim is not ours any more; a newer one of ours for the same key stays."""
        with self._guard:
            self._forget(claim)

    def abandon(self, claim: Claim) -> None:
        """Nobody serves this claim any more, though it is ours: it is renewed no longer, and waits to be released."""
        with self._guard:
            self._forget(claim)
            self._abandoned.append(claim)

    def abandoned(self) -> list[Claim]:
        """Claims that wait to be released; if that cannot be done, they run out."""
        with self._guard:
            return list(self._abandoned)

    def released(self, claim: Claim) -> None:
        """It does not wait any more."""
        with self._guard:
            self._abandoned = [other for other in self._abandoned if other is not claim]

    def tell(self, keys: Iterable[ProjectUser]) -> None:
        """There may be work for these keys."""
        with self._guard:
            told = set(keys)
            self._news |= told
            self._unread |= dict.fromkeys(told, True)

    def tell_all(self) -> None:
        """There may be work for any key: tickets can be lost."""
        with self._guard:
            self._news |= self._held.keys()
            self._unread = dict.fromkeys(self._held, False) | self._unread

    def idle_with_news(self) -> list[Holding]:
        """Idle claims worth a look. A busy key's news is kept until it rests."""
        with self._guard:
            news = sorted(self._news)
            idle = [self._held[key] for key in news if key in self._held and not self._held[key].hold]
            self._news = {key for key in self._news if key in self._held and self._held[key].hold}
            return idle

    def busy_with_news(self) -> list[tuple[RunningHold, bool]]:
        """Running jobs whose key has unread news, each once, and whether those were heard or are only possible."""
        with self._guard:
            unread, self._unread = self._unread, {}
            found = ((self._held.get(key), heard) for key, heard in sorted(unread.items()))
            return [(held.hold, heard) for held, heard in found if held and held.hold]

    def get(self, key: ProjectUser) -> Holding | None:
        """The claim of a key, if it is ours."""
        with self._guard:
            return self._held.get(key)

    def running(self) -> list[RunningHold]:
        """The jobs under way."""
        with self._guard:
            return [held.hold for held in self._held.values() if held.hold]

    def idle(self) -> list[Holding]:
        """Claims kept for warmth, the least recently used first."""
        with self._guard:
            return sorted((h for h in self._held.values() if not h.hold), key=lambda h: h.used_at)

    def jobs(self) -> dict[ProjectUser, Job | None]:
        """Every key that is ours, with the job that runs for it."""
        with self._guard:
            return {key: held.hold.started.job if held.hold else None for key, held in self._held.items()}

    def claims(self) -> list[Claim]:
        """Every claim of this worker."""
        with self._guard:
            return [held.claim for held in self._held.values()]

    def _forget(self, claim: Claim) -> None:
        held = self._held.get(claim.key)
        if held and held.claim.fence == claim.fence:
            del self._held[claim.key]
