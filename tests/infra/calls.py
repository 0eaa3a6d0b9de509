"""Calls to AWS as IAM sees them: which action on which resource, spelt as the templates spell it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest
from botocore.client import BaseClient

from webordinary.adapters.aws import names

WORKER = "worker"
Right = tuple[str, str]
Params = dict[str, Any]
_BATCHES = {"DeleteMessageBatch": "DeleteMessage", "ChangeMessageVisibilityBatch": "ChangeMessageVisibility"}


class Recorder:
    """Hears every call that boto3 makes in this process, under the name of who acts.

    In the test's own thread that is the lambda invoked there; all other threads are the worker's, or the `others`'.
    """

    def __init__(self, account_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.actor, self.others = "", WORKER
        self._thread = threading.get_ident()
        self.used: dict[str, set[Right]] = defaultdict(set)
        self.started: list[str] = []
        """The names of the executions that were started."""
        self._account_id = account_id
        call: Callable[[BaseClient, str, Params], Any] = BaseClient._make_api_call  # type: ignore[attr-defined]

        def heard(client: BaseClient, operation: str, params: Params) -> Any:  # noqa: ANN401 - as AWS answers
            if actor := self.actor if threading.get_ident() == self._thread else self.others:
                self.used[actor].update(self._rights(client.meta.service_model.service_name, operation, params))
            if operation == "StartExecution":
                self.started.append(params["name"])
            return call(client, operation, params)

        monkeypatch.setattr(BaseClient, "_make_api_call", heard)

    def _rights(self, service: str, operation: str, params: Params) -> Iterator[Right]:
        for action, resource in rights_of(service, operation, params):
            yield action, resource.replace(self._account_id, "<AWS::AccountId>")


def rights_of(service: str, operation: str, params: Params) -> Iterator[Right]:
    """What IAM asks for a call. Raises for calls that nobody was expected to make."""
    match service:
        case "dynamodb":
            yield from _of_tables(operation, params)
        case "s3":
            yield from _of_objects(operation, params)
        case "sqs" if operation == "ListQueues":
            yield "sqs:ListQueues", _arn("sqs", f"{params['QueueNamePrefix']}*")
        case "sqs":
            name = params["QueueName"] if "QueueName" in params else params["QueueUrl"].rpartition("/")[2]
            yield f"sqs:{_BATCHES.get(operation, operation)}", _arn("sqs", name)
        case "stepfunctions" if "executionArn" in params:
            name = params["executionArn"].rpartition(":")[2]
            yield f"states:{operation}", _arn("states", f"execution:{names.STATE_MACHINE}:{name}")
        case "stepfunctions":
            yield f"states:{operation}", _arn("states", f"stateMachine:{names.STATE_MACHINE}")
        case "sesv2":
            domain = params["FromEmailAddress"].rpartition("@")[2]
            yield "ses:SendRawEmail", _arn("ses", f"identity/{domain}")
        case "ssm":
            yield f"ssm:{operation}", _arn("ssm", f"parameter{params['Name']}")
        case "cloudwatch":
            yield f"cloudwatch:{operation}", "*"
        case "sts" if operation == "GetCallerIdentity":
            return
        case "sts" if operation == "AssumeRole":
            role = f"arn:<AWS::Partition>:iam{params['RoleArn'].partition(':iam')[2]}"
            yield from ((action, role) for action in ("sts:AssumeRole", "sts:TagSession"))
        case _:
            raise AssertionError(f"nobody knows what right {service} {operation} needs")


def allowed(right: Right, rights: set[Right]) -> bool:
    """Whether one of these covers it; IAM's stars match as a shell's do."""
    action, resource = right
    return any(action == granted and fnmatchcase(resource, pattern) for granted, pattern in rights)


def _of_tables(operation: str, params: Params) -> Iterator[Right]:
    match operation:
        case "TransactWriteItems":
            for item in params["TransactItems"]:
                [(kind, asked)] = item.items()
                action = "ConditionCheckItem" if kind == "ConditionCheck" else f"{kind}Item"
                yield f"dynamodb:{action}", _table(asked["TableName"])
        case "BatchGetItem":
            for table in params["RequestItems"]:
                yield "dynamodb:BatchGetItem", _table(table)
        case _:
            index = f"/index/{params['IndexName']}" if "IndexName" in params else ""
            yield f"dynamodb:{operation}", _table(params["TableName"]) + index


def _of_objects(operation: str, params: Params) -> Iterator[Right]:
    bucket = f"arn:<AWS::Partition>:s3:::{params['Bucket']}"
    match operation:
        case "ListObjectsV2":
            yield "s3:ListBucket", bucket
        case "ListObjectVersions":
            yield "s3:ListBucketVersions", bucket
        case "DeleteObjects":
            for one in params["Delete"]["Objects"]:
                yield f"s3:DeleteObject{'Version' if 'VersionId' in one else ''}", f"{bucket}/{one['Key']}"
        case "CopyObject":
            source = params["CopySource"]
            yield "s3:GetObjectVersion", f"arn:<AWS::Partition>:s3:::{source['Bucket']}/{source['Key']}"
            yield "s3:PutObject", f"{bucket}/{params['Key']}"
        case "GetObject" if "VersionId" in params:
            yield "s3:GetObjectVersion", f"{bucket}/{params['Key']}"
        case _:
            yield f"s3:{operation}", f"{bucket}/{params['Key']}"


def _table(name: str) -> str:
    return _arn("dynamodb", f"table/{name}")


def _arn(service: str, resource: str) -> str:
    return f"arn:<AWS::Partition>:{service}:<AWS::Region>:<AWS::AccountId>:{resource}"
