"""Templates as tests read them: resources by type, and policies as plain pairs of action and resource."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")
needs_extra("aws_cdk", "infra")

Resource = dict[str, Any]
ACCOUNT = "111122223333"


@dataclass(frozen=True, slots=True)
class Stack:
    """One template."""

    template: dict[str, Any]

    def of_type(self, kind: str) -> dict[str, Resource]:
        """The properties of every resource of a type, by logical name."""
        return {
            name: resource.get("Properties", {})
            for name, resource in self.template["Resources"].items()
            if resource["Type"] == kind
        }

    def only(self, kind: str) -> Resource:
        """The one of its type."""
        [found] = self.of_type(kind).values()
        return found

    def named(self, kind: str, field: str) -> dict[str, Resource]:
        """By their own names, as AWS will know them."""
        return {str(plain(found[field])): found for found in self.of_type(kind).values()}

    def statements(self, role: str) -> Iterator[Resource]:
        """All that a role is allowed, inline policies of every kind."""
        for found in self.of_type("AWS::IAM::Policy").values():
            if {"Ref": role} in found["Roles"]:
                yield from found["PolicyDocument"]["Statement"]
        for policy in self.of_type("AWS::IAM::Role")[role].get("Policies", []):
            yield from policy["PolicyDocument"]["Statement"]

    def rights(self, role: str) -> set[tuple[str, str]]:
        """Every (action, resource) that a role is allowed."""
        return {
            (action, str(plain(resource)))
            for statement in self.statements(role)
            if statement["Effect"] == "Allow"
            for action in listed(statement["Action"])
            for resource in listed(statement["Resource"])
        }


@dataclass(frozen=True, slots=True)
class StackTemplates:
    """All templates."""

    folder: Path
    stacks: dict[str, Stack]

    @property
    def accepted(self) -> list[tuple[str, str]]:
        """The findings of cdk-nag that we live with, and why."""
        return [
            pair
            for file in self.folder.glob("*.metadata.json")
            for records in json.loads(file.read_text()).values()
            for record in records
            if record["type"] == "aws:cdk:acknowledged-rules"
            for pair in record["data"].items()
        ]

    def __getattr__(self, name: str) -> Stack:
        return self.stacks[name.replace("_", "-")]


def synthesise(folder: Path, **context: str) -> StackTemplates:
    """Run CDK in this process, without network and without telling anybody."""
    ready()
    from aws_cdk import App
    from infra.app import FLAGS, build
    from infra.settings import Settings

    code = folder / "code"
    code.mkdir()
    (code / "empty.py").write_text("")
    given = {"lambda_code": str(code), "domain": "example.com", "account": ACCOUNT, **context}
    settings = Settings.read(given.get)
    assembly = build(App(outdir=str(folder / "out"), post_cli_context=FLAGS), settings).synth()
    stacks = {
        file.name.removesuffix(".template.json"): Stack(json.loads(file.read_text()))
        for file in sorted(Path(assembly.directory).glob("*.template.json"))
    }
    return StackTemplates(Path(assembly.directory), stacks)


def ready() -> None:
    """CDK runs on Node, whose age is the developer's business; and CDK's usage is nobody's."""
    if shutil.which("node") is None:
        pytest.skip("CDK runs on Node, and there is no node on PATH")
    os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "18,20")
    os.environ.setdefault("JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION", "1")
    os.environ.setdefault("JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION", "1")
    os.environ.setdefault("CDK_DISABLE_CLI_TELEMETRY", "true")


def plain(value: Any) -> Any:  # noqa: ANN401 - JSON
    """CloudFormation's joins and references as one readable text."""
    if isinstance(value, dict):
        [(function, given)] = value.items()
        if function == "Fn::Join":
            return given[0].join(str(plain(part)) for part in given[1])
        if function == "Fn::Sub":
            return re.sub(r"\$\{([^!][^}]*)\}", r"<\1>", given)
        if function == "Fn::GetAtt":
            return f"<{'.'.join(given)}>"
        if function in ("Ref", "Fn::ImportValue"):
            return f"<{given}>"
        return f"<{function} {given}>"
    return value


def listed(value: Any) -> list[Any]:  # noqa: ANN401 - JSON
    """IAM writes a list of one as the one."""
    return value if isinstance(value, list) else [value]
