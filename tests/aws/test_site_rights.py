"""A worker acts for a project with that project's rights alone."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

import boto3  # noqa: E402
from botocore.stub import ANY, Stubber  # noqa: E402

from tests.aws.emulator import REGION, Emulator, credentials  # noqa: E402
from tests.aws.site_world import SiteWorld, clients_of  # noqa: E402
from webordinary.adapters.aws.site.credentials import (  # noqa: E402
    LAST_SECONDS,
    MOST_PROJECTS,
    RENEW_BEFORE_SECONDS,
    ScopedCredentials,
    rights_of,
)
from webordinary.jobs.site_files import Stage  # noqa: E402
from webordinary.model.errors import Transient  # noqa: E402

ROLE = "arn:aws:iam::000000000000:role/webordinary-site"


class Sts:
    """AWS's answers, as recorded, and the clients that were made of them."""

    def __init__(self) -> None:
        self.client = boto3.client("sts", region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")
        self.stub = Stubber(self.client)
        self.stub.activate()
        self.made: list[str] = []
        self.now = 1000.0
        self.scoped = ScopedCredentials(self.client, ROLE, "w" * 80, self._connect, lambda: self.now)

    def expect(self, project: str, key: str) -> None:
        taken = {"AccessKeyId": key, "SecretAccessKey": "s", "SessionToken": "t", "Expiration": datetime.now(UTC)}
        asked = {
            "RoleArn": ROLE, "RoleSessionName": ANY, "DurationSeconds": LAST_SECONDS,
            "Tags": [{"Key": "project", "Value": project}],
        }  # fmt: skip
        self.stub.add_response("assume_role", {"Credentials": taken}, asked)

    def _connect(self, taken: object) -> object:
        self.made.append(taken["AccessKeyId"])  # type: ignore[index]
        return self.made[-1]


@pytest.fixture
def sts() -> Sts:
    return Sts()


def test_each_project_has_credentials_of_its_own_and_they_are_taken_once(sts: Sts) -> None:
    sts.expect("amelia", "A" * 16)
    sts.expect("bob", "B" * 16)
    assert [sts.scoped.client(name) for name in ("amelia", "bob", "amelia")] == ["A" * 16, "B" * 16, "A" * 16]
    sts.stub.assert_no_pending_responses()


def test_they_are_renewed_well_before_they_end(sts: Sts) -> None:
    sts.expect("amelia", "A" * 16)
    sts.expect("amelia", "B" * 16)
    sts.scoped.client("amelia")
    sts.now += LAST_SECONDS - RENEW_BEFORE_SECONDS
    assert sts.scoped.client("amelia") == "A" * 16
    sts.now += 1
    assert sts.scoped.client("amelia") == "B" * 16


def test_so_many_are_remembered(sts: Sts) -> None:
    for number in range(MOST_PROJECTS + 1):
        sts.expect(f"p{number}", f"{number:016d}")
        sts.scoped.client(f"p{number}")
    sts.expect("p0", "again" * 4)
    assert sts.scoped.client("p0") == "again" * 4
    assert sts.scoped.client("p5") == f"{5:016d}"


def test_a_refusal_is_for_the_operator_and_the_job_waits(sts: Sts) -> None:
    sts.stub.add_client_error("assume_role", "AccessDenied", "not authorized to perform: sts:TagSession", 403)
    with pytest.raises(Transient, match="doctor"):
        sts.scoped.client("amelia")


def test_a_site_is_published_with_them_and_no_child_process_could_read_them(
    ministack: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in credentials().items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    world = SiteWorld(ministack, tmp_path, ("amelia",))
    rights = rights_of(world.s3, ROLE, "w-1", REGION, ministack.endpoint)
    scoped = rights("amelia")
    assert scoped is rights("amelia")
    key = scoped._request_signer._credentials.access_key  # type: ignore[attr-defined]
    assert key.startswith("ASIA")
    world.publish(world.worker(s3=scoped), "a" * 40, {"index.html": "home"}, 1)
    assert world.shown(Stage.EDIT) == {"index.html": "home"}
    assert dict(os.environ) == before


def test_without_a_role_the_process_acts_with_its_own(ministack: Emulator) -> None:
    own = clients_of(ministack.endpoint).s3
    assert rights_of(own, "", "w-1", REGION)("amelia") is own
