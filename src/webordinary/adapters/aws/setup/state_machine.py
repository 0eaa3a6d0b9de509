"""The workflow on Step Functions: deployed from the one file, and its executions started by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import code_of, translated

if TYPE_CHECKING:
    from types_boto3_stepfunctions import SFNClient


class StepFunctions:
    """See Workflows: executions of the deployed state machine."""

    def __init__(self, client: SFNClient, state_machine_arn: str) -> None:
        self._client, self._arn = client, state_machine_arn

    def start(self, name: str, input: Mapping[str, Any]) -> bool:
        """See Workflows. While one of this name runs with this input, AWS itself answers as if it were new."""
        with translated(f"starting the workflow {name}"):
            try:
                self._client.start_execution(
                    stateMachineArn=self._arn, name=name, input=json.dumps(input, sort_keys=True)
                )
            except ClientError as problem:
                if code_of(problem) != "ExecutionAlreadyExists":
                    raise
                return False
        return True


def ensure_state_machine(
    client: SFNClient, definition: str, role_arn: str, name: str = names.STATE_MACHINE
) -> tuple[str, bool]:
    """Deploy the definition; its ARN, and whether it was made now. Executions under way keep what they began with."""
    with translated(f"deploying the workflow {name}"):
        if arn := _find(client, name):  # making it again would be answered as if it were new
            client.update_state_machine(stateMachineArn=arn, definition=definition, roleArn=role_arn)
            return arn, False
        made = client.create_state_machine(name=name, definition=definition, roleArn=role_arn, type="STANDARD")
        return made["stateMachineArn"], True


def _find(client: SFNClient, name: str) -> str | None:
    pages = client.get_paginator("list_state_machines").paginate()
    machines = (machine for page in pages for machine in page["stateMachines"])
    return next((machine["stateMachineArn"] for machine in machines if machine["name"] == name), None)
