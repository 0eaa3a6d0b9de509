"""Git credentials of projects on AWS: fetched from parameters of SSM. Workers and commands load it, lambdas do not."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from webordinary.adapters.aws.site.credentials import GitSecret, GitSecrets
from webordinary.adapters.git import Credentials
from webordinary.adapters.git.credentials import CredentialKind

FRESH_SECONDS = 600.0
"""So long a worker goes on with a credential that was replaced."""


class FetchedCredentials(Credentials):
    """Credentials copied from SSM into a folder of this process. Thread-safe."""

    def __init__(self, folder: Path, secrets: GitSecrets, monotonic: Callable[[], float]) -> None:
        super().__init__(folder)
        shutil.rmtree(folder, ignore_errors=True)
        self._secrets, self._monotonic = secrets, monotonic
        self._fetched_at: dict[str, float] = {}
        self._guard = threading.RLock()

    def kind(self, project_id: str) -> CredentialKind:
        with self._guard:
            self._fetch(project_id)
            return super().kind(project_id)

    def env(self, project_id: str) -> Mapping[str, str]:
        with self._guard:
            self._fetch(project_id)
            return super().env(project_id)

    @contextmanager
    def on_trial(self, project_id: str, repo: str, content: bytes) -> Iterator[None]:
        """A trial whose credential is kept for all workers once the block ended well."""
        self._fetched_at[project_id] = self._monotonic()
        with super().on_trial(project_id, repo, content):
            yield
            self._secrets.keep(project_id, GitSecret(repo, content.decode()))

    def forget(self, project_id: str) -> bool:
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
