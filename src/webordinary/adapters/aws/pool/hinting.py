"""The unclaimed queue as claims use it: never a reason to fail, since the reconciler makes up for what is lost."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from webordinary.model.claims import Claim, ClaimRequest
from webordinary.model.errors import WebOrdinaryError
from webordinary.model.jobs import Job
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import Hints

_log = logging.getLogger(__name__)
_OFFERS = 8


class Hinting:
    """After a transaction is done nothing may hide that: what goes wrong here is only logged."""

    def __init__(self, hints: Hints | None) -> None:
        self._hints = hints

    def acknowledge(self, key: ProjectUser) -> None:
        """Hints for this key have nothing to tell any more."""
        if self._hints:
            try:
                self._hints.acknowledge(key)
            except WebOrdinaryError as problem:
                _log.warning("%s: its hint stays and comes again: %s", key, problem)

    def offers(self, claim: Claim, now: datetime) -> Sequence[ClaimRequest]:
        """Keys that wait and are not left to another worker, the longest waiting first."""
        if self._hints is None:
            return ()
        try:
            found = self._hints.receive(now, {claim.key}, _OFFERS)
        except WebOrdinaryError as problem:
            _log.warning("%s: nobody can say who waits: %s", claim.key, problem)
            return ()
        return [offer for offer in found if offer.preferred in (None, claim.worker)]

    def made_way(self, claim: Claim, left: Job | None, now: datetime) -> None:
        """This key was given up; if it has work left, somebody should come for it."""
        if self._hints and left:
            try:
                self._hints.send(ClaimRequest.for_job(left, claim.worker, claim.fence), now)
            except WebOrdinaryError as problem:
                _log.warning("%s: its hint is left to the reconciler: %s", claim.key, problem)
