"""Git credentials of a process on AWS: fetched when git needs them, in files that only this process's user can read."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from webordinary.adapters.aws.site.git_secrets import GitSecret, GitSecrets
from webordinary.adapters.local.git import Credentials
from webordinary.adapters.local.git.credentials import Kind

FRESH_SECONDS = 600.0
"""So long a worker goes on with a credential that was replaced."""


class FetchedCredentials(Credentials):
    """See Credentials; the folder is the process's own, what lies in it is a copy. Thread-safe."""

    def __init__(self, folder: Path, secrets: GitSecrets, monotonic: Callable[[], float]) -> None:
        super().__init__(folder)
        shutil.rmtree(folder, ignore_errors=True)
        self._secrets, self._monotonic = secrets, monotonic
        self._fetched_at: dict[str, float] = {}
        self._guard = threading.RLock()

    def kind(self, project_id: str) -> Kind:
        """See Credentials."""
        with self._guard:
            self._fetch(project_id)
            return super().kind(project_id)

    def env(self, project_id: str) -> Mapping[str, str]:
        """See Credentials."""
        with self._guard:
            self._fetch(project_id)
            return super().env(project_id)

    @contextmanager
    def on_trial(self, project_id: str, repo: str, content: bytes) -> Iterator[None]:
        """See Credentials: kept for everybody once the block ended well."""
        self._fetched_at[project_id] = self._monotonic()
        with super().on_trial(project_id, repo, content):
            yield
            self._secrets.keep(project_id, GitSecret(repo, content.decode()))

    def forget(self, project_id: str) -> bool:
        """See Credentials."""
        super().forget(project_id)
        return self._secrets.forget(project_id)

    def _fetch(self, project_id: str) -> None:
        now = self._monotonic()
        if now - self._fetched_at.get(project_id, -FRESH_SECONDS) < FRESH_SECONDS:
            return
        secret = self._secrets.fetch(project_id)
        self._fetched_at[project_id] = now
        if secret is None:
            super().forget(project_id)
            return
        with super().on_trial(project_id, secret.repo, secret.credential.encode()):
            pass
