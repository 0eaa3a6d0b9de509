"""What travels in queues: hints, tickets, interrupts and output messages on an emulated SQS."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from botocore.stub import Stubber

from tests.aws.emulator import RunningEmulator
from tests.aws.faulty_proxy import DROP_RESPONSE, faulty_proxy
from tests.aws.pool_queues import MINUTE, NOON, SECOND, PoolQueues, queued, running, settled
from tests.aws.site_bucket import clients_of
from webordinary.adapters.aws import names
from webordinary.adapters.aws.pool.claim_requests import BORROWED_SECONDS, ENOUGH_RECEIVES, SqsClaimRequests
from webordinary.adapters.aws.pool.claim_table import RemoteLiveness
from webordinary.adapters.aws.pool.queues import (
    LONGEST_DELAY_SECONDS,
    AwsInterrupts,
    AwsOutputs,
    QueueUrls,
    is_old,
    ticket_id,
)
from webordinary.adapters.aws.provision.resource_checks import queue_checks
from webordinary.adapters.aws.provision.shapes import (
    create_key_queues,
    create_shared_queues,
    key_queues,
    remove_key_queues,
)
from webordinary.model.claims import ClaimRequest, Interrupt
from webordinary.model.errors import Permanent, Transient
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import RESUMED, STOP


@pytest.fixture
def world(ministack: RunningEmulator) -> PoolQueues:
    return PoolQueues(ministack.endpoint)


def keys_of(hints: SqsClaimRequests, *skip: ProjectUser) -> list[ProjectUser]:
    return [hint.key for hint in hints.receive(NOON, skip, 10)]


# --- the queues themselves


def test_a_customers_queues_are_encrypted_keep_two_weeks_and_give_up_to_dead_letters(world: PoolQueues) -> None:
    key = world.key()
    for shape in key_queues(key):
        found = world.attributes(shape.name)
        assert found["MessageRetentionPeriod"] == str(14 * 24 * 3600)
        assert found["ReceiveMessageWaitTimeSeconds"] == "20"
        assert found["SqsManagedSseEnabled"] == "true"
    redrive = json.loads(world.attributes(names.queues_of(key).input)["RedrivePolicy"])
    given_up = world.attributes(names.INPUT_DLQ)
    assert redrive == {"deadLetterTargetArn": given_up["QueueArn"], "maxReceiveCount": 100}
    assert given_up["FifoQueue"] == "true"


def test_onboarding_twice_changes_nothing_and_mends_what_was_changed(world: PoolQueues) -> None:
    key = world.key()
    queue = names.queues_of(key).interrupts
    world.put(queue, "{}")
    world.clients.sqs.set_queue_attributes(
        QueueUrl=world.queues.url_of(queue), Attributes={"MessageRetentionPeriod": "60"}
    )
    create_key_queues(world.clients, key)
    create_shared_queues(world.clients, world.suffix)
    assert world.attributes(queue)["MessageRetentionPeriod"] == str(14 * 24 * 3600)
    assert world.lying(queue) == 1


def test_a_customers_queues_can_be_removed_and_removed_again(world: PoolQueues) -> None:
    key = world.key()
    remove_key_queues(world.clients, key)
    remove_key_queues(world.clients, key)
    with pytest.raises(Permanent, match=r"project add … --backend aws"):
        world.tickets.notify_owner(queued(key))


def with_own_dead_letters(world: PoolQueues) -> tuple[ProjectUser, str]:
    """A customer whom an earlier version onboarded, and the queue where unused tickets went."""
    key = world.key()
    name = names.own_dead_letters(key)
    made = world.clients.sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})
    arn = f"{world.attributes(names.INPUT_DLQ)['QueueArn'].rpartition(':')[0]}:{name}"
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 100})
    url = world.queues.url_of(names.queues_of(key).input)
    world.clients.sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": policy})
    return key, made["QueueUrl"]


def is_there(world: PoolQueues, key: ProjectUser) -> bool:
    found = world.clients.sqs.list_queues(QueueNamePrefix=names.own_dead_letters(key))
    return bool(found.get("QueueUrls"))


def test_a_customers_own_dead_letters_of_an_earlier_version_go_once_none_is_left(world: PoolQueues) -> None:
    key, dead_letters = with_own_dead_letters(world)
    world.clients.sqs.send_message(
        QueueUrl=dead_letters, MessageBody="{}", MessageGroupId="g", MessageDeduplicationId="d"
    )
    create_key_queues(world.clients, key)
    [named] = [check.look() for check in queue_checks(world.clients, [key]) if check.name == f"queues of {key}"]
    assert names.own_dead_letters(key) in named.what
    assert "1 dead letters" in named.what
    [message] = world.clients.sqs.receive_message(QueueUrl=dead_letters, WaitTimeSeconds=5)["Messages"]
    create_key_queues(world.clients, key)
    assert is_there(world, key), "a message that somebody looks at is a message"
    world.clients.sqs.delete_message(QueueUrl=dead_letters, ReceiptHandle=message["ReceiptHandle"])
    create_key_queues(world.clients, key)
    assert not is_there(world, key)
    redrive = json.loads(world.attributes(names.queues_of(key).input)["RedrivePolicy"])
    assert redrive["deadLetterTargetArn"].endswith(f":{names.INPUT_DLQ}")


def test_a_customer_who_leaves_leaves_no_dead_letters_of_an_earlier_version(world: PoolQueues) -> None:
    key, _ = with_own_dead_letters(world)
    remove_key_queues(world.clients, key)
    assert not is_there(world, key)


def test_a_missing_queue_is_told_with_what_makes_it(world: PoolQueues) -> None:
    key = world.key(queues=False)
    for _ in range(2):
        with pytest.raises(Permanent, match=rf"{names.queues_of(key).interrupts}.*project add"):
            world.interrupts.take(key)


def test_one_address_is_looked_up_and_the_others_lie_beside_it(world: PoolQueues) -> None:
    key = world.key()
    with faulty_proxy(world.endpoint) as proxy:
        seen = world.beside(proxy.endpoint)
        seen.interrupts.take(key)
        seen.interrupts.take(world.key())
        seen.tickets.notify_owner(queued(key))
        assert proxy.calls["sqs:GetQueueUrl"] == 1


def test_beside_a_known_queue_no_address_is_looked_up(world: PoolQueues) -> None:
    key = world.key()
    with faulty_proxy(world.endpoint) as proxy:
        seen = world.beside(proxy.endpoint)
        urls = QueueUrls(seen.clients.sqs, beside=world.queues.url_of(world.unclaimed))
        assert urls.of(names.queues_of(key).input) == world.queues.url_of(names.queues_of(key).input)
        assert proxy.calls["sqs:GetQueueUrl"] == 0


# --- hints


def test_a_hint_is_said_once_for_a_fence_and_minute(world: PoolQueues) -> None:
    key = world.key(queues=False)
    hint = ClaimRequest(key, NOON)
    assert world.hints.send(hint, NOON)
    assert not world.hints.send(hint, NOON + 59 * SECOND)
    assert world.hints.send(hint, NOON + MINUTE)
    assert world.lying(world.unclaimed) == 2


def test_after_a_claim_a_hint_is_news_again(world: PoolQueues) -> None:
    key = world.key(queues=False)
    assert world.hints.send(ClaimRequest(key, NOON), NOON)
    world.own(key, fence=7)
    assert world.hints.send(ClaimRequest(key, NOON), NOON + SECOND)
    assert not world.hints.send(ClaimRequest(key, NOON, fence=7), NOON + SECOND)
    assert world.hints.send(ClaimRequest(key, NOON, fence=8), NOON + SECOND)


def test_a_hint_that_came_too_late_for_a_claim_does_not_silence_the_next_one(world: PoolQueues) -> None:
    key = world.key(queues=False)
    world.own(key, fence=7, status="held")  # by whoever was quicker than the workflow that saw no owner
    assert world.hints.send(ClaimRequest(key, NOON), NOON)
    world.own(key, fence=7)  # it made way for another key
    assert world.hints.send(ClaimRequest(key, NOON), NOON + SECOND)
    assert not world.hints.send(ClaimRequest(key, NOON), NOON + 2 * SECOND)


def test_what_a_reconciler_said_before_a_claim_does_not_silence_it_after(world: PoolQueues) -> None:
    key = world.key(queues=False)
    assert world.hints.send(ClaimRequest(key, NOON), NOON, again=True)
    world.own(key, fence=7)
    assert world.hints.send(ClaimRequest(key, NOON), NOON + MINUTE, again=True)
    assert not world.hints.send(ClaimRequest(key, NOON), NOON + 2 * MINUTE, again=True)


def test_a_reconciler_says_it_again_at_once_but_does_not_pile_hints_up(world: PoolQueues) -> None:
    key = world.key(queues=False)
    assert world.hints.send(ClaimRequest(key, NOON), NOON)
    assert world.hints.send(ClaimRequest(key, NOON), NOON + SECOND, again=True)
    assert not world.hints.send(ClaimRequest(key, NOON), NOON + MINUTE, again=True)
    assert world.hints.send(ClaimRequest(key, NOON, fence=7), NOON + MINUTE, again=True)
    assert world.hints.send(ClaimRequest(key, NOON, fence=7), NOON + 6 * MINUTE, again=True)


def test_a_hint_that_could_not_be_sent_was_not_said(world: PoolQueues) -> None:
    key = world.key(queues=False)
    broken = world.hints_of("webordinary-nowhere")
    with pytest.raises(Permanent):
        broken.send(ClaimRequest(key, NOON), NOON)
    assert world.hints.send(ClaimRequest(key, NOON), NOON)


def test_a_hint_is_sent_although_the_answer_to_its_first_write_was_lost(world: PoolQueues) -> None:
    key = world.key(queues=False)
    with faulty_proxy(world.endpoint) as proxy:
        proxy.inject(DROP_RESPONSE, "PutItem")
        assert world.beside(proxy.endpoint).hints.send(ClaimRequest(key, NOON), NOON)
    assert world.lying(world.unclaimed) == 1


@pytest.mark.parametrize(
    ("wait_seconds", "delay"), [(-5.0, 0), (0.0, 0), (0.4, 1), (90.0, 90), (3600.0, LONGEST_DELAY_SECONDS)]
)
def test_a_hint_for_work_that_must_wait_is_delayed_by_the_queue(
    world: PoolQueues, wait_seconds: float, delay: int
) -> None:
    asked, events = list[int](), world.clients.sqs.meta.events

    def hear(params: dict[str, int], **_: object) -> None:
        asked.append(params["DelaySeconds"])

    waits = replace(ClaimRequest(world.key(queues=False), NOON), ready_at=NOON + wait_seconds * SECOND)
    events.register("provide-client-params.sqs.SendMessage", hear)
    try:
        assert world.hints.send(waits, NOON)
    finally:
        events.unregister("provide-client-params.sqs.SendMessage", hear)
    assert asked == [delay]


def test_a_delayed_hint_is_seen_by_nobody_yet(world: PoolQueues) -> None:
    key, early = world.key(queues=False), world.key(queues=False)
    world.hints.send(replace(ClaimRequest(key, NOON), ready_at=NOON + MINUTE), NOON)
    world.hints.send(ClaimRequest(early, NOON), NOON)
    assert keys_of(world.hints) == [early]
    assert world.attributes(world.unclaimed)["ApproximateNumberOfMessagesDelayed"] == "1"


def test_a_delayed_hint_silences_nobody_who_has_work_before(world: PoolQueues) -> None:
    ready = ClaimRequest(world.key(queues=False), NOON, fence=1)
    assert world.hints.send(replace(ready, ready_at=NOON + 10 * MINUTE), NOON)
    assert world.hints.send(ready, NOON)
    assert keys_of(world.hints) == [ready.key]


def test_a_hint_tells_whose_mail_waits_and_where(world: PoolQueues) -> None:
    key = world.key()
    world.hints.send(ClaimRequest.for_job(queued(key)), NOON)
    assert world.read(world.unclaimed) == [
        {
            "type": "CLAIM_REQUEST",
            "projectId": key.project_id,
            "userId": "scott",
            "queueUrl": world.queues.url_of(names.queues_of(key).input),
            "messageId": "mail of job-1",
            "threadId": "t1",
            "waitingSince": "2026-05-01T12:00:00.000000+00:00",
        }
    ]


def test_the_longest_waiting_comes_first_and_stays_until_it_is_acknowledged(world: PoolQueues) -> None:
    young, old = world.key(queues=False), world.key(queues=False)
    world.hints.send(ClaimRequest(young, NOON + SECOND), NOON)
    world.hints.send(ClaimRequest(old, NOON), NOON)
    assert keys_of(world.hints) == [old, young]
    assert keys_of(world.hints, old) == [young]
    world.hints.acknowledge(old)
    assert keys_of(world.hints) == [young]
    world.hints.acknowledge(young)
    assert keys_of(world.hints) == []
    assert world.lying(world.unclaimed) == 0


def test_what_a_worker_has_costs_no_call_and_others_do_not_see_it(world: PoolQueues) -> None:
    key = world.key(queues=False)
    world.hints.send(ClaimRequest(key, NOON), NOON)
    with faulty_proxy(world.endpoint) as proxy:
        seen = world.beside(proxy.endpoint)
        for _ in range(3):
            assert keys_of(seen.hints) == [key]
        assert proxy.calls["sqs:ReceiveMessage"] == 1
    assert keys_of(world.hints) == []


def test_while_a_thread_polls_nobody_else_asks(world: PoolQueues) -> None:
    key = world.key(queues=False)
    world.hints.send(ClaimRequest(key, NOON), NOON)
    world.hints.listened = True
    assert keys_of(world.hints) == []
    assert world.hints.collect(limit=1, wait_seconds=20)
    assert keys_of(world.hints) == [key]


def test_several_hints_for_a_key_are_one(world: PoolQueues) -> None:
    key = world.key(queues=False)
    for minute in range(3):
        world.hints.send(ClaimRequest(key, NOON), NOON + minute * MINUTE)
    assert keys_of(world.hints) == [key]
    assert world.lying(world.unclaimed) == 1


def test_what_a_worker_has_no_time_for_another_gets_at_once(world: PoolQueues) -> None:
    key, other = world.key(queues=False), world.beside()
    world.hints.send(ClaimRequest(key, NOON), NOON)
    assert keys_of(world.hints) == [key]
    world.hints.give_back()
    world.hints.listened = True
    assert keys_of(other.hints) == [key]
    assert keys_of(world.hints) == []


def test_a_hint_whose_time_with_this_worker_is_over_is_not_offered(world: PoolQueues) -> None:
    key, now = world.key(queues=False), [0.0]
    world.hints.send(ClaimRequest(key, NOON), NOON)
    hints = SqsClaimRequests(world.queues, world.hints._requests, world.unclaimed, lambda: now[0])
    assert keys_of(hints) == [key]
    now[0] += BORROWED_SECONDS
    assert keys_of(hints) == []


def test_a_hint_for_a_key_that_is_in_the_way_again_and_again_is_dropped(world: PoolQueues) -> None:
    key = world.key(queues=False)
    world.hints.send(ClaimRequest(key, NOON), NOON)
    for _ in range(ENOUGH_RECEIVES):
        assert world.lying(world.unclaimed) == 1
        world.hints.give_back()
        assert keys_of(world.hints, key) == []
    assert world.lying(world.unclaimed) == 0


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "[]",
        "{}",
        '{"type":"CLAIM_REQUEST","projectId":"No Such Name","userId":"scott"}',
        '{"type":"OTHER","projectId":"amelia","userId":"scott"}',
        '{"type":"CLAIM_REQUEST","projectId":"amelia","userId":"scott","waitingSince":"soon"}',
        '{"type":"CLAIM_REQUEST","projectId":"amelia","userId":"scott","waitingSince":"2026-05-01T12:00:00"}',
    ],
)
def test_what_is_no_hint_ends_among_the_dead_letters(world: PoolQueues, text: str) -> None:
    url = world.queues.url_of(world.unclaimed)
    redrive = json.loads(world.attributes(world.unclaimed)["RedrivePolicy"])
    soon = json.dumps({**redrive, "maxReceiveCount": 2})
    world.clients.sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": soon})
    world.put(world.unclaimed, text)
    assert not any(world.hints.collect(10, hidden_seconds=0) for _ in range(3))
    assert keys_of(world.hints) == []
    assert world.lying(names.UNCLAIMED_DLQ + world.suffix) == 1
    assert world.lying(world.unclaimed) == 0


def test_a_hint_without_its_time_is_taken_for_the_oldest(world: PoolQueues) -> None:
    key, plain = world.key(queues=False), {"type": "CLAIM_REQUEST", "projectId": "amelia", "userId": "scott"}
    world.hints.send(ClaimRequest(key, NOON), NOON)
    world.put(world.unclaimed, json.dumps(plain))
    assert keys_of(world.hints) == [ProjectUser("amelia", "scott"), key]


# --- tickets


def test_a_ticket_names_its_job_in_its_customers_queue(world: PoolQueues) -> None:
    key = world.key()
    world.tickets.notify_owner(queued(key))
    world.tickets.notify_unclaimed()
    assert world.read(names.queues_of(key).input) == [
        {
            "jobId": "job-1",
            "messageId": "mail of job-1",
            "threadId": "t1",
            "projectId": key.project_id,
            "userId": "scott",
            "attempt": 0,
            "interruptions": 0,
            "news": "queued",
        }
    ]


def test_a_start_is_announced_once_and_a_stop_beside_it(world: PoolQueues) -> None:
    key = world.key()
    job = queued(key)
    world.tickets.notify_owner(job)
    world.tickets.notify_owner(job)
    assert world.lying(names.queues_of(key).input) == 1
    world.tickets.notify_owner(job._replace(interruptions=1))
    world.tickets.notify_owner(running(job), STOP)
    assert world.lying(names.queues_of(key).input) == 3


def test_who_resumes_twice_is_heard_twice(world: PoolQueues) -> None:
    key = world.key()
    for _ in range(2):
        world.tickets.notify_owner(queued(key), RESUMED)
    assert world.lying(names.queues_of(key).input) == 2


def test_a_ticket_is_old_once_its_job_was_started(world: PoolQueues) -> None:
    key = world.key()
    job = queued(key)
    world.tickets.notify_owner(job)
    world.tickets.notify_owner(running(job), STOP)
    announced, stop = world.read(names.queues_of(key).input)
    assert is_old(announced, running(job))
    assert not is_old(announced, None)
    assert not is_old(announced, running(job._replace(job_id="job-2")))
    assert not is_old({**announced, "interruptions": 1}, running(job))
    assert not is_old(stop, running(job))
    assert not is_old({}, running(job))


def test_a_ticket_is_named_by_job_attempt_and_interruptions() -> None:
    job = queued(ProjectUser("amelia", "scott"))
    assert ticket_id(job._replace(attempts=2, interruptions=1)) == "job-1-2-1"


# --- interrupts


def test_who_asks_twice_is_heard_once_and_another_customer_not_at_all(world: PoolQueues) -> None:
    key, other = world.key(), world.key()
    asked = Interrupt(key, "job-1", "t2", "a mail on another thread")
    world.interrupts.send(asked, NOON)
    world.interrupts.send(asked, NOON)
    assert world.interrupts.take(other) == []
    assert world.interrupts.take(key) == [asked]
    assert world.interrupts.take(key) == []


def test_more_interrupts_than_one_call_brings_are_all_taken(world: PoolQueues) -> None:
    key = world.key()
    asked = [Interrupt(key, f"job-{number}", "t2", "a mail") for number in range(23)]
    for one in asked:
        world.interrupts.send(one, NOON)
    world.put(names.queues_of(key).interrupts, "nonsense")
    assert world.interrupts.take(key) == asked
    assert world.lying(names.queues_of(key).interrupts) == 0


# --- output messages


def test_a_settled_job_is_told_where_its_project_wants_it(world: PoolQueues) -> None:
    key, quiet = world.key(), world.key()
    outputs = AwsOutputs(world.queues, lambda project_id: project_id == key.project_id)
    for each in (key, quiet):
        outputs.send(settled(queued(each)))
    assert world.read(names.queues_of(quiet).output) == []
    assert world.read(names.queues_of(key).output) == [
        {
            "messageId": "mail of job-1",
            "threadId": "t1",
            "status": "succeeded",
            "summary": "The title is Spring Sale now.",
            "commit": "abc",
            "url": "http://edit.amelia.example/",
            "error": None,
        }
    ]


def test_an_output_queue_that_is_not_there_holds_nothing_up(world: PoolQueues) -> None:
    AwsOutputs(world.queues, lambda _: True).send(settled(queued(world.key(queues=False))))


# --- other machines


def test_nobody_is_declared_dead_from_afar() -> None:
    liveness = RemoteLiveness()
    assert not liveness.is_dead("container-1")
    liveness.end_survivors("container-1", ["job-1"])


def test_every_message_carries_its_type_project_and_user_as_attributes(world: PoolQueues) -> None:
    key = world.key()
    queues = names.queues_of(key)
    AwsInterrupts(world.queues).send(Interrupt(key, "job-a", "thread-b", "another"), NOON)
    AwsOutputs(world.queues, lambda _: True).send(settled(queued(key)))
    world.tickets.notify_owner(queued(key))
    expected = {queues.interrupts: "INTERRUPT", queues.output: "OUTPUT", queues.input: "TICKET"}
    for queue, kind in expected.items():
        received = world.clients.sqs.receive_message(
            QueueUrl=world.queues.url_of(queue), MessageAttributeNames=["All"], WaitTimeSeconds=5
        )
        attributes = {
            name: value["StringValue"] for name, value in received["Messages"][0]["MessageAttributes"].items()
        }
        assert attributes == {"type": kind, "projectId": key.project_id, "userId": key.user_id}


def test_a_customer_who_comes_back_at_once_is_told_to_wait_a_minute() -> None:
    """SQS, CreateQueue: QueueDeletedRecently, for 60 seconds after a removal."""
    clients = clients_of("http://127.0.0.1:1")
    with Stubber(clients.sqs) as answers:
        answers.add_response("get_queue_url", {"QueueUrl": "http://127.0.0.1:1/dead"})
        answers.add_response("get_queue_attributes", {"Attributes": {"QueueArn": "arn:aws:sqs:us-east-1:1:dead"}})
        answers.add_client_error("create_queue", "AWS.SimpleQueueService.QueueDeletedRecently")
        with pytest.raises(Transient, match="keeps its name for a minute"):
            create_key_queues(clients, ProjectUser("kiln", "ann"))
