"""The templates as other people's rules see them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.infra.templates import StackTemplates, ready

pytestmark = pytest.mark.xdist_group("infra")


def test_cfn_lint_finds_nothing(cloud: StackTemplates, repository_root: Path) -> None:
    templates = sorted(map(str, cloud.folder.glob("*.template.json")))
    assert len(templates) == len(cloud.stacks)
    settings = repository_root / "infra" / ".cfnlintrc.yaml"
    done = subprocess.run(
        [Path(sys.executable).with_name("cfn-lint"), "--config-file", settings, "--", *templates],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_a_finding_of_cdk_nag_that_nobody_accepted_stops_the_synthesis(tmp_path: Path) -> None:
    """So that the templates of all other tests are clean is known by their being there."""
    ready()
    from aws_cdk import App, Stack
    from aws_cdk import aws_sqs as sqs
    from infra.app import checked

    app = App(outdir=str(tmp_path))
    sqs.Queue(Stack(app, "careless"), "queue")
    with pytest.raises(RuntimeError, match="AwsSolutions-SQS4"):
        checked(app).synth()


@pytest.mark.parametrize(
    "choices",
    [
        {"capacity": "fargate", "agent_secret": "webordinary/agent-key", "spot": True},
        {"nat": "instance", "spot": True, "keep": False, "bedrock_model": "eu.anthropic.claude-sonnet"},
        {"hosted_zone": "Z0123456789"},
    ],
    ids=["fargate", "cheap", "hosted"],
)
def test_whatever_an_operator_chooses_cdk_nag_finds_nothing(choices: dict[str, Any], tmp_path: Path) -> None:
    ready()
    from aws_cdk import App
    from infra.app import FLAGS, checked
    from infra.settings import Settings
    from infra.sites import SitesStack
    from infra.workers import WorkersStack

    app, settings = App(outdir=str(tmp_path), post_cli_context=FLAGS), Settings(**choices)
    if settings.hosted_zone:
        SitesStack(app, settings)
    else:
        WorkersStack(app, settings)
    checked(app).synth()


def test_cdk_itself_warns_of_nothing(cloud: StackTemplates) -> None:
    assert not [warning for file in cloud.folder.glob("*.metadata.json") for warning in _warnings(file)]


def test_every_finding_that_we_accept_has_a_reason(cloud: StackTemplates) -> None:
    accepted = cloud.accepted
    assert accepted, "the record of accepted findings is not where it was"
    for finding, reason in accepted:
        assert len(reason.split()) >= 5, finding


def _warnings(file: Path) -> list[object]:
    records = [record for records in json.loads(file.read_text()).values() for record in records]
    return [record["data"] for record in records if record["type"] == "aws:cdk:warning"]
