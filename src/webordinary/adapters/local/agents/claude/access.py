"""How the model is reached: a key, Bedrock or Vertex, by the variables that Claude Code itself knows.

The agent never gets a key: it talks to the proxy of its jail, which adds the key on the way out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from webordinary.model.errors import Permanent
from webordinary.site.reach import Upstream

HELD = "held-by-the-proxy"
_ON = frozenset({"1", "true", "yes"})


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """`upstream` is for the proxy; `env` for the agent, which finds the proxy's address under `address_variable`."""

    upstream: Upstream
    env: Mapping[str, str]
    address_variable: str


def model_access(env: Mapping[str, str], key: str = "") -> ModelAccess:
    """Read it from the environment; `key`, where given, is used in place of the one there."""
    if env.get("CLAUDE_CODE_USE_BEDROCK", "").lower() in _ON:
        return _bedrock(env, key)
    if env.get("CLAUDE_CODE_USE_VERTEX", "").lower() in _ON:
        return _vertex(env, key)
    token = env.get("ANTHROPIC_AUTH_TOKEN", "")
    key = key or env.get("ANTHROPIC_API_KEY", "")
    if not (key or token):
        raise Permanent(
            "the agent claude has no key: set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN, Bedrock or Vertex; see "
            "docs/agents.md) where `webordinary up` is started"
        )
    upstream = Upstream(
        env.get("ANTHROPIC_BASE_URL", "") or "https://api.anthropic.com",
        {"x-api-key": key} if key else _bearer(token),
        paths=("/v1/messages",),
    )
    return ModelAccess(upstream, {"ANTHROPIC_API_KEY": HELD}, "ANTHROPIC_BASE_URL")


def has_access(env: Mapping[str, str]) -> bool:
    """Whether the environment says how to reach the model."""
    try:
        model_access(env)
    except Permanent:
        return False
    return True


def _bedrock(env: Mapping[str, str], key: str) -> ModelAccess:
    region = _needed(env, "AWS_REGION", "Bedrock")
    key = key or _needed(env, "AWS_BEARER_TOKEN_BEDROCK", "Bedrock")
    url = env.get("ANTHROPIC_BEDROCK_BASE_URL", "") or f"https://bedrock-runtime.{region}.amazonaws.com"
    told = {"CLAUDE_CODE_USE_BEDROCK": "1", "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1", "AWS_REGION": region}
    return ModelAccess(Upstream(url, _bearer(key), paths=("/model",)), told, "ANTHROPIC_BEDROCK_BASE_URL")


def _vertex(env: Mapping[str, str], key: str) -> ModelAccess:
    region = _needed(env, "CLOUD_ML_REGION", "Vertex")
    project = _needed(env, "ANTHROPIC_VERTEX_PROJECT_ID", "Vertex")
    if not key:
        raise Permanent(
            "Vertex has no lasting key: set agent_key_command to what prints one, such as `gcloud auth "
            "print-access-token`"
        )
    host = "aiplatform.googleapis.com" if region == "global" else f"{region}-aiplatform.googleapis.com"
    url = env.get("ANTHROPIC_VERTEX_BASE_URL", "") or f"https://{host}/v1"
    told = {
        "CLAUDE_CODE_USE_VERTEX": "1",
        "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1",
        "CLOUD_ML_REGION": region,
        "ANTHROPIC_VERTEX_PROJECT_ID": project,
    }
    upstream = Upstream(url, _bearer(key), paths=(f"/projects/{project}",))
    return ModelAccess(upstream, told, "ANTHROPIC_VERTEX_BASE_URL")


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _needed(env: Mapping[str, str], name: str, service: str) -> str:
    if value := env.get(name, ""):
        return value
    raise Permanent(f"{service} needs {name}: set it where `webordinary up` is started; see docs/agents.md")
