"""What lets workers into the customers' repositories, in Secrets Manager: one secret a project."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import code_of, translated

_MISSING = "ResourceNotFoundException"


@dataclass(frozen=True, slots=True)
class GitSecret:
    """A token or private key, and the address of the repository that it is for."""

    repo: str
    credential: str

    def __repr__(self) -> str:
        return f"GitSecret({self.repo!r})"


class GitSecrets:
    """`client_of` gives the client to read a project's secrets with: a worker's own role reads none."""

    def __init__(self, client_of: Callable[[str], Any]) -> None:
        self._client_of = client_of

    def fetch(self, project_id: str) -> GitSecret | None:
        """A project's credential; None if it has none."""
        with translated(f"fetching the git credential of {project_id}"):
            try:
                found = self._client_of(project_id).get_secret_value(SecretId=secret_name(project_id))
            except ClientError as problem:
                if code_of(problem) != _MISSING:
                    raise
                return None
        return GitSecret(**json.loads(found["SecretString"]))

    def keep(self, project_id: str, secret: GitSecret) -> None:
        """Use this one from now on."""
        name, client = secret_name(project_id), self._client_of(project_id)
        text = json.dumps({"repo": secret.repo, "credential": secret.credential})
        with translated(f"keeping the git credential of {project_id}"):
            try:
                client.put_secret_value(SecretId=name, SecretString=text)
            except ClientError as problem:
                if code_of(problem) != _MISSING:
                    raise
                client.create_secret(Name=name, SecretString=text)

    def forget(self, project_id: str) -> bool:
        """Remove it at once; False if there was none."""
        with translated(f"forgetting the git credential of {project_id}"):
            try:
                self._client_of(project_id).delete_secret(
                    SecretId=secret_name(project_id), ForceDeleteWithoutRecovery=True
                )
            except ClientError as problem:
                if code_of(problem) != _MISSING:
                    raise
                return False
        return True


def secret_name(project_id: str) -> str:
    """Below its project, so that a project's own credentials reach it and no other."""
    return f"{names.PREFIX}/{project_id}/git"
