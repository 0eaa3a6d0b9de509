"""A worker acts for a project with that project's rights alone."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

import boto3  # noqa: E402
from botocore.stub import Stubber  # noqa: E402

from tests.aws.emulator import REGION, RunningEmulator, credentials  # noqa: E402
from tests.aws.site_bucket import SiteBucket, clients_of  # noqa: E402
from webordinary.adapters.aws import names  # noqa: E402
from webordinary.adapters.aws.site.credentials import (  # noqa: E402
    LAST_SECONDS,
    MOST_PROJECTS,
    RENEW_BEFORE_SECONDS,
    Broker,
    ScopedCredentials,
    Taken,
    become_publisher,
    rights_of,
)
from webordinary.jobs.site_files import Stage  # noqa: E402
from webordinary.model.errors import Transient  # noqa: E402
from webordinary.model.names import ProjectUser  # noqa: E402

ROLE = "arn:aws:iam::000000000000:role/webordinary-site"


class Lambda:
    """AWS's answers, as recorded, and the clients that were made of them."""

    def __init__(self) -> None:
        self.client = boto3.client("lambda", region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")
        self.stub = Stubber(self.client)
        self.stub.activate()
        self.made: list[str] = []
        self.now = 1000.0
        self.broker = Broker(self.client, "w-1")
        self.scoped = ScopedCredentials(self.broker.take, self._connect, lambda: self.now)

    def expect(self, project: str, key: str) -> None:
        self._expect(project, {"AccessKeyId": key, "SecretAccessKey": "s", "SessionToken": "t"})

    def refuse(self, project: str, words: str) -> None:
        self._expect(project, {"errorType": "Permanent", "errorMessage": words}, FunctionError="Unhandled")

    def _expect(self, project: str, told: object, **more: str) -> None:
        payload = io.BytesIO(json.dumps(told).encode())
        asked = {"FunctionName": names.BROKER, "Payload": json.dumps({"key": f"{project}#ann", "worker": "w-1"})}
        self.stub.add_response("invoke", {"StatusCode": 200, "Payload": payload, **more}, asked)

    def client_of(self, project: str) -> str:
        with self.broker.acting(ProjectUser(project, "ann")):
            return self.scoped.client(project)

    def _connect(self, taken: Taken) -> str:
        self.made.append(taken["AccessKeyId"])
        return self.made[-1]


@pytest.fixture
def aws() -> Lambda:
    return Lambda()


def test_each_project_has_credentials_of_its_own_and_they_are_taken_once(aws: Lambda) -> None:
    aws.expect("amelia", "A" * 16)
    aws.expect("bob", "B" * 16)
    assert [aws.client_of(name) for name in ("amelia", "bob", "amelia")] == ["A" * 16, "B" * 16, "A" * 16]
    aws.stub.assert_no_pending_responses()


def test_they_are_renewed_well_before_they_end(aws: Lambda) -> None:
    aws.expect("amelia", "A" * 16)
    aws.expect("amelia", "B" * 16)
    aws.client_of("amelia")
    aws.now += LAST_SECONDS - RENEW_BEFORE_SECONDS
    assert aws.client_of("amelia") == "A" * 16
    aws.now += 1
    assert aws.client_of("amelia") == "B" * 16


def test_so_many_are_remembered(aws: Lambda) -> None:
    for number in range(MOST_PROJECTS + 1):
        aws.expect(f"p{number}", f"{number:016d}")
        aws.client_of(f"p{number}")
    aws.expect("p0", "again" * 4)
    assert aws.client_of("p0") == "again" * 4
    assert aws.client_of("p5") == f"{5:016d}"


def test_a_refusal_is_for_the_operator_and_the_job_waits(aws: Lambda) -> None:
    aws.stub.add_client_error(
        "invoke", "AccessDeniedException", "not authorized to perform: lambda:InvokeFunction", 403
    )
    with pytest.raises(Transient, match="doctor"):
        aws.client_of("amelia")
    aws.refuse("amelia", "w-1 does not hold amelia#ann")
    with pytest.raises(Transient, match="w-1 does not hold amelia#ann"):
        aws.client_of("amelia")


def test_a_worker_asks_only_for_the_projects_of_the_jobs_that_it_runs(aws: Lambda) -> None:
    with pytest.raises(Transient, match="no job of amelia runs here"):
        aws.scoped.client("amelia")


def test_a_site_is_published_with_them_and_no_child_process_could_read_them(
    ministack: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in credentials().items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    world = SiteBucket(ministack, tmp_path, ("amelia",))
    sts = boto3.client("sts", region_name=REGION, endpoint_url=ministack.endpoint)
    rights = rights_of(
        "s3", world.s3, lambda project: become_publisher(sts, ROLE, project, "w-1"), REGION, ministack.endpoint
    )
    scoped = rights("amelia")
    assert scoped is rights("amelia")
    key = scoped._request_signer._credentials.access_key  # type: ignore[attr-defined]
    assert key.startswith("ASIA")
    world.publish(world.worker(s3=scoped), "a" * 40, {"index.html": "home"}, 1)
    assert world.shown(Stage.EDIT) == {"index.html": "home"}
    assert dict(os.environ) == before


def test_without_a_role_the_process_acts_with_its_own(ministack: RunningEmulator) -> None:
    own = clients_of(ministack.endpoint).s3
    assert rights_of("s3", own, None, REGION)("amelia") is own
