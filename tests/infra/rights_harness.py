"""One mail's way through every lambda and a worker, in this process, against an emulator; every call is heard.

Import it after `templates`: without boto3 the test file is skipped there, with words.
"""

from __future__ import annotations

import io
import json
import random
import sys
import threading
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.aws.emulator import REGION
from tests.infra.calls import Recorder
from tests.unit.lambdas.harness import recorded
from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import connect
from webordinary.adapters.aws.functions import FUNCTIONS
from webordinary.adapters.aws.mail.emulated import put_emulated_mail
from webordinary.adapters.aws.pool.step_functions import ensure_state_machine
from webordinary.adapters.aws.provision.shapes import (
    create_key_queues,
    create_shared_queues,
    create_tables,
    make_private_bucket,
    make_site_bucket,
)
from webordinary.compose.aws import AwsContainer
from webordinary.compose.aws_worker import run_cloud_worker
from webordinary.compose.lambdas import container_from_environment
from webordinary.config import Config
from webordinary.entrypoints.lambdas.handlers import build
from webordinary.mail.write import CustomerMail, OutgoingFile, write_mail
from webordinary.model.claims import StartedJob
from webordinary.model.jobs import Requeue, RequeueReason
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, Sender
from webordinary.operations import sample

SCOTT, MAILBOX, DOMAIN = "scott@example.com", "edit@example.com", "example.com"
KEY = ProjectUser(sample.PROJECT_ID, "scott")
TIMEOUT_SECONDS = 90.0
UNDER_WAY = json.dumps({"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 86400, "End": True}}})
PICTURE = OutgoingFile("mug.gif", "image/gif", b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00!\xf9\x04"
                       b"\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;")  # fmt: skip


class RequestContext:
    """Lambda's context, as much as is read of it."""

    aws_request_id = "a-request"


class Listening(io.StringIO):
    """A worker's standard output, on which its events are told."""

    def __init__(self) -> None:
        super().__init__()
        self.settled = threading.Event()

    def write(self, text: str) -> int:
        if '"event": "JobSettled"' in text:
            self.settled.set()
        return len(text)


class RightsHarness:
    """An account of its own with a sample site in it; its workflow is walked by hand."""

    def __init__(self, endpoint: str, folder: Path, patch: pytest.MonkeyPatch, domain: str = DOMAIN) -> None:
        account_id = f"{random.SystemRandom().randrange(10**11, 10**12)}"
        patch.setenv("AWS_ACCESS_KEY_ID", account_id)
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        self._patch = patch
        self._environment = {
            "AWS_REGION": REGION,
            "AWS_ACCOUNT_ID": account_id,
            "AWS_ENDPOINT_URL": endpoint,
            "UNCLAIMED_QUEUE_URL": f"{endpoint}/{account_id}/{names.UNCLAIMED}",
            "WORKSPACE_PATH": str(folder / "data"),
            "WEBORDINARY_BACKEND": "aws",
            "WEBORDINARY_DOMAIN": domain,
            "WEBORDINARY_MAILBOX": MAILBOX,
            "WEBORDINARY_PICTURES": "off",
        }
        self.config = Config.load(env=self._environment)
        self._make(folder, connect(REGION, endpoint, boto3.Session(region_name=REGION)), account_id)
        self.recorder = Recorder(account_id, patch)
        open_services = partial(container_from_environment, self._environment)
        self._handlers = {one.name: build(one, open_services) for one in FUNCTIONS}

    def _make(self, folder: Path, clients: Any, account_id: str) -> None:  # noqa: ANN401 - boto3's
        create_tables(clients)
        create_shared_queues(clients)
        create_key_queues(clients, KEY)
        for bucket in (names.raw_bucket(account_id), names.store_bucket(account_id)):
            make_private_bucket(clients.s3, bucket)
        make_site_bucket(clients.s3, names.sites_bucket(account_id))
        ensure_state_machine(clients.stepfunctions, UNDER_WAY, f"arn:aws:iam::{account_id}:role/any")
        self.clients, self._raw_bucket = clients, names.raw_bucket(account_id)
        origin = sample.ensure_sample_origin(folder / "origin.git")
        ports = AwsContainer(self.config, clients=clients)
        self.directory, self._claims = ports.directory, ports.pool.claims
        self.directory.add_project(Project(KEY.project_id, str(origin), output=True), datetime.now(UTC))
        self.directory.add_sender(Sender(SCOTT, KEY), datetime.now(UTC))

    def mail(self, text: str, *files: OutgoingFile, sender: str = SCOTT) -> str:
        """A mail comes in; returns its id."""
        number = random.SystemRandom().randrange(10**9)
        letter = CustomerMail(sender, MAILBOX, "Spring", text, files, f"<{number}@example.com>")
        raw = write_mail(letter, datetime.now(UTC))
        key = put_emulated_mail(self.clients.s3, self._raw_bucket, raw, sender, MAILBOX)
        event = recorded("s3_put")
        [record] = event["Records"]
        record["s3"]["bucket"]["name"], record["s3"]["object"]["key"] = self._raw_bucket, key
        record["s3"]["object"]["size"] = len(raw)
        self.invoke(names.INTAKE, event)
        return self.recorder.started[-1]

    def step(self, step: str, **payload: object) -> Any:  # noqa: ANN401 - JSON
        """A state of the workflow."""
        return self.invoke(names.function_of(step), {"step": step, **payload})

    def invoke(self, function: str, event: Any) -> Any:  # noqa: ANN401 - JSON
        """Call a lambda."""
        self.recorder.actor = function
        try:
            return self._handlers[function](event, RequestContext())
        finally:
            self.recorder.actor = ""

    def interrupt(self) -> None:
        """A worker, of which nothing is heard, begins a job and has to leave it."""
        started = self._claims.claim_and_start(KEY, "container-1", datetime.now(UTC))
        assert isinstance(started, StartedJob)
        rights = self.invoke(names.BROKER, {"key": str(KEY), "worker": "container-1"})
        assert rights.keys() == {"AccessKeyId", "SecretAccessKey", "SessionToken"}
        self._claims.end_and_take_next(started, Requeue(RequeueReason.INTERRUPTED), datetime.now(UTC), more=False)
        assert self._claims.begin_release(started.claim)
        self._claims.end_release(started.claim)

    def work(self) -> None:
        """A worker does one job."""
        said, stop = Listening(), threading.Event()
        self._patch.setattr(sys, "stdout", said)
        thread = threading.Thread(target=run_cloud_worker, args=(self.config, 1, stop))
        thread.start()
        try:
            assert said.settled.wait(TIMEOUT_SECONDS), "the worker did not settle its job"
        finally:
            stop.set()
            thread.join(TIMEOUT_SECONDS)


def walk(harness: RightsHarness) -> None:
    """All that may happen to mails, so that every function makes every call that it knows."""
    first = harness.mail(
        "Set the title to Spring Sale.\n\nOn Mon, 4 May 2026 at 10:00, Ann <ann@example.com> wrote:\n"
        + "> We make pots.\n" * 2000,
        PICTURE,
    )
    job_id, thread_id = through(harness, first)
    harness.work()
    harness.step("AwaitResult", jobId=job_id, taskToken="a" * 64)
    harness.step("Reply", emailId=first, redrive=0, job={"route": "edit", "jobId": job_id, "threadId": thread_id})
    through(harness, harness.mail("publish"))
    harness.work()
    second = harness.mail("Set the title to Winter Sale.")
    waiting, other_thread = through(harness, second)
    harness.step("SendInterrupt", jobId=waiting, activeJobId=job_id)
    harness.interrupt()
    harness.step("RecordInterruption", emailId=second, jobId=waiting)
    harness.step("HandleTimeout", emailId=second, jobId=waiting)
    harness.step("RunCommand", emailId=second, command="stop", threadId=other_thread)
    wish = harness.mail("remember: British spelling")
    for step in ("AuthenticateSender", "ParseEmail"):
        harness.step(step, emailId=wish)
    kept = harness.step("IdentifyProjectUser", emailId=wish, redrive=0, retries=0)
    harness.step("RunCommand", emailId=wish, command=kept["command"], threadId=kept["threadId"])
    harness.step("Reply", emailId=second, redrive=0, job={"route": "edit", "jobId": waiting, "threadId": other_thread})
    harness.step("GiveUp", emailId=second, job={"jobId": waiting}, error={"Error": "Broken", "Cause": "it broke"})
    failed = recorded("execution_failed")
    failed["detail"]["input"] = json.dumps({"emailId": harness.mail("Set the title to Last Sale."), "redrive": 0})
    harness.invoke(names.ABANDONED, failed)
    harness.invoke(names.BOUNCES, json.loads(json.dumps(recorded("sns_bounce")).replace("e" * 64, first)))
    harness.mail("Set the title to No Sale.")
    harness.invoke(names.RECONCILE, recorded("schedule"))
    late = harness.mail("Set the title to Too Late.")
    assert harness.step("AuthenticateSender", emailId=late) == {"verdict": "admitted"}
    harness.step("ParseEmail", emailId=late)
    harness.directory.remove_sender(SCOTT, KEY.project_id)
    assert harness.step("IdentifyProjectUser", emailId=late, redrive=0, retries=0) == {"route": "refused"}


def through(harness: RightsHarness, email_id: str) -> tuple[str, str]:
    """Up to where the workflow awaits the result."""
    assert harness.step("AuthenticateSender", emailId=email_id) == {"verdict": "admitted"}
    attachments = harness.step("ParseEmail", emailId=email_id)["attachments"]
    found = harness.step("IdentifyProjectUser", emailId=email_id, redrive=0, retries=0)
    for attachment in attachments:
        harness.step("StoreAttachment", **attachment)
    job_id = found["jobId"]
    harness.step("SendToContainer", emailId=email_id, jobId=job_id)
    harness.step("CheckOwnership", jobId=job_id)
    harness.step("SendClaimRequest", jobId=job_id)
    harness.step("CheckActiveJob", jobId=job_id)
    return job_id, found["threadId"]
