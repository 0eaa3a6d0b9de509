"""The lambdas, brought up without CDK: for emulators and small set-ups.

Every call is one that may be repeated: what is there already is brought up to date.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.exceptions import ClientError

from webordinary.adapters.aws.clients import Clients, code_of, config_of, translated
from webordinary.adapters.aws.setup import functions
from webordinary.adapters.aws.setup.functions import FUNCTIONS, Function

if TYPE_CHECKING:
    from types_boto3_lambda import LambdaClient
    from types_boto3_lambda.type_defs import FunctionConfigurationResponseTypeDef, WaiterConfigTypeDef
    from types_boto3_sns import SNSClient

Report = Callable[[str], None]
OWN_RUNTIME = "provided.al2023"
"""The zip brings what speaks Lambda's runtime API; see package.Target."""
_WAIT: WaiterConfigTypeDef = {"Delay": 1, "MaxAttempts": 120}


@dataclass(frozen=True, slots=True)
class Tools:
    """Clients that only who sets things up needs."""

    functions: LambdaClient
    events: Any
    sns: SNSClient


def connect_tools(region: str, endpoint: str | None = None, session: boto3.Session | None = None) -> Tools:
    """The tools for a region; `endpoint` is an emulator's address."""
    session, config = session or boto3.Session(), config_of(region, endpoint)
    return Tools(
        functions=session.client("lambda", config=config, endpoint_url=endpoint),
        events=session.client("events", config=config, endpoint_url=endpoint),
        sns=session.client("sns", config=config, endpoint_url=endpoint),
    )


@dataclass(frozen=True, slots=True)
class Code:
    """The functions' zip, as it lies in the store bucket."""

    bucket: str
    key: str
    sha256: str
    runtime: str = functions.RUNTIME

    @property
    def architecture(self) -> str:
        """Of the machines that run it; an emulator runs it on its own."""
        return "x86_64" if self.runtime == OWN_RUNTIME else functions.ARCHITECTURE


def upload_code(clients: Clients, package: Path, bucket: str, runtime: str = functions.RUNTIME) -> Code:
    """Put the zip where Lambda fetches it; its name is its content's."""
    digest = hashlib.sha256(package.read_bytes())
    key = f"packages/{digest.hexdigest()}.zip"
    with translated(f"uploading {package.name}"):
        clients.s3.upload_file(str(package), bucket, key)
    return Code(bucket, key, base64.b64encode(digest.digest()).decode(), runtime)


def ensure_functions(
    tools: Tools, code: Code, role_arn: str, environment: Mapping[str, str], report: Report
) -> dict[str, str]:
    """Deploy every lambda; their ARNs by name. Each change takes a moment to settle: they settle side by side."""
    client, arns = tools.functions, {}
    with translated("deploying the lambdas"):
        old = {one.name: _look(client, one.name) for one in FUNCTIONS}
        for one in FUNCTIONS:
            wanted = _wanted(one, code, role_arn, environment)
            arns[one.name] = _settle_settings(client, one.name, old[one.name], code, wanted)
        made = [name for name, there in old.items() if there is None]
        if made:
            report(f"{len(made)} lambdas are made")
        if len(made) < len(FUNCTIONS):
            report(f"{len(FUNCTIONS) - len(made)} lambdas are there")
        _wait(client)
        stale = [name for name, there in old.items() if there and there["CodeSha256"] != code.sha256]
        for name in stale:
            client.update_function_code(FunctionName=name, S3Bucket=code.bucket, S3Key=code.key)
        if stale:
            _wait(client)
            report(f"{len(stale)} lambdas got new code")
    return arns


def _wanted(one: Function, code: Code, role_arn: str, environment: Mapping[str, str]) -> dict[str, Any]:
    return {
        "Runtime": code.runtime,
        "Role": role_arn,
        "Handler": one.handler,
        "MemorySize": one.memory_mb,
        "Timeout": one.timeout_seconds,
        "Environment": {"Variables": dict(environment)},
    }


def _look(client: LambdaClient, name: str) -> FunctionConfigurationResponseTypeDef | None:
    try:
        return client.get_function_configuration(FunctionName=name)
    except ClientError as problem:
        if code_of(problem) != "ResourceNotFoundException":
            raise
        return None


def _settle_settings(
    client: LambdaClient,
    name: str,
    there: FunctionConfigurationResponseTypeDef | None,
    code: Code,
    wanted: dict[str, Any],
) -> str:
    if there is None:
        place: Any = {"S3Bucket": code.bucket, "S3Key": code.key}
        machines: Any = [code.architecture]
        made = client.create_function(FunctionName=name, Code=place, Architectures=machines, **wanted)
        return made["FunctionArn"]
    if any(there.get(field) != value for field, value in wanted.items()):
        client.update_function_configuration(FunctionName=name, **wanted)
    return there["FunctionArn"]


def _wait(client: LambdaClient) -> None:
    for one in FUNCTIONS:
        client.get_waiter("function_active_v2").wait(FunctionName=one.name, WaiterConfig=_WAIT)
        client.get_waiter("function_updated_v2").wait(FunctionName=one.name, WaiterConfig=_WAIT)
