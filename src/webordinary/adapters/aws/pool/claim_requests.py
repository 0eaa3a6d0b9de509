"""Who says it first: at most one hint for a key and fence within a minute.

What was said while somebody held the key tells nothing once it was given up under the same fence: then it is news.
"""

from __future__ import annotations

import contextlib
import secrets
from datetime import datetime

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import Dynamo, Refused
from webordinary.adapters.aws.items import epoch
from webordinary.adapters.aws.writes import delete, put
from webordinary.model.claims import HINT_INTERVAL_SECONDS, ClaimStatus
from webordinary.model.errors import WebOrdinaryError
from webordinary.model.names import ProjectUser

AGAIN_SECONDS = 300.0
"""Several reconcilers look each minute: while no worker has time for a key, its hints must not pile up."""
KEPT_SECONDS = 3600.0

NEWS = "attribute_not_exists(#projectKey) OR #fence <> :fence OR #held <> :held OR #sentAt <= :before"
MY_SAYING = "#saying = :saying"


class ClaimRequests:
    """One item a key for who has a mail to tell of, one for those who look and find that nobody came."""

    def __init__(self, dynamo: Dynamo, table: str = names.CLAIM_REQUESTS, ownership: str = names.OWNERSHIP) -> None:
        self._dynamo, self._table, self._ownership = dynamo, table, ownership

    def first_to_say(self, key: ProjectUser, fence: int | None, now: datetime, *, again: bool) -> str | None:
        """None if it was said already; else what takes it back. Who names a fence has seen the key ownerless."""
        fence, held = (fence, False) if fence is not None else self._standing(key)
        saying = secrets.token_hex(8)
        said = {
            "projectKey": _place(key, again=again),
            "fence": fence,
            "held": held,
            "sentAt": now.timestamp(),
            "saying": saying,
            "expiresAt": epoch(now, KEPT_SECONDS),
        }
        before = now.timestamp() - (AGAIN_SECONDS if again else HINT_INTERVAL_SECONDS)
        write = put(self._table, said, NEWS, fence=fence, held=held, before=before)
        refused = self._dynamo.write(f"{key}: asking", write)
        if isinstance(refused, Refused) and refused.by[0].get("saying") != saying:
            return None  # if it is ours, only the answer to the first try was lost
        return saying

    def take_back(self, key: ProjectUser, saying: str, *, again: bool) -> None:
        """It could not be said after all; if not even this can be done, a reconciler says it."""
        place = {"projectKey": _place(key, again=again)}
        with contextlib.suppress(WebOrdinaryError):
            self._dynamo.write(f"{key}: taking back", delete(self._table, place, MY_SAYING, saying=saying))

    def _standing(self, key: ProjectUser) -> tuple[int, bool]:
        """The key's last fence, and whether somebody holds it, or did so when it was last heard of."""
        row = self._dynamo.get(f"{key}: looking for its fence", (self._ownership, {"projectKey": str(key)}))
        return (int(row["fence"]), row["status"] == ClaimStatus.HELD) if row else (0, False)


def _place(key: ProjectUser, *, again: bool) -> str:
    return f"{key}#again" if again else str(key)
