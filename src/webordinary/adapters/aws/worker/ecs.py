"""What the ECS agent beside a container knows, over its local HTTP endpoints: who we are, and whether we are busy."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Mapping
from datetime import datetime
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from webordinary.model.errors import Transient, reason_of

ANSWER_SECONDS = 5.0
_ANSWER_BYTES = 1_000_000
_log = logging.getLogger(__name__)


def container_id(metadata_uri: str, now: datetime) -> str:
    """The ECS task's id; elsewhere a name that is new at every start. `metadata_uri` is empty elsewhere."""
    if metadata_uri:
        try:
            task: str = ask("GET", f"{metadata_uri}/task")["TaskARN"].rpartition("/")[2]
            if task:
                return task
        except (Transient, KeyError, AttributeError) as problem:
            _log.warning("the task's own id is unknown, so this worker takes another name: %s", problem)
    return f"container-{now:%Y%m%d%H%M%S}-{secrets.token_hex(4)}"


def ask(method: str, url: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """One request to an endpoint of the agent, in bounded time. Raises Transient."""
    where = urlsplit(url)
    connection = HTTPConnection(where.hostname or "", where.port or 80, timeout=ANSWER_SECONDS)
    headers = {"Content-Type": "application/json"} if body is not None else {}
    try:
        connection.request(method, where.path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read(_ANSWER_BYTES)
        said = json.loads(text)
    except (OSError, HTTPException, ValueError) as problem:
        raise Transient(f"the ECS agent does not answer at {url}: {reason_of(problem)}") from problem
    finally:
        connection.close()
    if answer.status != 200 or not isinstance(said, dict):
        raise Transient(
            f"the ECS agent refused {method} {url} ({answer.status}): {text[:300].decode(errors='replace')}"
        )
    return said
