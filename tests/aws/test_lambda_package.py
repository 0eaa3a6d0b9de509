"""The lambdas run from their zip: packed without Docker, deployed on the emulator, called by S3 and the workflow."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.aws.emulator import RunningEmulator
from tests.aws.lambdas import MAILBOX, ROOT, Account, brought_up, close_down, packaged, plan_for
from webordinary.adapters.aws import names
from webordinary.adapters.aws.blobs import Bodies
from webordinary.adapters.aws.dynamo import Dynamo
from webordinary.adapters.aws.functions import FUNCTIONS, SMALL_MB
from webordinary.adapters.aws.mail.directory import AwsDirectory, AwsThreads
from webordinary.adapters.aws.mail.emulated import Reception, as_received, new_ses_id
from webordinary.adapters.aws.mail.mails import MailItems
from webordinary.adapters.aws.mail.outbox import AwsOutbox
from webordinary.adapters.aws.pool.dead_letters import AwsDeadLetters
from webordinary.adapters.aws.pool.queues import Queues
from webordinary.adapters.aws.provision.deployment import provision_all
from webordinary.adapters.aws.provision.package import AWS, MAX_ZIP_BYTES, build, digest_of
from webordinary.adapters.aws.provision.shapes import create_key_queues
from webordinary.mail.write import CustomerMail, write_mail
from webordinary.model.jobs import DeadLetter
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, Sender
from webordinary.workflow.definition import for_aws

AMELIA_SCOTT, SCOTT = ProjectUser("amelia", "scott"), "scott@example.com"
AARCH64 = 183
_TIMEOUT_SECONDS = 240.0

pytestmark = pytest.mark.xdist_group("lambdas")  # one account, brought up once


def test_the_zip_for_aws_is_small_native_to_arm_and_without_what_lambda_brings() -> None:
    package = packaged(AWS)
    assert package.stat().st_size < MAX_ZIP_BYTES / 4
    with zipfile.ZipFile(package) as packed:
        entries = packed.namelist()
        native = [name for name in entries if name.endswith(".so")]
        machines = {int.from_bytes(packed.read(name)[18:20], "little") for name in native}
    tops = {name.partition("/")[0] for name in entries}
    assert {"webordinary", "aws_lambda_powertools", "selectolax", "PIL", "pi_heif"} <= tops
    assert tops.isdisjoint({"boto3", "botocore", "bootstrap"})
    assert machines == {AARCH64}
    assert "webordinary/workflow/email_processor.asl.json" in entries


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path) -> None:
    first = packaged(AWS)
    for needs in first.parent.glob("aws-*"):
        shutil.copytree(needs, tmp_path / needs.name)  # what was installed, but not the zip
    assert digest_of(build(ROOT, AWS, tmp_path)) == digest_of(first)


_LOOK_IN = """
import json, sys
sys.path.insert(0, sys.argv[1])

from webordinary.entrypoints.lambdas import functions
getattr(functions, sys.argv[2])
loaded = [name for name in sys.modules if name.startswith(("webordinary.", "PIL."))]
# Not ru_maxrss: a child inherits that from whoever started it.
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(json.dumps({"peak_mb": peak / 1024, "loaded": loaded}))
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("task")
    with zipfile.ZipFile(packaged()) as packed:
        packed.extractall(folder)
    return folder


@pytest.mark.parametrize("name", ["send_to_container", "reply", "reconcile"])
def test_a_function_starts_from_the_zip_alone_in_little_memory_and_without_what_it_does_not_need(
    unpacked: Path, name: str
) -> None:
    look = subprocess.run(
        [sys.executable, "-ES", "-c", _LOOK_IN, str(unpacked), name],
        capture_output=True,
        text=True,
        check=True,
        env={"AWS_ACCOUNT_ID": "123456789012", "AWS_REGION": "us-east-1", "WEBORDINARY_BACKEND": "aws"},
    )
    seen = json.loads(look.stdout)
    assert seen["peak_mb"] < SMALL_MB * 0.75
    ours = [tuple(module.split(".")[1:]) for module in seen["loaded"] if module.startswith("webordinary.")]
    assert {parts[0] for parts in ours}.isdisjoint({"asl", "worker", "operations"})
    assert {parts for parts in ours if parts[0] == "jobs"} <= {
        ("jobs",),
        ("jobs", "site_files"),
        ("jobs", "sandbox_policy"),
    }
    assert {parts[1] for parts in ours if parts[0] == "entrypoints" and len(parts) > 1} == {"lambdas"}
    assert not [module for module in seen["loaded"] if module.startswith("PIL.")]
    heavy = ("git", "sandbox", "builders", "agents", "sqlite", "mailboxes", "aws.site")
    assert not [
        module for module in seen["loaded"] if module.startswith(tuple(f"webordinary.adapters.{p}" for p in heavy))
    ]


@pytest.fixture(scope="module")
def account(ministack: RunningEmulator) -> Iterator[Account]:
    """Everything but workers, with one customer."""
    made = brought_up(ministack.endpoint)
    now = datetime.now(UTC)
    directory = AwsDirectory(made.clients.dynamodb, Dynamo(made.clients.dynamodb))
    directory.add_project(Project("amelia", "https://git.example.com/amelia.git"), now)
    directory.add_sender(Sender(SCOTT, AMELIA_SCOTT), now)
    create_key_queues(made.clients, AMELIA_SCOTT)
    yield made
    close_down(made.tools)


def test_bringing_it_up_again_changes_nothing(account: Account, ministack: RunningEmulator) -> None:
    told: list[str] = []
    again = provision_all(account.clients, account.tools, plan_for(account.account_id, ministack.endpoint), told.append)
    assert again == account.standing
    assert f"{len(FUNCTIONS)} lambdas are there" in told
    assert f"workflow {names.STATE_MACHINE} is there" in told
    assert not [line for line in told if "made" in line]


def test_the_deployed_workflow_is_the_file(account: Account) -> None:
    arns = {step: account.standing.functions[one.name] for one in FUNCTIONS for step in one.steps}
    arn = account.standing.state_machine_arn
    assert account.clients.stepfunctions.describe_state_machine(stateMachineArn=arn)["definition"] == for_aws(arns)


def test_a_raw_mail_in_the_bucket_starts_its_workflow_which_asks_for_a_worker_and_waits(account: Account) -> None:
    put_mail(account, "Change the title to Spring Sale")
    hint, *_ = until(account, lambda: Queues(account.clients.sqs).receive(names.UNCLAIMED, wait_seconds=5))
    asked = hint.body
    assert (asked["type"], asked["projectId"], asked["userId"]) == ("CLAIM_REQUEST", "amelia", "scott")
    states = until(account, lambda: waiting(account, asked["messageId"]))
    assert states[:3] == ["AuthenticateSender", "Admission", "ParseEmail"]
    account.clients.stepfunctions.stop_execution(executionArn=execution_arn(account, asked["messageId"]))
    letter = until(account, lambda: letter_of(account, asked["messageId"]))
    assert letter.reason == "workflow ABORTED: an operator stopped it"


def test_an_execution_whose_end_was_told_to_nobody_is_found_given_up_and_answered(account: Account) -> None:
    account.tools.events.disable_rule(Name=names.ABANDONED)
    try:
        put_mail(account, "Change the title to Summer Sale")
        machine, sfn = account.standing.state_machine_arn, account.clients.stepfunctions
        running = partial(sfn.list_executions, stateMachineArn=machine, statusFilter="RUNNING")
        email_id = until(account, lambda: running()["executions"])[0]["name"]
        until(account, lambda: waiting(account, email_id))
        arn = execution_arn(account, email_id)
        sfn.stop_execution(executionArn=arn, error="Operator", cause="stopped by hand")
        letter = until(account, lambda: reconciled(account) and letter_of(account, email_id))
    finally:
        account.tools.events.enable_rule(Name=names.ABANDONED)
    assert letter.reason == "workflow ABORTED: Operator: stopped by hand"
    items = MailItems(Dynamo(account.clients.dynamodb), lambda: datetime.now(UTC))
    bodies = Bodies(account.clients.s3, names.store_bucket(account.account_id), "replies")
    [reply] = AwsOutbox(items, bodies, AwsThreads(items.dynamo, items.now)).of(email_id)
    assert reply.reply.recipient == SCOTT


def reconciled(account: Account) -> bool:
    """Each time by a lambda that has just been started: one that has looked looks again in five minutes."""
    for tag in ("", "again"):
        account.tools.functions.update_function_configuration(FunctionName=names.RECONCILE, Description=tag)
    account.tools.functions.invoke(FunctionName=names.RECONCILE, Payload=b"{}")
    return True


def test_an_error_reaches_the_workflow_under_the_name_of_its_class(account: Account) -> None:
    put_mail(account, "Hello", padding=b"Content-Disposition: inline" + b";" * 200 + b"\r\n")
    letter = until(account, lambda: next((one for one in letters(account) if "Unparseable" in one.reason), None))
    assert letter.reason.startswith("Unparseable: ")


def test_an_event_that_the_intake_cannot_handle_ends_among_the_dead_letters(account: Account) -> None:
    event = (ROOT / "tests" / "data" / "aws_events" / "s3_put_other_bucket.json").read_bytes()
    account.tools.functions.invoke(FunctionName=names.INTAKE, InvocationType="Event", Payload=event)
    [letter] = until(account, lambda: Queues(account.clients.sqs).receive(names.DEAD_LETTERS, wait_seconds=5))
    assert letter.body["requestPayload"] == json.loads(event)
    assert letter.body["responsePayload"]["errorType"] == "Permanent"


def test_the_minute_s_reconciliation_finds_nothing_left_undone(account: Account) -> None:
    answer = account.tools.functions.invoke(FunctionName=names.RECONCILE, Payload=b"{}")
    assert "FunctionError" not in answer
    done = set(json.loads(answer["Payload"].read()))
    assert done == {"hints", "acknowledgements", "replies", "workflows", "mails", "broken"}
    rule = account.tools.events.describe_rule(Name=names.RECONCILE)
    assert (rule["State"], rule["ScheduleExpression"]) == ("ENABLED", "rate(1 minute)")
    [target] = account.tools.events.list_targets_by_rule(Rule=names.RECONCILE)["Targets"]
    assert target["Arn"] == account.standing.functions[names.RECONCILE]


def put_mail(account: Account, text: str, padding: bytes = b"") -> None:
    ses_id = new_ses_id()
    letter = CustomerMail(SCOTT, MAILBOX, "Spring sale", text, message_id=f"<{ses_id}@example.com>")
    raw = as_received(padding + write_mail(letter, datetime.now(UTC)), Reception(SCOTT, MAILBOX, ses_id))
    account.clients.s3.put_object(Bucket=account.standing.raw_bucket, Key=f"raw/{ses_id}", Body=raw)


def waiting(account: Account, name: str) -> list[str] | None:
    """The states that an execution has entered, once it waits for a worker."""
    history = account.clients.stepfunctions.get_execution_history(
        executionArn=execution_arn(account, name), maxResults=1000
    )
    details = (event.get("stateEnteredEventDetails") for event in history["events"])
    states = [detail["name"] for detail in details if detail]
    return states if "AwaitResult" in states else None


def execution_arn(account: Account, name: str) -> str:
    return f"{account.standing.state_machine_arn.replace(':stateMachine:', ':execution:')}:{name}"


def letters(account: Account) -> list[DeadLetter]:
    return list(AwsDeadLetters(Dynamo(account.clients.dynamodb)).all(100))


def letter_of(account: Account, email_id: str) -> DeadLetter | None:
    return next((letter for letter in letters(account) if letter.email_id == email_id), None)


def until(account: Account, look: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever is looked for
    """Look until it is there; the emulator tells nobody when it is done."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.2)
    pytest.fail(f"it did not come:\n{story(account)}", pytrace=False)


def story(account: Account) -> str:
    """What the executions did, for who wonders."""
    client = account.clients.stepfunctions
    executions = client.list_executions(stateMachineArn=account.standing.state_machine_arn)["executions"]
    lines = [f"{len(executions)} executions"]
    for one in executions:
        events = client.get_execution_history(executionArn=one["executionArn"], maxResults=1000)["events"]
        lines += [f"{one['name'][:8]} {one['status']}", *(str(event)[:300] for event in events[-6:])]
    return "\n".join(lines)
