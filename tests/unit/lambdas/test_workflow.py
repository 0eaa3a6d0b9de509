"""A mail goes through the lambdas, called by the deployed workflow."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.lambdas.harness import DONE, FIRST_MAIL, SCOTT, LambdaHarness, raw_mail, recorded
from webordinary.adapters.aws import names
from webordinary.adapters.aws.events import EventLines
from webordinary.adapters.aws.mail.mails import KEEP_DAYS
from webordinary.asl.ports import Status
from webordinary.compose.steps import answering_of


def test_a_mail_in_the_bucket_becomes_a_job_and_its_result_a_reply(cloud: LambdaHarness) -> None:
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    assert cloud.invoke(names.INTAKE, recorded("s3_put")) == {"taken": 1}
    cloud.engine.run_ready()
    cloud.work(DONE)
    [execution] = cloud.executions.executions(None, 10)
    assert execution.status is Status.SUCCEEDED
    [reply] = cloud.post.sent
    assert reply.recipient == SCOTT
    assert b"Spring Sale" in reply.raw


def test_a_job_that_is_held_is_given_up_while_its_mail_is_still_there(cloud: LambdaHarness) -> None:
    looked_at_every = timedelta(days=7)
    longest = answering_of(cloud.services(EventLines())).longest_awaited + looked_at_every
    assert longest < timedelta(days=KEEP_DAYS)
