"""`webordinary aws deploy|diff|destroy|image`: the command lines that they give to other people's programs."""
# ruff: noqa: E402

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

import boto3

from tests.aws.emulator import REGION, Emulator
from tests.aws.lambdas import ROOT, packaged
from webordinary.adapters.aws import names
from webordinary.adapters.aws.provision.package import AWS
from webordinary.entrypoints.cli import main

ACCOUNT = "345678901234"
# Writes down how it was called, and what it was given to read.
PROGRAM = """#!{python}
import json, os, sys
given = sys.stdin.read() if "--password-stdin" in sys.argv else ""
with open({log!r}, "a") as log:
    print(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:], *([given] if given else [])]), file=log)
sys.exit({code})
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put programs of these names on an otherwise empty PATH; where their calls are written down."""
    folder, log = tmp_path / "bin", tmp_path / "calls"
    folder.mkdir()
    log.touch()
    monkeypatch.setenv("PATH", str(folder))

    def put(*wanted: str, code: int = 0) -> Path:
        for name in wanted:
            (folder / name).write_text(PROGRAM.format(python=sys.executable, log=str(log), code=code))
            (folder / name).chmod(0o755)
        return log

    return put


@pytest.fixture
def account(ministack: Emulator, monkeypatch: pytest.MonkeyPatch) -> str:
    packaged(AWS)  # while PATH is still whole
    known = {"AWS_ACCESS_KEY_ID": ACCOUNT, "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}
    for name, value in known.items():
        monkeypatch.setenv(name, value)
    return ministack.endpoint


def calls(log: Path) -> list[list[str]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_deploy_packs_the_lambdas_and_hands_our_settings_to_the_cdk(
    account: str, programs: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    log = programs("cdk")
    said = ["--domain", "example.com", "-c", "projects=amelia", "--endpoint", account]
    assert main(["aws", "deploy", "--yes", *said]) == 0
    [[cdk, deploy, *told]] = calls(log)
    assert (cdk, deploy) == ("cdk", "deploy")
    take_over = "--import-existing-resources"  # such as buckets that onboarding made
    context = ["-c", "domain=example.com", "-c", "projects=amelia"]
    assert told == ["--all", take_over, "--require-approval", "never", *context]
    assert (ROOT / "build" / "lambda" / "aws.zip").is_file()
    assert "webordinary aws image" in capsys.readouterr().out


def test_without_the_cdk_s_own_program_npx_fetches_it(account: str, programs: Callable[..., Path]) -> None:
    log = programs("npx")
    assert main(["aws", "diff", "-c", "domain=a.example", "--domain", "b.example"]) == 0
    assert calls(log) == [["npx", "--yes", "aws-cdk", "diff", "-c", "domain=a.example"]]


def test_destroy_can_take_one_site(account: str, programs: Callable[..., Path]) -> None:
    log = programs("cdk")
    assert main(["aws", "destroy", "--site", "jam", "--yes"]) == 0
    assert main(["aws", "destroy"]) == 0
    assert calls(log) == [
        ["cdk", "destroy", "site-jam", "-c", "projects=jam", "--force"],
        ["cdk", "destroy", "--all"],
    ]


@pytest.mark.usefixtures("account")
def test_what_is_missing_or_fails_is_told(programs: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    programs()
    assert main(["aws", "diff"]) == 1
    assert "npx is not installed; install Node" in capsys.readouterr().err
    assert main(["aws", "image"]) == 1
    assert "docker is not installed; install Docker" in capsys.readouterr().err
    assert main(["aws", "deploy", "-c", "domain"]) == 2
    assert "-c domain has no value; write -c name=value" in capsys.readouterr().err
    programs("cdk", code=3)
    assert main(["aws", "diff"]) == 1
    assert "cdk diff` ended with code 3; its words stand above" in capsys.readouterr().err


def test_the_image_is_built_tagged_pushed_and_taken(
    account: str, programs: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    ecr = boto3.client("ecr", endpoint_url=account)
    uri = ecr.create_repository(repositoryName=names.REPOSITORY)["repository"]["repositoryUri"]
    ecs = boto3.client("ecs", endpoint_url=account)
    ecs.create_cluster(clusterName=names.CLUSTER)
    task = ecs.register_task_definition(family="worker", containerDefinitions=[{"name": "worker", "image": uri}])
    arn = task["taskDefinition"]["taskDefinitionArn"]
    ecs.create_service(cluster=names.CLUSTER, serviceName=names.SERVICE, taskDefinition=arn, desiredCount=0)
    log = programs("docker")
    assert main(["aws", "image", "--extras", "claude", "--endpoint", account, "--json"]) == 0
    images = json.loads(capsys.readouterr().out)["images"]
    assert [image.rpartition(":")[0] for image in images] == [uri, uri]
    built, login, *pushed = calls(log)
    tags = ["--tag", images[0], "--tag", images[1]]
    assert built == ["docker", "build", "--platform", "linux/arm64", "--build-arg", "EXTRAS=claude", *tags, "."]
    assert login[:5] == ["docker", "login", "--username", "AWS", "--password-stdin"]
    assert login[-1]
    assert pushed == [["docker", "push", image] for image in images]
    assert not any(login[-1] in part for part in os.environ.values())
