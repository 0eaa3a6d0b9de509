"""The worker's image: where it is pushed to, the way in, and letting the service take the new one."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import translated

if TYPE_CHECKING:
    from types_boto3_ecr import ECRClient
    from types_boto3_ecs import ECSClient


@dataclass(frozen=True, slots=True)
class Registry:
    """Where images are kept; the password lasts some hours."""

    host: str
    user: str
    password: str = field(repr=False)

    def image(self, tag: str) -> str:
        """The worker's image of this tag."""
        return f"{self.host}/{names.REPOSITORY}:{tag}"


def registry_of(ecr: ECRClient) -> Registry:
    """The account's own registry, and a way in. Raises Permanent where no repository is deployed."""
    with translated(f"looking for the repository {names.REPOSITORY}"):
        found = ecr.describe_repositories(repositoryNames=[names.REPOSITORY])["repositories"][0]
        token = ecr.get_authorization_token()["authorizationData"][0]["authorizationToken"]
    user, _, password = base64.b64decode(token).decode().partition(":")
    return Registry(found["repositoryUri"].partition("/")[0], user, password)


def renew_service(ecs: ECSClient) -> None:
    """Idle workers are replaced by ones of the new image; busy ones finish first."""
    with translated(f"renewing the service {names.SERVICE}"):
        ecs.update_service(cluster=names.CLUSTER, service=names.SERVICE, forceNewDeployment=True)
