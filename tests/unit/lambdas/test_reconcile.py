"""What the reconciler finds each minute."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.fakes.events import EventRecorder
from tests.unit.lambdas.harness import AMELIA_SCOTT, FIRST_MAIL, NOON, LambdaHarness, raw_mail, recorded
from webordinary.adapters.aws import names
from webordinary.compose import lambdas
from webordinary.model.errors import Transient
from webordinary.model.jobs import NewJob
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser


def reconcile(cloud: LambdaHarness) -> dict[str, int]:
    done: dict[str, int] = cloud.invoke(names.RECONCILE, {**recorded("schedule"), "time": "2026-05-01T12:00:00Z"})
    return done


def test_a_quiet_minute_has_nothing_to_do(cloud: LambdaHarness) -> None:
    assert set(reconcile(cloud).values()) == {0}


def test_a_mail_that_was_noted_but_not_started_is_started(cloud: LambdaHarness) -> None:
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    cloud.workflows.out_of_reach = True
    with pytest.raises(Transient):
        cloud.invoke(names.INTAKE, recorded("s3_put"))
    cloud.workflows.out_of_reach = False
    assert reconcile(cloud)["workflows"] == 1
    assert len(cloud.names()) == 1


def test_a_mail_that_s3_told_nobody_of_is_found_in_the_bucket_in_the_next_tenth_minute(cloud: LambdaHarness) -> None:
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    done = cloud.invoke(names.RECONCILE, {**recorded("schedule"), "time": "2026-05-01T12:09:00Z"})
    assert "mails" not in done
    done = cloud.invoke(names.RECONCILE, {**recorded("schedule"), "time": "2026-05-01T12:10:00Z"})
    assert done["mails"] == 1
    assert len(cloud.names()) == 1


def reconcile_fails_for(cloud: LambdaHarness, reason: str) -> None:
    with pytest.raises(Transient, match=reason):
        reconcile(cloud)


def test_an_open_job_that_nobody_serves_gets_a_hint(cloud: LambdaHarness) -> None:
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    cloud.invoke(names.INTAKE, recorded("s3_put"))
    cloud.engine.run_ready()
    cloud.pool.hints.acknowledge(AMELIA_SCOTT)  # it got lost
    assert reconcile(cloud)["hints"] == 1


def test_several_reconcilers_share_the_hints_and_the_first_does_the_rest(cloud: LambdaHarness) -> None:
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    cloud.invoke(names.INTAKE, recorded("s3_put"))
    cloud.engine.run_ready()
    cloud.pool.hints.acknowledge(AMELIA_SCOTT)
    event = {"time": "2026-05-01T12:00:00Z", "of": 3}
    done = [cloud.invoke(names.RECONCILE, {**event, "share": number}) for number in range(3)]
    assert sum(one["hints"] for one in done) == 1
    assert "replies" in done[0]
    assert [set(one) for one in done[1:]] == [{"hints"}] * 2


def test_each_minute_begins_with_another_chore(cloud: LambdaHarness) -> None:
    """One that takes all the time of a lambda would keep those behind it undone for as long as it does."""
    first = [next(iter(cloud.invoke(names.RECONCILE, {"time": f"2026-05-01T12:0{n}:00Z"}))) for n in range(1, 6)]
    assert len(set(first)) == 5


def test_of_many_who_wait_some_are_looked_at_each_minute_and_the_others_next(
    cloud: LambdaHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lambdas, "MOST_ACKNOWLEDGED", 1)
    keys = sorted(ProjectUser(f"p{number}", "scott") for number in range(3))
    for key in keys:
        cloud.pool.jobs.record(NewJob(f"job-{key.project_id}", key, "t", "mail", Command.EDIT), NOON, ready=True)
        cloud.pool.hints.acknowledge(key)  # a key of which a worker was told is left out in memory, not on AWS
    seen = lambdas.acknowledgements(cloud.services(EventRecorder())).keys
    assert [list(seen(NOON)) for _ in range(5)] == [[keys[0]], [keys[1]], [keys[2]], [], [keys[0]]]


def test_a_reply_that_did_not_leave_is_sent(cloud: LambdaHarness) -> None:
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


def test_one_chore_that_fails_does_not_hold_up_the_others(cloud: LambdaHarness) -> None:
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    cloud.invoke(names.INTAKE, recorded("s3_put"))
    cloud.engine.run_ready()
    cloud.pool.hints.acknowledge(AMELIA_SCOTT)
    key = "raw/another0mail0that0nobody0noted"
    cloud.inbox.objects[key] = raw_mail(key)
    cloud.workflows.out_of_reach = True
    reconcile_fails_for(cloud, "throttles")
    assert list(cloud.pool.hints.receive(cloud.time, (), 10))
