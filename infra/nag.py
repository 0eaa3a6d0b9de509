"""Findings of cdk-nag that we accept, each with its reason, beside the resource that it is about."""

from __future__ import annotations

import re
from collections.abc import Iterable

from aws_cdk import Acknowledgment, Aws, Validations
from constructs import IConstruct

_VARIABLE = re.compile(r"\$\{(aws:[^}]+)\}")
_READABLE = {Aws.PARTITION: "<AWS::Partition>", Aws.REGION: "<AWS::Region>", Aws.ACCOUNT_ID: "<AWS::AccountId>"}


def accept(construct: IConstruct, finding: str, reason: str) -> None:
    """Live with one finding on one resource and what belongs to it."""
    Validations.of(construct).acknowledge(Acknowledgment(id=finding, reason=reason))


def accept_wildcards(construct: IConstruct, resources: Iterable[str], reason: str) -> None:
    """Live with the stars in these ARNs; they stand for objects and queues that are named later."""
    for resource in resources:
        if "*" in resource:
            accept(construct, f"AwsSolutions-IAM5[Resource::{_readable(resource)}]", reason)


def _readable(resource: str) -> str:
    for token, text in _READABLE.items():
        resource = resource.replace(token, text)
    return _VARIABLE.sub(r"<\1>", resource)
