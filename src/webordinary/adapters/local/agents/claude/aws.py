"""The operator's own credentials for AWS, which sign what an agent asks Bedrock. They never enter a jail.

botocore finds them where every program of AWS does (variables, profile, single sign-on, the machine's role) and renews
them; it is imported only where they are needed.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from webordinary.model.errors import Permanent, Transient
from webordinary.site.reach import Outgoing, Sign

if TYPE_CHECKING:
    from botocore.credentials import Credentials, ReadOnlyCredentials

_SERVICE = "bedrock"
_DENIED = frozenset({401, 403})
_ADDED = ("Authorization", "X-Amz-Date", "X-Amz-Security-Token")
MISSING = (
    "Bedrock without AWS_BEARER_TOKEN_BEDROCK needs the extra package that signs requests: pip install "
    "'webordinary[aws]'"
)
NONE_FOUND = (
    "Bedrock has no credentials: set AWS_PROFILE, AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, or "
    "AWS_BEARER_TOKEN_BEDROCK, or give this machine a role; see docs/agents.md"
)


class AwsCredentials:
    """Kept when found; those that do not renew themselves are looked for again by the next job, as others may have
    been written to their file. Used by all jobs of a worker at once."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._found: Credentials | None = None

    def signer(self, region: str) -> Sign:
        """Signs for Bedrock in that region; raises Permanent or Transient where that is not possible now."""
        self._current(anew=True)
        return partial(self._sign, region)

    def _sign(self, region: str, asked: Outgoing) -> Mapping[str, str]:
        current = self._current()
        from botocore.auth import SigV4Auth  # noqa: PLC0415  half a second, see above
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415

        request = AWSRequest(asked.method, asked.url, dict(asked.headers), asked.body)
        SigV4Auth(current, _SERVICE, region).add_auth(request)
        return {name: request.headers[name] for name in _ADDED if name in request.headers}

    def _current(self, *, anew: bool = False) -> ReadOnlyCredentials:
        try:
            from botocore.credentials import RefreshableCredentials  # noqa: PLC0415
            from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
        except ImportError as problem:
            raise Permanent(MISSING) from problem
        with self._guard:
            if anew and not isinstance(self._found, RefreshableCredentials):
                self._found = None
            found = self._found = self._found or _look()
        try:
            return found.get_frozen_credentials()
        except ClientError as problem:
            status = problem.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            kind = Permanent if status in _DENIED else Transient  # else it is throttling or an outage
            raise kind(f"AWS gives no credentials for Bedrock: {problem}") from problem
        except BotoCoreError as problem:
            raise Transient(f"the credentials for Bedrock cannot be renewed now: {problem}") from problem


def _look() -> Credentials:
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415
    from botocore.session import Session  # noqa: PLC0415

    try:
        found: Credentials | None = Session().get_credentials()
    except BotoCoreError as problem:
        raise Permanent(f"the credentials for Bedrock cannot be read: {problem}") from problem
    if found is None:
        raise Permanent(NONE_FOUND)
    return found
