"""How the model is reached: a key, Bedrock or Vertex, by the variables that Claude Code itself knows.

The agent never gets a key: it talks to the proxy of its sandbox, which adds the key, or signs, on the way out.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from webordinary.jobs.sandbox_policy import OutgoingRequest, Sign, Upstream
from webordinary.model.errors import Permanent, Transient, reason_of

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

    def _sign(self, region: str, asked: OutgoingRequest) -> Mapping[str, str]:
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


HELD = "held-by-the-proxy"
_MESSAGES = ("/v1/messages", "/v1/messages/count_tokens")
"""And no batches: they would go on when the job has ended, beyond its caps, and others' could be read."""
_ON = frozenset({"1", "true", "yes"})
_MODELS = (
    "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
)  # fmt: skip
"""Names of models, which the agent may know: on Bedrock they are often the account's own."""

Key = Callable[[], str]
"""A key that does not last: asked for with every request, and up to itself to remember."""


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """`upstream` is for the proxy; `env` for the agent, which finds the proxy's address under `address_variable`."""

    upstream: Upstream
    env: Mapping[str, str]
    address_variable: str


def model_access(env: Mapping[str, str], key: Key | None = None, aws: AwsCredentials | None = None) -> ModelAccess:
    """Read it from the environment; `key`, where given, is used in place of the one there.

    Raises Permanent, or Transient, for what is missing.
    """
    if key:
        key()  # a program that prints none is told of before the agent starts
    if _on(env, "CLAUDE_CODE_USE_BEDROCK"):
        return _bedrock(env, key, aws or AwsCredentials())
    if _on(env, "CLAUDE_CODE_USE_VERTEX"):
        return _vertex(env, key)
    return _messages(env, key)


def why_no_access(env: Mapping[str, str], aws: AwsCredentials | None = None) -> str:
    """What the environment lacks to reach the model; empty if nothing. A key that only cannot be had now is there."""
    try:
        model_access(env, aws=aws)
    except Permanent as problem:
        return str(problem)
    except Transient:
        return ""
    return ""


def _messages(env: Mapping[str, str], key: Key | None) -> ModelAccess:
    token, lasting = env.get("ANTHROPIC_AUTH_TOKEN", ""), env.get("ANTHROPIC_API_KEY", "")
    if not (key or lasting or token):
        raise Permanent(
            "the agent claude has no key: set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN, Bedrock or Vertex; see "
            "docs/agents.md) where `webordinary up` is started"
        )
    upstream = Upstream(
        env.get("ANTHROPIC_BASE_URL", "") or "https://api.anthropic.com",
        {} if key else {"x-api-key": lasting} if lasting else _bearer(token),
        paths=_MESSAGES,
        sign=_printed(key, lambda printed: {"x-api-key": printed}) if key else None,
    )
    return ModelAccess(upstream, {"ANTHROPIC_API_KEY": HELD, **_models(env)}, "ANTHROPIC_BASE_URL")


def _bedrock(env: Mapping[str, str], key: Key | None, aws: AwsCredentials) -> ModelAccess:
    region = env.get("AWS_REGION", "") or env.get("AWS_DEFAULT_REGION", "") or _needed(env, "AWS_REGION", "Bedrock")
    headers, sign = _held(env, key, "CLAUDE_CODE_SKIP_BEDROCK_AUTH", env.get("AWS_BEARER_TOKEN_BEDROCK", ""))
    if not (headers or sign or _on(env, "CLAUDE_CODE_SKIP_BEDROCK_AUTH")):
        sign = aws.signer(region)
    url = env.get("ANTHROPIC_BEDROCK_BASE_URL", "") or f"https://bedrock-runtime.{region}.amazonaws.com"
    settings = {
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1",
        "AWS_REGION": region,
        **_models(env),
    }
    upstream = Upstream(url, headers, paths=("/model/",), sign=sign)
    return ModelAccess(upstream, settings, "ANTHROPIC_BEDROCK_BASE_URL")


def _vertex(env: Mapping[str, str], key: Key | None) -> ModelAccess:
    region = _needed(env, "CLOUD_ML_REGION", "Vertex")
    project = _needed(env, "ANTHROPIC_VERTEX_PROJECT_ID", "Vertex")
    headers, sign = _held(env, key, "CLAUDE_CODE_SKIP_VERTEX_AUTH")
    if not (sign or _on(env, "CLAUDE_CODE_SKIP_VERTEX_AUTH")):
        raise Permanent(
            "Vertex has no lasting key: set agent_key_command to what prints one, such as `gcloud auth "
            "print-access-token`"
        )
    host = "aiplatform.googleapis.com" if region == "global" else f"{region}-aiplatform.googleapis.com"
    url = env.get("ANTHROPIC_VERTEX_BASE_URL", "") or f"https://{host}/v1"
    settings = {
        "CLAUDE_CODE_USE_VERTEX": "1",
        "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1",
        "CLOUD_ML_REGION": region,
        "ANTHROPIC_VERTEX_PROJECT_ID": project,
        **_models(env),
    }
    # The token may be good for the whole project: for all that runs there, not for models alone.
    models = f"/projects/{project}/locations/{region}/publishers/anthropic/models/"
    upstream = Upstream(url, headers, paths=(models,), sign=sign)
    return ModelAccess(upstream, settings, "ANTHROPIC_VERTEX_BASE_URL")


def _held(
    env: Mapping[str, str], key: Key | None, skipped: str, lasting: str = ""
) -> tuple[Mapping[str, str], Sign | None]:
    """What the proxy adds; `skipped` is the variable that says that a gateway of the operator's signs instead."""
    if key:
        return {}, _printed(key, _bearer)
    lasting = lasting or (env.get("ANTHROPIC_AUTH_TOKEN", "") if _on(env, skipped) else "")
    return (_bearer(lasting) if lasting else {}), None


def _printed(key: Key, worded: Callable[[str], Mapping[str, str]]) -> Sign:
    def sign(_: OutgoingRequest) -> Mapping[str, str]:
        return worded(key())

    return sign


def _models(env: Mapping[str, str]) -> dict[str, str]:
    return {name: env[name] for name in _MODELS if env.get(name)}


def _on(env: Mapping[str, str], name: str) -> bool:
    return env.get(name, "").lower() in _ON


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _needed(env: Mapping[str, str], name: str, service: str) -> str:
    if value := env.get(name, ""):
        return value
    raise Permanent(f"{service} needs {name}: set it where `webordinary up` is started; see docs/agents.md")


KEPT_SECONDS = 180.0
"""Shorter than what programs such as gcloud leave on a key that they hand out (225 s)."""
TIMEOUT_SECONDS = 30.0
_CHARACTERS = 10_000


class KeyCommand:
    """A key from a program. Called before each job and each request; the program runs again when its key is old."""

    def __init__(
        self,
        command: tuple[str, ...],
        env: Mapping[str, str],
        seconds: Callable[[], float] = time.monotonic,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._command, self._env, self._seconds, self._timeout = command, dict(env), seconds, timeout_seconds
        self._guard = threading.Lock()
        self._key, self._printed_at = "", 0.0

    def __call__(self) -> str:
        """The key; raises Transient when the program fails or takes too long, Permanent when no try could help."""
        with self._guard:
            if not self._key or self._seconds() - self._printed_at >= KEPT_SECONDS:
                self._key, self._printed_at = self._print(), self._seconds()
            return self._key

    def _print(self) -> str:
        name = self._command[0]
        try:
            printed = subprocess.run(
                self._command, env=self._env, stdin=subprocess.DEVNULL, capture_output=True, timeout=self._timeout,
                check=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired as problem:
            raise Transient(f"agent_key_command {name} gave no key within {self._timeout:.0f} seconds") from problem
        except subprocess.CalledProcessError as problem:
            # Its words may hold a part of the key, and this message ends in logs and dead letters.
            words = f"it ended with {problem.returncode}; run it by hand to see why"
            raise Transient(f"agent_key_command {name} gave no key: {words}") from None
        except OSError as problem:
            raise Permanent(f"agent_key_command {name} cannot be run: {reason_of(problem)}; correct it") from problem
        key = printed.stdout.decode(errors="replace").strip()
        if not key or len(key) > _CHARACTERS or not key.isprintable():
            raise Permanent(f"agent_key_command {name} printed something that is not a key")
        return key
