"""Credentials of the customers' repositories: one encrypted parameter of Systems Manager a project, free of charge."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import boto3
from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import code_of, config_of, translated
from webordinary.adapters.aws.names import PROJECT_TAG

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_sts import STSClient
    from types_boto3_sts.type_defs import CredentialsTypeDef

_MISSING = "ParameterNotFound"
TIER = "Intelligent-Tiering"
"""Standard, which is free, up to 4 KB; a longer private key makes one advanced parameter of 0.05 dollars a month."""


@dataclass(frozen=True, slots=True)
class GitSecret:
    """A token or private key, and the address of the repository that it is for."""

    repo: str
    credential: str

    def __repr__(self) -> str:
        return f"GitSecret({self.repo!r})"


class GitSecrets:
    """SecureString parameters. `client_of` gives the SSM client of a project: a worker's own role reads none.

    The key `aws/ssm` encrypts them: every principal that may read a parameter may use it through SSM.
    """

    def __init__(self, client_of: Callable[[str], Any]) -> None:
        self._client_of = client_of

    def fetch(self, project_id: str) -> GitSecret | None:
        """A project's credential; None if it has none."""
        with translated(f"fetching the git credential of {project_id}"):
            try:
                found = self._client_of(project_id).get_parameter(Name=secret_name(project_id), WithDecryption=True)
            except ClientError as problem:
                if code_of(problem) != _MISSING:
                    raise
                return None
        return GitSecret(**json.loads(found["Parameter"]["Value"]))

    def keep(self, project_id: str, secret: GitSecret) -> None:
        """Use this one from now on."""
        text = json.dumps({"repo": secret.repo, "credential": secret.credential})
        with translated(f"keeping the git credential of {project_id}"):
            self._client_of(project_id).put_parameter(
                Name=secret_name(project_id), Value=text, Type="SecureString", Overwrite=True, Tier=TIER
            )

    def forget(self, project_id: str) -> bool:
        """Remove it at once; False if there was none."""
        with translated(f"forgetting the git credential of {project_id}"):
            try:
                self._client_of(project_id).delete_parameter(Name=secret_name(project_id))
            except ClientError as problem:
                if code_of(problem) != _MISSING:
                    raise
                return False
        return True


def secret_name(project_id: str) -> str:
    """Below its project, so that a project's own credentials reach it and no other."""
    return f"/{names.PREFIX}/{project_id}/git"


LAST_SECONDS = 3600
"""As long as AWS allows for a role that was assumed from a role."""
RENEW_BEFORE_SECONDS = 600.0
MOST_PROJECTS = 64
_LONGEST_NAME = 64


C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class _Scoped(Generic[C]):
    client: C
    until: float


class ScopedCredentials(Generic[C]):
    """Assumes the sites' role with the session tag `project`, when a project is first acted for.

    The role's policy names the project's folders and parameters by that tag, `${aws:PrincipalTag/project}`.
    The credentials live in this process's memory alone: no environment variable and no file that an agent could see.
    """

    def __init__(
        self,
        sts: STSClient,
        role: str,
        worker: str,
        connect: Callable[[CredentialsTypeDef], C],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sts, self._role, self._worker = sts, role, worker
        self._connect, self._monotonic = connect, monotonic
        self._scoped: dict[str, _Scoped[C]] = {}
        self._guard = threading.Lock()

    def client(self, project_id: str) -> C:
        """A client with this project's rights, good for ten more minutes at least. Raises Transient."""
        with self._guard:  # a new session is made once, however many slots ask
            held = self._scoped.pop(project_id, None)
            if held is None or self._monotonic() > held.until:
                held = self._assume(project_id)
            self._scoped[project_id] = held
            for oldest in list(self._scoped)[:-MOST_PROJECTS]:
                del self._scoped[oldest]
            return held.client

    def _assume(self, project_id: str) -> _Scoped[C]:
        asked_at = self._monotonic()
        with translated(f"taking the rights of project {project_id}"):
            taken = self._sts.assume_role(
                RoleArn=self._role,
                RoleSessionName=f"{project_id}-{self._worker}"[:_LONGEST_NAME],
                DurationSeconds=LAST_SECONDS,
                Tags=[{"Key": PROJECT_TAG, "Value": project_id}],
            )
        until = asked_at + LAST_SECONDS - RENEW_BEFORE_SECONDS
        return _Scoped(self._connect(taken["Credentials"]), until)


def rights_of(
    own: S3Client, role: str, worker: str, region: str, endpoint: str | None = None
) -> Callable[[str], S3Client]:
    """Which client to act for a project with; where no role is set, as on an emulator, the process's own."""
    return _scoped("s3", own, role, worker, region, endpoint)


def secrets_of(own: C, role: str, worker: str, region: str, endpoint: str | None = None) -> Callable[[str], C]:
    """Which client to read a project's secrets with; as `rights_of`."""
    return _scoped("ssm", own, role, worker, region, endpoint)


def _scoped(service: str, own: C, role: str, worker: str, region: str, endpoint: str | None) -> Callable[[str], C]:
    if not role:
        return lambda project_id: own
    session: Any = boto3.Session()  # the service is known by name only
    config = config_of(region, endpoint)

    def connect(taken: CredentialsTypeDef) -> C:
        client: C = session.client(
            service,
            config=config,
            endpoint_url=endpoint,
            aws_access_key_id=taken["AccessKeyId"],
            aws_secret_access_key=taken["SecretAccessKey"],
            aws_session_token=taken["SessionToken"],
        )
        return client

    sts = session.client("sts", config=config, endpoint_url=endpoint)
    return ScopedCredentials(sts, role, worker, connect).client
