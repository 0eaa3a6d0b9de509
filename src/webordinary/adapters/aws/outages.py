"""What keeps us from speaking to AWS at all, for people: what it is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from botocore.exceptions import (
    BotoCoreError,
    ConnectionError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    TokenRetrievalError,
)

CREDENTIALS = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, then try `aws sts get-caller-identity`"
EMULATED = "for an emulator, `. DATA/emulator/environment`"
_HERE = frozenset({"127.0.0.1", "localhost", "::1"})
_MOST_CAUSES = 10


@dataclass(frozen=True, slots=True)
class Outage:
    """`answers` is False where nobody is there to speak to."""

    what: str
    todo: str
    answers: bool


def outage_behind(problem: BaseException | None) -> Outage | None:
    """Whether this failure, or what caused it, is one of them."""
    for _ in range(_MOST_CAUSES):
        if problem is None:
            return None
        if isinstance(problem, BotoCoreError) and (found := _outage(problem)):
            return found
        problem = problem.__cause__
    return None


def _outage(problem: BotoCoreError) -> Outage | None:
    match problem:
        case NoCredentialsError() | PartialCredentialsError() | CredentialRetrievalError() | TokenRetrievalError():
            return Outage("there are no credentials for AWS", f"{CREDENTIALS}; {EMULATED}", answers=True)
        case ProfileNotFound():
            todo = "correct AWS_PROFILE; `aws configure list-profiles` names those there are"
            return Outage(str(problem), todo, answers=True)
        case ConnectionError() | HTTPClientError():
            url = str(problem.kwargs.get("endpoint_url") or "")
            if urlsplit(url).hostname in _HERE:
                todo = "start it with `make up-aws`, or name the right one with --endpoint"
                return Outage(f"no emulator of AWS answers at {_place(url)}", todo, answers=False)
            todo = "look at the network, and whether AWS_REGION and --endpoint are right"
            return Outage(f"AWS does not answer{f' at {_place(url)}' if url else ''}", todo, answers=False)
    return None


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
