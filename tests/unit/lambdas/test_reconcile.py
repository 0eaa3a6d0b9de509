"""What the reconciler finds each minute."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.unit.lambdas.cloud import AMELIA_SCOTT, FIRST_MAIL, NOON, Cloud, raw_mail, recorded
from webordinary.adapters.aws import names
from webordinary.model.errors import Transient


def reconcile(cloud: Cloud) -> dict[str, int]:
    done: dict[str, int] = cloud.invoke(names.RECONCILE, {**recorded("schedule"), "time": "2026-05-01T12:00:00Z"})
    return done


def test_a_quiet_minute_has_nothing_to_do(cloud: Cloud) -> None:
    assert set(reconcile(cloud).values()) == {0}


def test_a_mail_that_was_noted_but_not_started_is_started(cloud: Cloud) -> None:
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    cloud.workflows.out_of_reach = True
    with pytest.raises(Transient):
        cloud.invoke(names.INTAKE, recorded("s3_put"))
    cloud.workflows.out_of_reach = False
    assert reconcile(cloud)["workflows"] == 1
    assert len(cloud.names()) == 1


def test_a_mail_that_s3_told_nobody_of_is_found_in_the_bucket_in_the_next_tenth_minute(cloud: Cloud) -> None:
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    done = cloud.invoke(names.RECONCILE, {**recorded("schedule"), "time": "2026-05-01T12:09:00Z"})
    assert "mails" not in done
    done = cloud.invoke(names.RECONCILE, {**recorded("schedule"), "time": "2026-05-01T12:10:00Z"})
    assert done["mails"] == 1
    assert len(cloud.names()) == 1


def reconcile_fails_for(cloud: Cloud, reason: str) -> None:
    with pytest.raises(Transient, match=reason):
        reconcile(cloud)


def test_an_open_job_that_nobody_serves_gets_a_hint(cloud: Cloud) -> None:
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    cloud.invoke(names.INTAKE, recorded("s3_put"))
    cloud.engine.run_ready()
    cloud.pool.hints.acknowledge(AMELIA_SCOTT)  # it got lost
    assert reconcile(cloud)["hints"] == 1


def test_a_reply_that_did_not_leave_is_sent(cloud: Cloud) -> None:
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    cloud.invoke(names.INTAKE, recorded("s3_put"))
    cloud.engine.run_ready()
    cloud.post.closed = True
    cloud.work()
    assert cloud.post.sent == []
    cloud.post.closed = False
    cloud.time = NOON + timedelta(minutes=5)
    assert reconcile(cloud)["replies"] == 1
    assert len(cloud.post.sent) == 1


def test_one_chore_that_fails_does_not_hold_up_the_others(cloud: Cloud) -> None:
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    cloud.invoke(names.INTAKE, recorded("s3_put"))
    cloud.engine.run_ready()
    cloud.pool.hints.acknowledge(AMELIA_SCOTT)
    key = "raw/another0mail0that0nobody0noted"
    cloud.inbox.objects[key] = raw_mail(key)
    cloud.workflows.out_of_reach = True
    reconcile_fails_for(cloud, "throttles")
    assert list(cloud.pool.hints.receive(cloud.time, (), 10))
