"""The first day as docs/aws.md has it, and what may follow: each command in order, on one account of the emulator.

CloudFormation is the one thing that the emulator has not: in its place a program stands that makes the same resources.
"""
# ruff: noqa: E402

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

import boto3
from botocore.exceptions import ClientError

from tests.aws.accounts import session_of
from tests.aws.emulator import REGION, RunningEmulator
from tests.aws.lambdas import MAILBOX, ROOT, close_down, packaged, plan_for
from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import connect
from webordinary.adapters.aws.functions import INTAKE
from webordinary.adapters.aws.provision.deployment import connect_tools, provision_all
from webordinary.adapters.aws.provision.package import AWS
from webordinary.adapters.aws.provision.shapes import create_tables
from webordinary.compose.provision import verify_sender
from webordinary.entrypoints.cli import main

pytestmark = [pytest.mark.xdist_group("cdk"), pytest.mark.slow, pytest.mark.timeout(400)]

ACCOUNT, ANN = "567890123456", "ann@example.com"
BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
CDK = ROOT / "infra" / "cdk" / "node_modules" / ".bin" / "cdk"
PROGRAM = """#!{python}
import sys
sys.path.insert(0, {root!r})
from tests.aws.test_first_day import as_the_cdk
sys.exit(as_the_cdk(sys.argv[1:]))
"""
OTHERS = "#!/bin/sh\necho v22.1.0\n"
"""They build, install and push nothing; the version is that of Node."""


def as_the_cdk(arguments: list[str]) -> int:
    """What the stacks make, as far as the emulator has it; what stays when they go stays."""
    endpoint = os.environ["WEBORDINARY_AWS_ENDPOINT"]
    session = session_of(ACCOUNT)
    clients, tools = connect(REGION, endpoint, session), connect_tools(REGION, endpoint, session)
    match arguments[0]:
        case "bootstrap":
            version = session.client("ssm", endpoint_url=endpoint)
            version.put_parameter(Name=BOOTSTRAP, Value="21", Type="String")
        case "deploy" if Path(os.environ["BROKEN"]).exists():
            create_tables(clients)
            return 1
        case "deploy":
            provision_all(clients, tools, plan_for(ACCOUNT, endpoint))
            _make_service(session, endpoint)
        case "destroy":
            close_down(tools)
    return 0


def _make_service(session: boto3.Session, endpoint: str) -> None:
    ecr, ecs = session.client("ecr", endpoint_url=endpoint), session.client("ecs", endpoint_url=endpoint)
    try:
        uri = ecr.create_repository(repositoryName=names.REPOSITORY)["repository"]["repositoryUri"]
    except ClientError:
        return  # all of it is there
    ecs.create_cluster(clusterName=names.CLUSTER)
    task = ecs.register_task_definition(family="worker", containerDefinitions=[{"name": "worker", "image": uri}])
    arn = task["taskDefinition"]["taskDefinitionArn"]
    ecs.create_service(cluster=names.CLUSTER, serviceName=names.SERVICE, taskDefinition=arn, desiredCount=0)


@pytest.fixture
def broken(ministack: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An operator at a shell, with an empty account; as long as this file exists, deployments fail."""
    packaged(AWS)
    packaged()
    for file in (CDK, *(tmp_path / "bin" / name for name in ("docker", "node", "npm"))):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(PROGRAM.format(python=sys.executable, root=str(ROOT)) if file == CDK else OTHERS)
        file.chmod(0o755)
    known = {
        "WEBORDINARY_BACKEND": "aws", "WEBORDINARY_AWS_ENDPOINT": ministack.endpoint, "WEBORDINARY_MAILBOX": MAILBOX,
        "WEBORDINARY_DOMAIN": "sites.example.net", "WEBORDINARY_DATA": str(tmp_path / "data"),
        "WEBORDINARY_PICTURES": "off", "WEBORDINARY_AWS_POLL_SECONDS": "1", "BROKEN": str(tmp_path / "broken"),
        "AWS_ACCESS_KEY_ID": ACCOUNT, "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION,
        "PATH": os.pathsep.join((str(tmp_path / "bin"), os.environ["PATH"])),
    }  # fmt: skip
    for name, value in known.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it keeps the account of the test before
    yield tmp_path / "broken"
    shutil.rmtree(CDK.parents[1], ignore_errors=True)
    close_down(connect_tools(REGION, ministack.endpoint, session_of(ACCOUNT)))


@contextmanager
def worker() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-m", "webordinary", "worker"], stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(200) == 0


def test_the_first_day_and_what_may_follow_it(
    broken: Path, ministack: RunningEmulator, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def said(*command: str, code: int = 0) -> str:
        capfd.readouterr()
        assert main(command) == code, capfd.readouterr()
        return "".join(capfd.readouterr())

    site, operator = tmp_path / "site", ("-c", "operator=you@example.com")
    site.mkdir()
    (site / "index.html").write_text("<!doctype html><title>Kiln</title><h1>Kiln</h1>")
    assert "bootstrap is missing" in said("aws", "preflight", *operator)
    said("aws", "deploy", "--yes", *operator)
    verify_sender(connect(REGION, ministack.endpoint, session_of(ACCOUNT)), MAILBOX)
    assert "is pushed" in said("aws", "image")
    said("project", "add", "kiln", "--repo", str(site), "--user", "ann", "--sender", ANN)
    with worker():
        assert "answered" in said("aws", "smoke", "--from", ANN)
    assert "bootstrap is missing" not in said("aws", "deploy", "--yes", *operator)
    broken.touch()
    assert "ended with code 1" in said("aws", "deploy", "--yes", *operator, code=1)
    broken.unlink()
    said("aws", "deploy", "--yes", *operator)
    said("aws", "destroy", "--yes")
    functions = connect_tools(REGION, ministack.endpoint, session_of(ACCOUNT)).functions
    with pytest.raises(ClientError, match="ResourceNotFound"):
        functions.get_function(FunctionName=INTAKE.name)
    said("aws", "deploy", "--yes", *operator)
    assert functions.get_function(FunctionName=INTAKE.name)
    assert "kiln" in said("project", "list"), "the customer of before is known again"
