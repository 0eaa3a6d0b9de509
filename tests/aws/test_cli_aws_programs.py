"""`webordinary aws deploy|diff|destroy|image`: the command lines that they give to other people's programs."""
# ruff: noqa: E402

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

import boto3

from tests.aws.emulator import REGION, RunningEmulator
from tests.aws.lambdas import ROOT, packaged
from webordinary.adapters.aws import names
from webordinary.adapters.aws.provision.package import AWS
from webordinary.entrypoints.cli import main

pytestmark = pytest.mark.xdist_group("cdk")  # they share infra/cdk/node_modules

ACCOUNT = "345678901234"
INSTALL = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
# Writes down how it was called, and what it was given to read.
PROGRAM = """#!{python}
import json, os, sys
given = sys.stdin.read() if "--password-stdin" in sys.argv else ""
open({log!r} + "." + os.path.basename(sys.argv[0]) + ".env", "w").write(json.dumps(dict(os.environ)))
with open({log!r}, "a") as log:
    print(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:], *([given] if given else [])]), file=log)
if sys.argv[1:] == ["--version"]:
    print("v22.1.0")
sys.exit({code})
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Put programs of these names on an otherwise empty PATH; where their calls are written down."""
    folder, log = tmp_path / "bin", tmp_path / "calls"
    folder.mkdir()
    log.touch()
    monkeypatch.setenv("PATH", str(folder))

    checkout = ROOT / "infra" / "cdk" / "node_modules" / ".bin" / "cdk"

    def put(*wanted: str, code: int = 0) -> Path:
        for name in wanted:
            put_program(checkout if name == "cdk" else folder / name, log, code)
        return log

    yield put
    shutil.rmtree(checkout.parents[1], ignore_errors=True)


def put_program(file: Path, log: Path, code: int = 0) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(PROGRAM.format(python=sys.executable, log=str(log), code=code))
    file.chmod(0o755)


@pytest.fixture
def account(ministack: RunningEmulator, monkeypatch: pytest.MonkeyPatch) -> str:
    packaged(AWS)  # while PATH is still whole
    monkeypatch.delenv("WEBORDINARY_ACKNOWLEDGE_SECONDS")  # a setting of all tests, which a deployment would be told
    known = {"AWS_ACCESS_KEY_ID": ACCOUNT, "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}
    for name, value in known.items():
        monkeypatch.setenv(name, value)
    return ministack.endpoint


def calls(log: Path) -> list[list[str]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_deploy_looks_makes_what_is_missing_and_hands_our_settings_to_the_cdk(
    account: str, programs: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    log = programs("npm", "cdk", "node")
    said = ["--domain", "example.com", "-c", "nat=instance", "--endpoint", account]
    assert main(["aws", "deploy", "--yes", *said]) == 0
    [_, installed, bootstrap, _, _, [cdk, deploy, *told]] = calls(log)
    assert installed == INSTALL
    assert bootstrap == ["cdk", "bootstrap", f"aws://{ACCOUNT}/{REGION}"]
    assert (cdk, deploy) == ("cdk", "deploy")
    take_over = "--import-existing-resources"  # such as buckets that a removed stack left behind
    settings = ("domain=example.com", "nat=instance", f"account={ACCOUNT}", "identity=made")
    context = [part for one in settings for part in ("-c", one)]
    assert told == ["--all", take_over, "--require-approval", "never", *context]
    assert (ROOT / "build" / "lambda" / "aws.zip").is_file()
    out = capsys.readouterr().out
    assert "dollars a month" in out
    assert "webordinary aws image" in out


def test_deploy_asks_once_and_changes_nothing_where_it_cannot(
    account: str, programs: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    log = programs("npm", "cdk", "node")
    assert main(["aws", "deploy", "--domain", "example.com", "--endpoint", account]) == 2
    assert "nothing was changed: this terminal cannot ask; say --yes" in capsys.readouterr().err
    assert (
        main(
            [
                "aws",
                "deploy",
                "--yes",
                "--domain",
                "a.example",
                "--operator",
                "me@mail.a.example",
                "--endpoint",
                account,
            ]
        )
        == 1
    )
    assert "would come to WebOrdinary itself; nothing was changed" in capsys.readouterr().err
    assert calls(log) == []


def test_the_cdk_comes_from_its_lock_file_and_never_from_elsewhere(
    account: str, programs: Callable[..., Path], tmp_path: Path
) -> None:
    """It gets the operator's credentials; the program that installs it gets none."""
    log = programs("npm", "npx", "cdk", "node")
    put_program(tmp_path / "bin" / "cdk", tmp_path / "another", code=1)
    assert main(["aws", "diff", "-c", "domain=a.example", "--domain", "b.example", "--endpoint", account]) == 0
    told = ["-c", "domain=a.example", "-c", "identity=made"]
    assert calls(log) == [["node", "--version"], INSTALL, ["cdk", "diff", *told]]
    assert (tmp_path / "calls.npm.env").read_text().count("AWS_SECRET_ACCESS_KEY") == 0
    assert (tmp_path / "calls.cdk.env").read_text().count("AWS_SECRET_ACCESS_KEY") == 1


@pytest.mark.parametrize(
    ("version", "code", "words"),
    [
        ("v18.20.0", 1, "this is Node v18.20.0; the CDK needs 20 or newer"),
        ("", 1, "this is Node of no version"),
        ("v20.19.0", 0, "Node v20.19.0 gets no corrections any more: install 22 or newer"),
        ("v24.1.0", 0, ""),
    ],
)
def test_the_age_of_node_is_looked_at_before_anything_runs_with_it(
    account: str, programs: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    version: str, code: int, words: str,
) -> None:  # fmt: skip
    log = programs("npm", "cdk", "node")
    (tmp_path / "bin" / "node").write_text(f"#!/bin/sh\necho {version}\n")
    assert main(["aws", "diff", "--endpoint", account]) == code
    told = capsys.readouterr().err
    assert words in told
    assert ("gets no corrections" in told) == (version == "v20.19.0")
    assert bool(calls(log)) == (code == 0)


def test_destroy_stops_the_workers_and_removes_every_stack(account: str, programs: Callable[..., Path]) -> None:
    log = programs("npm", "cdk", "node")
    assert main(["aws", "destroy", "--yes", "--endpoint", account]) == 0
    assert calls(log) == [["node", "--version"], INSTALL, ["cdk", "destroy", "--all", "--force", "-c", "identity=made"]]


def test_what_is_missing_or_fails_is_told(
    account: str, programs: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    programs()
    assert main(["aws", "diff", "--endpoint", account]) == 1
    assert "node is not installed; install Node" in capsys.readouterr().err
    assert main(["aws", "image"]) == 1
    assert "docker is not installed; install Docker" in capsys.readouterr().err
    assert main(["aws", "deploy", "-c", "domain"]) == 2
    assert "-c domain has no value; write -c name=value" in capsys.readouterr().err
    programs("npm", "node")
    programs("cdk", code=3)
    assert main(["aws", "diff", "--endpoint", account]) == 1
    assert "` ended with code 3; its words stand above" in capsys.readouterr().err


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
    image = json.loads(capsys.readouterr().out)["image"]
    assert re.fullmatch(rf"{re.escape(uri)}:[0-9.]+-\d{{14}}-arm64", image)
    built, login, pushed = calls(log)
    tag = ["--tag", image]
    assert built == ["docker", "build", "--platform", "linux/arm64", "--build-arg", "EXTRAS=claude", *tag, "."]
    assert login[:5] == ["docker", "login", "--username", "AWS", "--password-stdin"]
    assert login[-1]
    assert pushed == ["docker", "push", image]
    [service] = ecs.describe_services(cluster=names.CLUSTER, services=[names.SERVICE])["services"]
    now = ecs.describe_task_definition(taskDefinition=service["taskDefinition"])["taskDefinition"]
    assert [container["image"] for container in now["containerDefinitions"]] == [image]
    assert not any(login[-1] in part for part in os.environ.values())
