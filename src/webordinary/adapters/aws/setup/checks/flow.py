"""Are the lambdas, the workflow and what starts them deployed, and are they ours?"""

from __future__ import annotations

import json
from collections.abc import Iterator

from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import NOT_THERE, Clients, code_of, translated
from webordinary.adapters.aws.setup.buckets import RAW_PREFIX
from webordinary.adapters.aws.setup.deployment import Tools
from webordinary.adapters.aws.setup.functions import FUNCTIONS, STEP_FUNCTIONS
from webordinary.model.findings import Check, Finding, broken, good
from webordinary.workflow.definition import for_aws

DEPLOY = "`webordinary aws deploy` brings it up to date"
_GONE = NOT_THERE | {"StateMachineDoesNotExist"}


def flow_checks(clients: Clients, tools: Tools, machine_arn: str, raw_bucket: str) -> Iterator[Check]:
    """From a mail in the bucket to the end of its workflow."""
    yield Check("intake", lambda: _intake(clients, raw_bucket))
    yield Check("lambdas", lambda: _lambdas(tools))
    yield Check("workflow", lambda: _workflow(clients, tools, machine_arn))


def _intake(clients: Clients, raw_bucket: str) -> Finding:
    with translated(f"looking what happens with mails in {raw_bucket}"):
        found = clients.s3.get_bucket_notification_configuration(Bucket=raw_bucket)
    called = [one["LambdaFunctionArn"] for one in found.get("LambdaFunctionConfigurations", [])]
    if not any(arn.endswith(f":function:{names.INTAKE}") for arn in called):
        return broken(f"mails in {raw_bucket}/{RAW_PREFIX} start nothing", DEPLOY)
    return good(f"mails in {raw_bucket}/{RAW_PREFIX} start {names.INTAKE}")


def _lambdas(tools: Tools) -> Finding:
    for one in FUNCTIONS:
        try:
            found = tools.functions.get_function_configuration(FunctionName=one.name)
        except ClientError as problem:
            return _absent(problem, f"lambda {one.name}")
        state, update = found.get("State", "Active"), found.get("LastUpdateStatus", "Successful")
        if state not in ("Active", "Inactive") or update == "Failed":
            reason = found.get("LastUpdateStatusReason") or found.get("StateReason") or "no reason given"
            return broken(f"lambda {one.name} is {state}, its update {update}: {reason}", DEPLOY)
    return good(f"{len(FUNCTIONS)} lambdas")


def _workflow(clients: Clients, tools: Tools, machine_arn: str) -> Finding:
    try:
        deployed = clients.stepfunctions.describe_state_machine(stateMachineArn=machine_arn)["definition"]
        arns = {
            one.step: tools.functions.get_function_configuration(FunctionName=one.name)["FunctionArn"]
            for one in STEP_FUNCTIONS
            if one.step
        }
    except ClientError as problem:
        return _absent(problem, f"workflow {names.STATE_MACHINE}, or a lambda of it,")
    if json.loads(deployed) != json.loads(for_aws(arns)):
        return broken(f"workflow {names.STATE_MACHINE} is not this version's", DEPLOY)
    return good(f"workflow {names.STATE_MACHINE} is this version's")


def _absent(problem: ClientError, what: str) -> Finding:
    if code_of(problem) in _GONE:
        return broken(f"{what} is not there", DEPLOY)
    with translated(f"looking at {what}"):
        raise problem
