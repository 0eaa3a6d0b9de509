"""The broker gives a worker the rights to a project whose mail it works on, and no others."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.unit.lambdas.harness import ACCOUNT, AMELIA_SCOTT, FIRST_MAIL, SCOTT, LambdaHarness, raw_mail, recorded
from webordinary.adapters.aws import names
from webordinary.model.claims import LEASE_SECONDS, StartedJob
from webordinary.model.errors import Permanent
from webordinary.model.jobs import NewJob
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, Sender

BAKERY = ProjectUser("bakery", "ann")
ROLE = f"arn:aws:iam::{ACCOUNT}:role/{names.PUBLISHER_ROLE}"


@pytest.fixture
def email_id(cloud: LambdaHarness) -> str:
    """A mail of Scott's that waits for a worker; Ann's site exists, and she has not written."""
    cloud.directory.add_project(Project("bakery", "https://git.example.com/bakery.git"), cloud.now())
    cloud.directory.add_sender(Sender("ann@example.com", BAKERY), cloud.now())
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    cloud.invoke(names.INTAKE, recorded("s3_put"))
    cloud.engine.run_ready()
    [email_id] = cloud.names()
    return email_id


def claim(cloud: LambdaHarness, key: ProjectUser, worker: str = "w1") -> None:
    assert isinstance(cloud.pool.claims.claim_and_start(key, worker, cloud.now()), StartedJob)


def ask(cloud: LambdaHarness, key: ProjectUser, worker: str = "w1") -> dict[str, str]:
    answer: dict[str, str] = cloud.invoke(names.BROKER, {"key": str(key), "worker": worker})
    return answer


@pytest.mark.usefixtures("email_id")
def test_the_holder_of_a_claim_gets_the_rights_of_its_project(cloud: LambdaHarness) -> None:
    claim(cloud, AMELIA_SCOTT)
    assert ask(cloud, AMELIA_SCOTT) == {"AccessKeyId": "ASIA", "SecretAccessKey": "s", "SessionToken": "t"}
    assert cloud.sts.tagged == [(ROLE, "amelia")]


@pytest.mark.usefixtures("email_id")
def test_who_holds_no_claim_or_a_lost_one_gets_nothing(cloud: LambdaHarness) -> None:
    with pytest.raises(Permanent, match="does not hold"):
        ask(cloud, AMELIA_SCOTT)
    claim(cloud, AMELIA_SCOTT)
    with pytest.raises(Permanent, match="w2 does not hold"):
        ask(cloud, AMELIA_SCOTT, "w2")
    cloud.time += timedelta(seconds=LEASE_SECONDS)
    with pytest.raises(Permanent, match="w1 does not hold"):
        ask(cloud, AMELIA_SCOTT)
    assert cloud.sts.tagged == []


def test_a_claim_and_a_job_that_a_worker_made_up_open_no_project(cloud: LambdaHarness, email_id: str) -> None:
    cloud.pool.jobs.record(NewJob("job-x", BAKERY, "t" * 16, email_id, Command.EDIT), cloud.now(), ready=True)
    claim(cloud, BAKERY)
    with pytest.raises(Permanent, match="bakery"):
        ask(cloud, BAKERY)
    assert cloud.sts.tagged == []


@pytest.mark.parametrize("redriven", ["", "-r1"])
def test_a_job_that_a_worker_made_up_for_a_mail_that_is_answered_opens_no_project(
    cloud: LambdaHarness, email_id: str, redriven: str
) -> None:
    cloud.work()
    cloud.pool.jobs.record(
        NewJob(f"job-x{redriven}", AMELIA_SCOTT, "t" * 16, email_id, Command.EDIT), cloud.now(), ready=True
    )
    claim(cloud, AMELIA_SCOTT)
    with pytest.raises(Permanent, match="no running job of a mail that is not answered"):
        ask(cloud, AMELIA_SCOTT)
    assert cloud.sts.tagged == []


def test_the_job_of_a_redriven_mail_gets_the_rights_of_its_project(cloud: LambdaHarness, email_id: str) -> None:
    cloud.work()
    cloud.workflows.start(f"{email_id}-r1", {"emailId": email_id, "redrive": 1})
    cloud.engine.run_ready()
    claim(cloud, AMELIA_SCOTT)
    ask(cloud, AMELIA_SCOTT)
    assert cloud.sts.tagged == [(ROLE, "amelia")]


def test_a_forged_mail_of_a_customer_opens_no_project(cloud: LambdaHarness) -> None:
    cloud.inbox.objects[FIRST_MAIL] = raw_mail().replace(b"dmarc=pass", b"dmarc=fail").replace(b"PASS", b"FAIL")
    cloud.invoke(names.INTAKE, recorded("s3_put"))
    cloud.engine.run_ready()
    [forged] = cloud.names()
    assert not cloud.pool.jobs.open_jobs(AMELIA_SCOTT), f"a mail of {SCOTT} that nothing proves was taken"
    cloud.pool.jobs.record(NewJob("job-x", AMELIA_SCOTT, "t" * 16, forged, Command.EDIT), cloud.now(), ready=True)
    claim(cloud, AMELIA_SCOTT)
    with pytest.raises(Permanent, match="no running job"):
        ask(cloud, AMELIA_SCOTT)
