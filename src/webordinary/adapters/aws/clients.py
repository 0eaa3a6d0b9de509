"""boto3 as we use it: one client of each service per process, bounded retries, our own words for failures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import boto3
from boto3.exceptions import Boto3Error
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    TokenRetrievalError,
)

from webordinary.model.errors import Permanent, Transient

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client
    from types_boto3_sesv2 import SESV2Client
    from types_boto3_sqs import SQSClient
    from types_boto3_stepfunctions import SFNClient


CREDENTIALS = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, then try `aws sts get-caller-identity`"
EMULATED = "for an emulator, `. DATA/emulator/environment`"
_HERE = frozenset({"127.0.0.1", "localhost", "::1"})
_MOST_CAUSES = 10


@dataclass(frozen=True, slots=True)
class Outage:
    """`answers` is False where the endpoint does not respond."""

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


LONG_POLL_SECONDS = 20
CONNECT_SECONDS, READ_SECONDS = 5, 30  # a read may be a long poll
QUICK_CONNECT_SECONDS, QUICK_READ_SECONDS = 2, 4
"""DynamoDB answers in milliseconds; a lease must be renewed within its time although a connection is half open."""
MAX_TRIES = 4
POOL_CONNECTIONS = 64
_ONCE = Config(retries={"mode": "standard", "total_max_attempts": 1})  # SES sends as often as it is asked

EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"})
NOT_ALLOWED = frozenset(
    {
        "403",  # what S3 says to a HEAD
        "AccessDenied",
        "AccessDeniedException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
NOT_THERE = frozenset(
    {"AWS.SimpleQueueService.NonExistentQueue", "NoSuchBucket", "QueueDoesNotExist", "ResourceNotFoundException"}
)


@dataclass(frozen=True, slots=True)
class Clients:
    """The services that we talk to. Thread-safe, as boto3's clients are."""

    dynamodb: DynamoDBClient
    s3: S3Client
    sqs: SQSClient
    stepfunctions: SFNClient
    ses: SESV2Client


def connect(region: str, endpoint: str | None = None, session: boto3.Session | None = None) -> Clients:
    """Clients for a region; `endpoint` is an emulator's address. Credentials come from where boto3 finds them."""
    session, config = session or boto3.Session(), config_of(region, endpoint)
    quick = config.merge(Config(connect_timeout=QUICK_CONNECT_SECONDS, read_timeout=QUICK_READ_SECONDS))
    return Clients(
        dynamodb=session.client("dynamodb", config=quick, endpoint_url=endpoint),
        s3=session.client("s3", config=config, endpoint_url=endpoint),
        sqs=session.client("sqs", config=config, endpoint_url=endpoint),
        stepfunctions=session.client("stepfunctions", config=config, endpoint_url=endpoint),
        ses=session.client("sesv2", config=config.merge(_ONCE), endpoint_url=endpoint),
    )


def config_of(region: str, endpoint: str | None = None) -> Config:
    """The settings of every client: retries, timeouts."""
    # Standard mode retries throttling, 5xx, timeouts and broken connections, with backoff and jitter.
    return Config(
        region_name=region,
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": MAX_TRIES},
        max_pool_connections=POOL_CONNECTIONS,
        tcp_keepalive=True,
        s3={"addressing_style": "path"} if endpoint else {},
    )


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Failures of AWS as Transient (worth another try) or Permanent (a person must change something)."""
    try:
        yield
    except ClientError as problem:
        raise _refused(what, problem) from problem
    except (BotoCoreError, Boto3Error) as problem:
        outage = outage_behind(problem)
        raise Transient(f"{what}: {problem}{f'; {outage.todo}' if outage else ''}") from problem


def _refused(what: str, problem: ClientError) -> Transient | Permanent:
    code = code_of(problem)
    # Without rights no job is at fault: it waits, and the words are for the operator.
    if code in EXPIRED:
        return Transient(f"{what}: our credentials have expired ({code}): renew them, then run `webordinary doctor`")
    if code in NOT_ALLOWED:
        return Transient(f"{what}: AWS does not allow it ({code}): run `webordinary doctor`")
    if code in NOT_THERE:
        return Permanent(f"{what}: it is not there ({code}): run `webordinary doctor`")
    return Transient(f"{what}: {problem}")


def code_of(problem: ClientError) -> str:
    """The error code of AWS."""
    return problem.response.get("Error", {}).get("Code", "")
