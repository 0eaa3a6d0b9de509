"""ARNs by name. Stacks that know each other by name only can be changed and removed one at a time."""

from __future__ import annotations

from aws_cdk import Aws

from webordinary.adapters.aws import names


def table(name: str) -> str:
    """A table."""
    return _arn("dynamodb", f"table/{name}")


def queue(name: str) -> str:
    """A queue, or all whose names begin so, if it ends with a star."""
    return _arn("sqs", name)


def function(name: str) -> str:
    """A lambda."""
    return _arn("lambda", f"function:{name}")


def identity(domain: str) -> str:
    """The domain that we send mail from."""
    return _arn("ses", f"identity/{domain}")


def configuration_set(name: str) -> str:
    """Where SES tells of bounces."""
    return _arn("ses", f"configuration-set/{name}")


def receipt_rule(rules: str, name: str) -> str:
    """What SES does with a mail that it receives."""
    return _arn("ses", f"receipt-rule-set/{rules}:receipt-rule/{name}")


def state_machine() -> str:
    """The workflow."""
    return _arn("states", f"stateMachine:{names.STATE_MACHINE}")


def executions() -> str:
    """All that the workflow ran."""
    return _arn("states", f"execution:{names.STATE_MACHINE}:*")


def inference_profile(name: str) -> str:
    """A model of Bedrock in several regions."""
    return _arn("bedrock", f"inference-profile/{name}")


def bucket(name: str, objects: str = "") -> str:
    """A bucket, or objects of it."""
    return f"arn:{Aws.PARTITION}:s3:::{name}{'/' + objects if objects else ''}"


def role(name: str) -> str:
    """A role."""
    return f"arn:{Aws.PARTITION}:iam::{Aws.ACCOUNT_ID}:role/{name}"


def _arn(service: str, resource: str) -> str:
    return f"arn:{Aws.PARTITION}:{service}:{Aws.REGION}:{Aws.ACCOUNT_ID}:{resource}"
