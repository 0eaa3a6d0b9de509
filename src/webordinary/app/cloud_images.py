"""The worker's image on AWS, put together from the settings."""

from __future__ import annotations

import boto3

from webordinary.adapters.aws.clients import config_of
from webordinary.adapters.aws.setup.images import Registry, registry_of, renew_service
from webordinary.config import Config


def registry(config: Config) -> Registry:
    """Where to push to."""
    endpoint = config.aws_endpoint or None
    return registry_of(boto3.client("ecr", config=config_of(config.aws_region, endpoint), endpoint_url=endpoint))


def renew(config: Config) -> None:
    """Let the workers take the image that was pushed last."""
    endpoint = config.aws_endpoint or None
    renew_service(boto3.client("ecs", config=config_of(config.aws_region, endpoint), endpoint_url=endpoint))
