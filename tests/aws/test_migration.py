"""Sites with a bucket and a stack each, as earlier versions had them, become folders of the common bucket."""
# ruff: noqa: E402

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

from tests.aws.emulator import REGION, Emulator
from tests.aws.site_world import fill
from tests.aws.test_preflight import Recorded, stack
from webordinary.adapters.aws import names
from webordinary.adapters.aws.provision.migration import OldShape
from webordinary.adapters.aws.provision.shapes import make_site_bucket
from webordinary.adapters.aws.site.credentials import GitSecrets
from webordinary.adapters.aws.site.releases import LocalCopies, S3Releases
from webordinary.jobs.site_files import Stage
from webordinary.model.errors import Permanent

HOME = {"index.html": "home", "photo.png": "p", "_astro/a.1b2c3d4e.css": "c"}


class OldWorld:
    """An account in which Amelia's two sites have buckets of their own."""

    def __init__(self, endpoint: str, folder: Path) -> None:
        self.account = f"{secrets.randbelow(9 * 10**11) + 10**11}"
        self._endpoint, self._folder = endpoint, folder
        self.domain = f"t{self.account}.example"
        self.s3 = self.client("s3")
        self.old = OldShape(self.client, self.account, self.domain)
        for stage in (Stage.EDIT, Stage.PUBLIC):
            make_site_bucket(self.s3, names.own_bucket("amelia", stage, self.domain))
        make_site_bucket(self.s3, names.sites_bucket(self.account))

    def client(self, service: str, region: str = REGION) -> Any:  # noqa: ANN401
        known = {"aws_access_key_id": self.account, "aws_secret_access_key": "x"}
        return boto3.client(service, region_name=region, endpoint_url=self._endpoint, **known)

    def publish(self, commit: str, fence: int, *, new: bool, **more: str) -> None:
        def store(project: str, stage: Stage) -> str:
            own = names.own_bucket(project, stage, self.domain)
            return names.site_store(self.account, project, stage) if new else own

        copies = LocalCopies(self._folder / secrets.token_hex(4))
        releases = S3Releases(lambda _: self.s3, store, copies, lambda: datetime.now(UTC))
        staged = releases.stage("amelia", Stage.EDIT, fence)
        fill(staged, {**HOME, **more})
        releases.activate(releases.finish("amelia", Stage.EDIT, staged, commit), fence)

    def shown(self) -> dict[str, tuple[str, str]]:
        """Text and caching of what the edge would fetch of the edit site."""
        bucket, folder = names.sites_bucket(self.account), "amelia/edit/"
        listed = self.s3.list_objects_v2(Bucket=bucket, Prefix=folder).get("Contents", [])
        found = {}
        for one in listed:
            got = self.s3.get_object(Bucket=bucket, Key=one["Key"])
            found[one["Key"].removeprefix(folder)] = (got["Body"].read().decode(), got["CacheControl"])
        return {path: got for path, got in found.items() if not path.startswith(".")}


@pytest.fixture
def world(ministack: Emulator, tmp_path: Path) -> OldWorld:
    return OldWorld(ministack.endpoint, tmp_path)


def test_what_a_site_shows_is_copied_and_workers_go_on_from_there(world: OldWorld) -> None:
    world.publish("a" * 40, 7, new=False)
    assert list(world.old.copy_sites(["amelia", "never-published"])) == ["amelia: edit site copied, 3 files"]
    shown = world.shown()
    assert {path: text for path, (text, _) in shown.items()} == HOME
    assert "immutable" in shown["_astro/a.1b2c3d4e.css"][1]
    assert list(world.old.copy_sites(["amelia"])) == ["amelia: edit site is there"]
    world.publish("b" * 40, 8, new=True, **{"index.html": "changed"})
    assert world.shown()["index.html"][0] == "changed"


def test_a_site_that_was_published_since_is_left_as_it_is(world: OldWorld) -> None:
    world.publish("a" * 40, 7, new=False)
    world.publish("b" * 40, 8, new=True, **{"index.html": "changed"})
    assert list(world.old.copy_sites(["amelia"])) == ["amelia: edit site was published since"]
    assert world.shown()["index.html"][0] == "changed"


def test_credentials_move_to_parameters_and_a_newer_one_stays(world: OldWorld) -> None:
    old, ssm = world.client("secretsmanager"), world.client("ssm")
    text = json.dumps({"repo": "https://git.example/a.git", "credential": "t0ken"})
    old.create_secret(Name=f"{names.PREFIX}/amelia/git", SecretString=text)
    assert list(world.old.copy_credentials(["amelia", "bob"])) == ["amelia: credential of its repository copied"]
    kept = GitSecrets(lambda _: ssm)
    found = kept.fetch("amelia")
    assert found
    assert found.credential == "t0ken"
    old.put_secret_value(SecretId=f"{names.PREFIX}/amelia/git", SecretString=text.replace("t0ken", "older"))
    assert list(world.old.copy_credentials(["amelia"])) == []


def test_stacks_of_single_sites_go_before_the_one_whose_exports_they_use() -> None:
    """CloudFormation: an export cannot be removed while another stack imports it."""
    recorded, said = Recorded(), list[str]()
    one, rules = f"{names.PREFIX}-site-kiln", f"{names.PREFIX}-sites"
    ours = [stack(f"{names.PREFIX}-data", "CREATE_COMPLETE"), stack(rules, "CREATE_COMPLETE")]

    def stacks(*found: dict[str, Any]) -> None:
        recorded.answers("cloudformation", "describe_stacks", {"Stacks": list(found)})

    stacks(*ours, stack(one, "CREATE_COMPLETE"))
    recorded.answers("cloudformation", "delete_stack", {}, {"StackName": one})
    stacks(*ours, stack(one, "DELETE_IN_PROGRESS"))
    stacks(*ours)
    stacks(*ours)
    recorded.answers("cloudformation", "delete_stack", {}, {"StackName": rules})
    stacks(ours[0])
    assert OldShape(recorded, "1" * 12, "example.com").remove_stacks(said.append, lambda: None) == 2
    recorded.done()
    assert said == ["1 stacks of single sites are being removed"]


def test_a_stack_that_cannot_be_removed_is_named() -> None:
    recorded, one = Recorded(), f"{names.PREFIX}-site-kiln"
    for status in ("CREATE_COMPLETE", "DELETE_FAILED"):
        recorded.answers("cloudformation", "describe_stacks", {"Stacks": [stack(one, status)]})
        if status == "CREATE_COMPLETE":
            recorded.answers("cloudformation", "delete_stack", {}, {"StackName": one})
    with pytest.raises(Permanent, match=one):
        OldShape(recorded, "1" * 12, "example.com").remove_stacks(lambda _: None, lambda: None)
