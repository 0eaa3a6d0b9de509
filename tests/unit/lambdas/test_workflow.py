"""A mail goes through the lambdas, called by the deployed workflow."""

from __future__ import annotations

from tests.unit.lambdas.cloud import DONE, FIRST_MAIL, SCOTT, Cloud, raw_mail, recorded
from webordinary.adapters.aws import names
from webordinary.asl.ports import Status


def test_a_mail_in_the_bucket_becomes_a_job_and_its_result_a_reply(cloud: Cloud) -> None:
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    assert cloud.invoke(names.INTAKE, recorded("s3_put")) == {"taken": 1}
    cloud.engine.run_ready()
    cloud.work(DONE)
    [execution] = cloud.executions.executions(None, 10)
    assert execution.status is Status.SUCCEEDED
    [reply] = cloud.post.sent
    assert reply.recipient == SCOTT
    assert b"Spring Sale" in reply.raw
