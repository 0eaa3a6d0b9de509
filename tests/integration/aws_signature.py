"""Whether a request is signed as AWS would have it: worked out again with botocore from what arrived."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from webordinary.adapters.agents.scripted_model import Received

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<day>\d{8})/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request, "
    r"SignedHeaders=(?P<headers>[a-z0-9;-]+), Signature=(?P<signature>[0-9a-f]{64})"
)


@dataclass(frozen=True)
class RequestSignature:
    """What a request says about itself."""

    key: str
    region: str
    service: str
    headers: tuple[str, ...]
    signature: str


def signature_of(received: Received) -> RequestSignature:
    found = _AUTHORIZATION.fullmatch(received.headers["authorization"])
    assert found, received.headers["authorization"]
    assert found["day"] == received.headers["x-amz-date"][:8]
    return RequestSignature(
        found["key"], found["region"], found["service"], tuple(found["headers"].split(";")), found[6]
    )


def expected(received: Received, base: str, secret: str, token: str = "") -> str:
    """The signature that a holder of the secret makes for exactly this request."""
    said = signature_of(received)
    headers = {name: received.headers[name] for name in said.headers}
    request = AWSRequest("POST", base + received.path, headers, received.raw)
    request.context["timestamp"] = received.headers["x-amz-date"]
    signer = SigV4Auth(Credentials(said.key, secret, token or None), said.service, said.region)
    canonical = signer.canonical_request(request)
    assert canonical.endswith(hashlib.sha256(received.raw).hexdigest()), "it covers the body"
    result: str = signer.signature(signer.string_to_sign(request, canonical), request)
    return result
