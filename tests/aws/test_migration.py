"""Sites with a bucket and a stack each, as earlier versions had them, become folders of the common bucket."""
# ruff: noqa: E402

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.extras import needs_extra

needs_extra("boto3", "aws")

from tests.aws.accounts import session_of
from tests.aws.emulator import REGION, RunningEmulator
from tests.aws.recorded import Recorded
from tests.aws.site_bucket import fill
from tests.aws.test_preflight import stack
from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import connect
from webordinary.adapters.aws.provision.migration import OldShape, status_of
from webordinary.adapters.aws.provision.preflight import our_stacks
from webordinary.adapters.aws.provision.shapes import (
    create_key_queues,
    create_shared_queues,
    create_tables,
    make_site_bucket,
)
from webordinary.adapters.aws.site.credentials import GitSecrets
from webordinary.adapters.aws.site.releases import LocalCopies, S3Releases
from webordinary.compose import provision
from webordinary.compose.aws import open_aws
from webordinary.config import Config
from webordinary.jobs.site_files import Stage
from webordinary.model.errors import Permanent, Transient
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project

SITE, RULES, KEPT = (f"{names.PREFIX}-{name}" for name in ("site-amelia", "sites", "site-gone"))
HOME = {"index.html": "home", "photo.png": "p", "_astro/a.1b2c3d4e.css": "c"}


class UnmigratedAccount:
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
        return boto3.client(service, region_name=region, endpoint_url=self._endpoint, **known)  # type: ignore[call-overload]

    def publish(self, commit: str, fence: int, *, new: bool, **more: str) -> None:
        def store(project: str, stage: Stage) -> str:
            own = names.own_bucket(project, stage, self.domain)
            return names.site_store(self.account, project, stage) if new else own

        def store_of_previews(project: str) -> str:
            return f"{names.sites_bucket(self.account)}/{names.previews_folder(project)}"

        copies = LocalCopies(self._folder / secrets.token_hex(4))
        releases = S3Releases(lambda _: self.s3, store, store_of_previews, copies, lambda: datetime.now(UTC))
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


class MigratingAccount:
    """Runs `provision.migrate` in an account with stacks of single sites and projects that have no senders."""

    def __init__(self, world: UnmigratedAccount, endpoint: str, stacks: Sequence[str]) -> None:
        self.world, self.said = world, list[str]()
        self._config = Config(
            backend="aws", aws_endpoint=endpoint, aws_account=world.account, aws_region=REGION, domain=world.domain
        )
        with open_aws(self._config) as services:
            create_tables(services.clients)
            services.directory.add_project(Project("amelia", "https://git.example/a.git"), datetime.now(UTC))
        self.records = f".{world.domain}"
        for name in stacks:
            self.make_stack(name, {"Topic": {"Type": "AWS::SNS::Topic"}})

    def deploy(self, *hosts: str) -> None:
        origin = {"Id": "o", "DomainName": "o.example", "CustomOriginConfig": {"OriginProtocolPolicy": "https-only"}}
        caching = {"TargetOriginId": "o", "ViewerProtocolPolicy": "https-only", "CachePolicyId": "658327ea"}
        shown = {"Enabled": True, "Origins": [origin], "DefaultCacheBehavior": caching, "Aliases": list(hosts)}
        properties = {"DistributionConfig": shown}
        self.make_stack(names.WEB_STACK, {"Sites": {"Type": "AWS::CloudFront::Distribution", "Properties": properties}})

    def deploy_with_names(self) -> None:
        self.deploy(f"*.{self.world.domain}", f"*.edit.{self.world.domain}")

    def make_stack(self, name: str, resources: dict[str, Any]) -> None:
        made = self.world.client("cloudformation")
        made.create_stack(StackName=name, TemplateBody=json.dumps({"Resources": resources}))
        made.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})

    def migrate(self) -> int:
        return provision.migrate(self._config, self.said.append, self.fetch)

    def fetch(self, address: str) -> int:
        """What a visitor is answered: the edge, which no emulator has, reads the folder that the host names."""
        host, page = urlsplit(address).hostname or "", urlsplit(address).path
        if not host.endswith(self.records):
            return 0
        store = names.site_store(self.world.account, host.partition(".")[0], "edit" if ".edit." in host else "public")
        try:
            self.world.s3.head_object(Bucket=store.partition("/")[0], Key=store.partition("/")[2] + page[1:])
        except ClientError:
            return 404
        return 200

    def stacks(self) -> set[str]:
        return set(our_stacks(self.world.client("cloudformation"))) - {names.WEB_STACK}


@pytest.fixture
def operator(world: UnmigratedAccount, ministack: RunningEmulator, monkeypatch: pytest.MonkeyPatch) -> MigratingAccount:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", world.account)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it keeps the credentials of an earlier test
    world.publish("a" * 40, 7, new=False)
    return MigratingAccount(world, ministack.endpoint, [SITE, RULES])


@pytest.fixture
def world(ministack: RunningEmulator, tmp_path: Path) -> UnmigratedAccount:
    return UnmigratedAccount(ministack.endpoint, tmp_path)


def test_what_a_site_shows_is_copied_and_workers_go_on_from_there(world: UnmigratedAccount) -> None:
    world.publish("a" * 40, 7, new=False)
    assert list(world.old.copy_sites(["amelia", "never-published"])) == ["amelia: edit site copied, 3 files"]
    shown = world.shown()
    assert {path: text for path, (text, _) in shown.items()} == HOME
    assert "immutable" in shown["_astro/a.1b2c3d4e.css"][1]
    assert list(world.old.copy_sites(["amelia"])) == ["amelia: edit site is there"]
    world.publish("b" * 40, 8, new=True, **{"index.html": "changed"})
    assert world.shown()["index.html"][0] == "changed"


def test_a_site_that_was_published_since_is_left_as_it_is(world: UnmigratedAccount) -> None:
    world.publish("a" * 40, 7, new=False)
    world.publish("b" * 40, 8, new=True, **{"index.html": "changed"})
    assert list(world.old.copy_sites(["amelia"])) == ["amelia: edit site was published since"]
    assert world.shown()["index.html"][0] == "changed"


def test_a_project_without_senders_is_copied_before_its_stack_goes(operator: MigratingAccount) -> None:
    operator.deploy_with_names()
    assert operator.migrate() == 2
    assert {path: text for path, (text, _) in operator.world.shown().items()} == HOME
    assert operator.stacks() == set()


def test_a_customers_own_queue_of_dead_letters_goes_when_it_is_empty(
    operator: MigratingAccount, ministack: RunningEmulator
) -> None:
    clients = connect(REGION, ministack.endpoint, session_of(operator.world.account))
    key = ProjectUser("amelia", "left")
    create_shared_queues(clients)
    create_key_queues(clients, key)
    name = names.own_dead_letters(key)
    clients.sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})
    operator.deploy_with_names()
    operator.migrate()
    assert clients.sqs.list_queues(QueueNamePrefix=name).get("QueueUrls", []) == []


def test_the_stack_of_a_site_that_was_not_copied_stays_and_so_do_its_rules(operator: MigratingAccount) -> None:
    operator.make_stack(KEPT, {"Topic": {"Type": "AWS::SNS::Topic"}})
    operator.deploy_with_names()
    assert operator.migrate() == 1
    assert operator.stacks() == {KEPT, RULES}
    assert f"{KEPT} stays: there is no project gone" in operator.said


def test_with_a_domain_that_names_no_buckets_nothing_is_removed(operator: MigratingAccount) -> None:
    operator.world.s3.delete_bucket(Bucket=names.own_bucket("amelia", Stage.PUBLIC, operator.world.domain))
    with pytest.raises(Permanent, match="is the domain"):
        operator.migrate()
    assert operator.stacks() == {SITE, RULES}


def test_without_the_stack_of_all_sites_no_other_is_removed(operator: MigratingAccount) -> None:
    with pytest.raises(Permanent, match="aws deploy"):
        operator.migrate()
    assert operator.stacks() == {SITE, RULES}


def test_without_names_for_all_sites_no_stack_is_removed(operator: MigratingAccount) -> None:
    operator.deploy()
    with pytest.raises(Permanent, match=r"hosted_zone=ID.*certificate=ARN"):
        operator.migrate()
    assert operator.stacks() == {SITE, RULES}


@pytest.mark.parametrize("records", [".elsewhere.example", ".edit.{}", "migrates.{}"])
def test_where_new_names_lead_nowhere_no_stack_is_removed(operator: MigratingAccount, records: str) -> None:
    operator.deploy_with_names()
    operator.records = records.format(operator.world.domain)
    with pytest.raises(Permanent, match="`Address`"):
        operator.migrate()
    assert operator.stacks() == {SITE, RULES}


def test_a_page_answers_is_missing_or_is_not_answered(world: UnmigratedAccount, ministack: RunningEmulator) -> None:
    world.s3.put_object(Bucket=names.sites_bucket(world.account), Key="a.html", Body=b"a")
    signed = {"Bucket": names.sites_bucket(world.account), "Key": "a.html"}
    assert status_of(world.s3.generate_presigned_url("get_object", signed)) == 200
    assert status_of(f"{ministack.endpoint}/no-such-bucket/a.html") == 404
    assert status_of("http://127.0.0.1:1/") == 0


@pytest.mark.parametrize(("call", "code"), [("head_bucket", "403"), ("get_object", "AccessDenied")])
def test_an_operator_who_may_not_read_an_old_bucket_is_told(call: str, code: str) -> None:
    recorded = Recorded()
    recorded.answers("cloudformation", "describe_stacks", {"Stacks": []})
    if call == "get_object":
        recorded.answers("s3", "head_bucket", {})
    recorded.refuses("s3", call, code)
    with pytest.raises(Transient, match="does not allow"):
        list(OldShape(recorded, "1" * 12, "example.com").copy_sites(["kiln"]))


def test_credentials_move_to_parameters_and_a_newer_one_stays(world: UnmigratedAccount) -> None:
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
