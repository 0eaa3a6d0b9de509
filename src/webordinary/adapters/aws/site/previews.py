"""The previews of a project's conversations: which there are, since when, and how they go.

One object beside them lists them, moved by compare-and-swap, since a publisher may list no bucket. The bucket forgets
what lies there for EXPIRES; so a preview is written anew before that, and one that may have lost files is not used.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta

from webordinary.adapters.aws.names import PREVIEW_DAYS
from webordinary.adapters.aws.site.deploy import DELETE_EACH, ManifestState, look
from webordinary.adapters.aws.site.objects import MANIFEST, S3Objects
from webordinary.jobs.site_files import Stage, is_page
from webordinary.model.errors import Transient

EXPIRES = timedelta(days=PREVIEW_DAYS)
"""The rule of the bucket. No file of a preview in use is older than twice FRESH."""
FRESH = EXPIRES / 3
"""As long a preview's files are kept on when it changes, and as long after its last change it is of use."""
_TRIES = 5
Shown = dict[Stage, datetime]
"""When the oldest files of each were written; the one that changed last is the last."""


class PreviewList:
    """Of one project; `store` is the folder above its previews."""

    def __init__(self, store: S3Objects) -> None:
        self._store = store

    def newest_first(self) -> tuple[Stage, ...]:
        """Every preview that shows something."""
        return tuple(reversed(self._read()[0]))

    def note(self, preview: Stage, now: datetime) -> bool:
        """List it as the one that changed last, before it does; False if its files have to be written anew."""
        kept = False

        def noted(shown: Shown) -> Shown:
            nonlocal kept
            since = shown.pop(preview, None)
            kept = since is not None and now - since <= FRESH
            return {**shown, preview: since if since and kept else now}

        self._change(noted)
        return kept

    def forget(self, preview: Stage, clear: Callable[[], None]) -> None:
        """Take it off the list once `clear` has removed its files. Idempotent."""
        if preview in self._read()[0]:
            clear()
            self._change(lambda shown: {one: since for one, since in shown.items() if one != preview})

    def _read(self) -> tuple[Shown, str | None]:
        stored = self._store.manifest()
        if stored is None:
            return {}, None
        listed = json.loads(stored.text)
        return {Stage(name): datetime.fromisoformat(since) for name, since in listed.items()}, stored.version

    def _change(self, change: Callable[[Shown], Shown]) -> None:
        for _ in range(_TRIES):
            shown, version = self._read()
            text = json.dumps({str(one): since.isoformat() for one, since in change(shown).items()})
            if self._store.swap_manifest(text.encode(), version) is not None:
                return
        raise Transient(f"the list of previews {self._store.name} moved {_TRIES} times; it will be tried again")


def is_fresh(standing: ManifestState, now: datetime) -> bool:
    """Whether all files of a preview are certainly there."""
    made_at = standing.shown.made_at
    return bool(made_at) and now - datetime.fromisoformat(made_at) <= FRESH


def clear(store: S3Objects) -> None:
    """Remove what a preview shows: the pages before what they refer to, its manifest last. Idempotent."""
    shown = look(store).shown
    paths = sorted(shown.files.keys() | (shown.touched or frozenset()), key=lambda path: (not is_page(path), path))
    for first in range(0, len(paths), DELETE_EACH):
        store.delete(paths[first : first + DELETE_EACH])
    store.delete([MANIFEST])
