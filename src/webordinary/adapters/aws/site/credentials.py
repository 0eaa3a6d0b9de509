"""Credentials of the customers' repositories: one encrypted parameter of Systems Manager a project, free of charge."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import boto3
from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import code_of, config_of, translated
from webordinary.adapters.aws.names import PROJECT_TAG
from webordinary.model.errors import Transient
from webordinary.model.names import ProjectUser

if TYPE_CHECKING:
    from types_boto3_lambda import LambdaClient
    from types_boto3_sts import STSClient

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
        """Store the credential."""
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


Taken = Mapping[str, str]
"""Temporary credentials, by STS's names."""


def become_publisher(sts: STSClient, role: str, project_id: str, worker: str) -> Taken:
    """The rights of one project: the role's policy names folders and parameters by `${aws:PrincipalTag/project}`."""
    with translated(f"taking the rights of project {project_id}"):
        taken = sts.assume_role(
            RoleArn=role,
            RoleSessionName=f"{project_id}-{worker}"[:_LONGEST_NAME],
            DurationSeconds=LAST_SECONDS,
            Tags=[{"Key": PROJECT_TAG, "Value": project_id}],
        )["Credentials"]
    return {
        "AccessKeyId": taken["AccessKeyId"],
        "SecretAccessKey": taken["SecretAccessKey"],
        "SessionToken": taken["SessionToken"],
    }


class Broker:
    """Asks the lambda that gives out the rights of projects, for the claims under which this worker runs jobs."""

    def __init__(self, client: LambdaClient, worker: str, function: str = names.BROKER) -> None:
        self._client, self._worker, self._function = client, worker, function
        self._acting: list[ProjectUser] = []

    @contextmanager
    def acting(self, key: ProjectUser) -> Iterator[None]:
        """A job of this key runs during the block."""
        self._acting.append(key)
        try:
            yield
        finally:
            self._acting.remove(key)

    def take(self, project_id: str) -> Taken:
        """Raises Transient: without rights no job is at fault."""
        key = next((key for key in tuple(self._acting) if key.project_id == project_id), None)
        if key is None:
            raise Transient(f"no job of {project_id} runs here, so this worker has no rights to it")
        what, asked = f"taking the rights of project {project_id}", {"key": str(key), "worker": self._worker}
        with translated(what):
            answer = self._client.invoke(FunctionName=self._function, Payload=json.dumps(asked))
            issued = json.loads(answer["Payload"].read())
        if answer.get("FunctionError"):
            raise Transient(f"{what}: {issued.get('errorMessage', issued)}; run `webordinary doctor`")
        return issued  # type: ignore[no-any-return]  # as `become_publisher` returns it


class ScopedCredentials(Generic[C]):
    """Clients with the rights of one project each, which are taken when the project is first acted for.

    The credentials live in this process's memory alone: no environment variable and no file that an agent could see.
    """

    def __init__(
        self,
        take: Callable[[str], Taken],
        connect: Callable[[Taken], C],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._take, self._connect, self._monotonic = take, connect, monotonic
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
        until = asked_at + LAST_SECONDS - RENEW_BEFORE_SECONDS
        return _Scoped(self._connect(self._take(project_id)), until)


def rights_of(
    service: str, own: C, take: Callable[[str], Taken] | None, region: str, endpoint: str | None = None
) -> Callable[[str], C]:
    """Which client of a service to act for a project with; where rights are not taken, the process's own."""
    if take is None:
        return lambda project_id: own
    session: Any = boto3.Session()  # the service is known by name only
    config = config_of(region, endpoint)

    def connect(taken: Taken) -> C:
        client: C = session.client(
            service,
            config=config,
            endpoint_url=endpoint,
            aws_access_key_id=taken["AccessKeyId"],
            aws_secret_access_key=taken["SecretAccessKey"],
            aws_session_token=taken["SessionToken"],
        )
        return client

    return ScopedCredentials(take, connect).client
