"""How a worker sleeps on AWS: woken by what comes into its queues, and by nothing else."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.aws.emulator import RunningEmulator
from tests.aws.faulty_proxy import DROP_RESPONSE, faulty_proxy, overtaken, refusal
from tests.aws.pool_queues import NOON, PoolQueues, queued, running
from webordinary.adapters.aws import names
from webordinary.adapters.aws.pool.wakeups import (
    SAID_AGAIN_SECONDS,
    SHORTEST_ROUND_SECONDS,
    LogThrottle,
    PollingWakeups,
)
from webordinary.adapters.aws.provision.shapes import create_key_queues
from webordinary.model.claims import ClaimRequest
from webordinary.model.errors import Transient
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import DRAIN, STOP

LONG = 120.0  # nobody waits for so long unless something is broken
NOT_ALLOWED = refusal(403, "AccessDeniedException")
Sleeper = Callable[..., PollingWakeups]
Polls = Callable[[], list[threading.Thread]]


@pytest.fixture
def world(ministack: RunningEmulator) -> PoolQueues:
    return PoolQueues(ministack.endpoint)


@pytest.fixture
def sleeper(world: PoolQueues) -> Iterator[Sleeper]:
    """Workers' sleep, closed at the end."""
    with ExitStack() as closing:

        def make(
            seen: PoolQueues | None = None, *, slots: int = 2, poll_seconds: int = 1, worker: str = ""
        ) -> PollingWakeups:
            seen = seen or world
            wakeups = PollingWakeups(seen.queues, seen.hints, slots, poll_seconds, worker=worker)
            closing.callback(wakeups.close)
            return wakeups

        yield make


@pytest.fixture
def polls() -> Polls:
    """The threads that poll for this test."""
    others = set(threading.enumerate())
    return lambda: [t for t in threading.enumerate() if t not in others and t.name.startswith("poll ")]


def test_a_poke_ends_the_wait_and_several_are_one(sleeper: Sleeper) -> None:
    wakeups = sleeper()
    for _ in range(3):
        wakeups.poke()
    assert wakeups.sleep(LONG) == ["poke"]
    assert wakeups.sleep(0) == []
    assert wakeups.sleep(-1) == []


def test_a_ticket_wakes_the_owner_and_does_not_hold_back_the_next(world: PoolQueues, sleeper: Sleeper) -> None:
    key, wakeups = world.key(), sleeper()
    wakeups.attend({key: None}, 0)
    world.tickets.notify_owner(queued(key, "job-1"))
    assert wakeups.sleep(LONG) == [f"ticket {key}"]
    world.tickets.notify_owner(queued(key, "job-2"))
    assert wakeups.sleep(LONG) == [f"ticket {key}"]


def test_a_ticket_wakes_the_owner_while_a_job_runs(world: PoolQueues, sleeper: Sleeper) -> None:
    key, wakeups = world.key(), sleeper()
    job = running(queued(key))
    wakeups.attend({key: job}, 0)
    world.tickets.notify_owner(job, STOP)
    assert wakeups.sleep(LONG) == [f"ticket {key}"]


def test_a_ticket_that_asks_a_worker_to_end_is_meant_for_that_worker_alone(world: PoolQueues, sleeper: Sleeper) -> None:
    key, job = world.key(), running(queued(world.key()))
    wakeups = sleeper(worker="w1")
    wakeups.attend({key: job}, 0)
    world.tickets.ask_to_end(key, "w2")
    assert wakeups.sleep(LONG) == [f"ticket {key}"], "it has taken the key over meanwhile"
    world.tickets.ask_to_end(key, "w1")
    assert DRAIN in wakeups.sleep(LONG)


def test_the_ticket_of_the_job_that_runs_is_no_news(world: PoolQueues, sleeper: Sleeper) -> None:
    key, other, wakeups = world.key(), world.key(), sleeper()
    job = queued(key)
    world.tickets.notify_owner(job)
    wakeups.attend({key: running(job), other: None}, 0)
    world.wait_empty(names.queues_of(key).input)
    world.tickets.notify_owner(queued(other))
    assert wakeups.sleep(LONG) == [f"ticket {other}"]


def test_nor_is_it_when_the_job_has_ended_meanwhile(world: PoolQueues, sleeper: Sleeper) -> None:
    key, other, wakeups = world.key(), world.key(), sleeper()
    job = queued(key)
    wakeups.attend({key: running(job)}, 0)
    wakeups.attend({key: None, other: None}, 0)
    world.tickets.notify_owner(job)
    world.wait_empty(names.queues_of(key).input)
    world.tickets.notify_owner(queued(other))
    assert wakeups.sleep(LONG) == [f"ticket {other}"]


def test_what_nobody_of_us_wrote_wakes_too_and_goes(world: PoolQueues, sleeper: Sleeper) -> None:
    key, wakeups = world.key(), sleeper()
    queue = names.queues_of(key).input
    world.queues.send_once(queue, {}, "TICKET", ProjectUser("other", "one"), "once")
    wakeups.attend({key: None}, 0)
    assert wakeups.sleep(LONG) == [f"ticket {key}"]
    world.wait_empty(queue)


def test_a_hint_wakes_a_worker_with_a_free_slot(world: PoolQueues, sleeper: Sleeper) -> None:
    key, wakeups, sender = world.key(), sleeper(), world.beside()
    wakeups.attend({}, 1)
    sender.hints.send(ClaimRequest(key, NOON), NOON)
    assert wakeups.sleep(LONG) == ["unclaimed"]
    assert waiting_for(world) == [key]
    assert waiting_for(sender) == []


def test_a_worker_without_a_free_slot_leaves_hints_to_others(world: PoolQueues, sleeper: Sleeper) -> None:
    key, waiting, wakeups = world.key(), world.key(), sleeper()
    wakeups.attend({key: None}, 0)
    world.hints.send(ClaimRequest(waiting, NOON), NOON)
    world.tickets.notify_owner(queued(key))
    assert wakeups.sleep(LONG) == [f"ticket {key}"]
    assert waiting_for(world.beside()) == [waiting]


def test_when_its_slots_are_taken_a_worker_gives_its_hints_back(world: PoolQueues, sleeper: Sleeper) -> None:
    key, other, wakeups = world.key(), world.beside(), sleeper()
    awake = sleeper(other)
    world.hints.send(ClaimRequest(key, NOON), NOON)
    wakeups.attend({}, 1)
    assert wakeups.sleep(LONG) == ["unclaimed"]
    awake.attend({}, 1)
    wakeups.attend({}, 0)
    assert awake.sleep(LONG) == ["unclaimed"]
    assert waiting_for(other) == [key]


def test_a_hint_that_comes_when_the_slots_are_taken_goes_to_another(world: PoolQueues, sleeper: Sleeper) -> None:
    key, full, free = world.key(), sleeper(), world.beside()
    full.attend({}, 1)
    full.attend({}, 0)  # its poll is under way and cannot be called back
    awake = sleeper(free)
    world.hints.send(ClaimRequest(key, NOON), NOON)
    awake.attend({}, 1)
    assert awake.sleep(LONG) == ["unclaimed"]
    assert waiting_for(free) == [key]


def test_the_hint_of_a_key_that_is_held_goes(world: PoolQueues, sleeper: Sleeper) -> None:
    key, wakeups = world.key(), sleeper()
    world.hints.send(ClaimRequest(key, NOON), NOON)
    wakeups.attend({}, 1)
    assert wakeups.sleep(LONG) == ["unclaimed"]
    wakeups.attend({key: None}, 1)
    assert world.lying(world.unclaimed) == 0


def test_a_ticket_that_an_earlier_owner_still_polls_for_reaches_the_next(world: PoolQueues, sleeper: Sleeper) -> None:
    key, earlier, later = world.key(), sleeper(poll_seconds=5), sleeper(world.beside())
    earlier.attend({key: None}, 0)
    earlier.attend({}, 0)
    later.attend({key: None}, 0)
    for number in range(5):
        world.tickets.notify_owner(queued(key, f"job-{number}"))
        assert later.sleep(LONG) == [f"ticket {key}"]
    assert earlier.sleep(0) == []


def test_polling_survives_refusals_and_lost_answers(world: PoolQueues, sleeper: Sleeper, polls: Polls) -> None:
    key = world.key()
    with faulty_proxy(world.endpoint) as proxy:
        wakeups = sleeper(world.beside(proxy.endpoint))
        proxy.inject(NOT_ALLOWED, "ReceiveMessage")
        proxy.inject(DROP_RESPONSE, "DeleteMessageBatch")
        wakeups.attend({key: None}, 0)
        world.tickets.notify_owner(queued(key, "job-1"))
        assert wakeups.sleep(LONG) == [f"ticket {key}"]
        world.wait_empty(names.queues_of(key).input)
        world.tickets.notify_owner(queued(key, "job-2"))
        assert wakeups.sleep(LONG) == [f"ticket {key}"]
        wakeups.close()
        join(polls())
        assert ("sqs:ReceiveMessage", NOT_ALLOWED.name) in proxy.done


def test_the_same_trouble_is_told_once_and_that_it_is_over(
    world: PoolQueues, sleeper: Sleeper, polls: Polls, caplog: pytest.LogCaptureFixture
) -> None:
    key = world.key()
    with faulty_proxy(world.endpoint) as proxy:
        wakeups = sleeper(world.beside(proxy.endpoint))
        for _ in range(3):
            proxy.inject(NOT_ALLOWED, "ReceiveMessage")
        wakeups.attend({key: None}, 0)
        world.tickets.notify_owner(queued(key))
        assert wakeups.sleep(LONG) == [f"ticket {key}"]
        wakeups.close()
        join(polls())  # what a poll brought is heard before it is said that polling works again
        assert proxy.done.count(("sqs:ReceiveMessage", NOT_ALLOWED.name)) == 3
    first, last = [record.getMessage() for record in caplog.records if record.name.endswith("wakeups")]
    assert "AWS does not allow it" in first
    assert f"{key} works again, after 3 failures" in last


def test_a_trouble_that_lasts_is_told_again_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    seconds = [0.0]
    trouble = LogThrottle("polling", logging.getLogger("wakeups"), lambda: seconds[0])
    while seconds[0] < 2 * SAID_AGAIN_SECONDS:
        trouble.met(Transient("nobody answers"))
        seconds[0] += SAID_AGAIN_SECONDS / 4
    trouble.met(Transient("it is forbidden"))
    trouble.over()
    trouble.over()
    assert [record.getMessage() for record in caplog.records] == [
        "polling: nobody answers",
        "polling: nobody answers (5 times in 300 s)",
        "polling: it is forbidden (9 times in 600 s)",
        "polling works again, after 9 failures in 600 s",
    ]


def test_a_queue_that_is_not_there_yet_is_asked_again(world: PoolQueues, sleeper: Sleeper) -> None:
    key, wakeups = world.key(queues=False), sleeper()
    wakeups.attend({key: None}, 0)
    create_key_queues(world.clients, key)
    world.tickets.notify_owner(queued(key))
    assert wakeups.sleep(LONG) == [f"ticket {key}"]


def test_threads_are_bounded_and_a_key_that_waits_for_one_gets_it(
    world: PoolQueues, sleeper: Sleeper, polls: Polls
) -> None:
    key, polled, answered = world.key(), threading.Semaphore(0), threading.Event()

    def hold_the_poll() -> None:
        polled.release()
        answered.wait(LONG)

    with faulty_proxy(world.endpoint) as proxy:
        proxy.inject(overtaken(hold_the_poll), "sqs:ReceiveMessage", times=20)
        wakeups = sleeper(world.beside(proxy.endpoint), slots=1, poll_seconds=1)
        wakeups.attend({}, 1)
        assert polled.acquire(timeout=LONG)
        for given_up in [world.key() for _ in range(3)]:
            wakeups.attend({given_up: None}, 1)
            assert polled.acquire(timeout=LONG)
        wakeups.attend({world.key(): None}, 1)
        wakeups.attend({key: None}, 1)
        assert len(polls()) == 2 * 1 + 2  # as long as no poll is answered
        proxy.calm()
        answered.set()
        world.tickets.notify_owner(queued(key))
        assert wakeups.sleep(LONG) == [f"ticket {key}"]
        wakeups.close()
        join(polls())


def test_closing_ends_every_thread(world: PoolQueues, sleeper: Sleeper, polls: Polls) -> None:
    wakeups = sleeper(poll_seconds=1)
    wakeups.attend({world.key(): None}, 1)
    wakeups.close()
    wakeups.attend({world.key(): None}, 1)
    join(polls())
    assert polls() == []


def test_polls_that_come_back_empty_at_once_are_no_frenzy(world: PoolQueues, sleeper: Sleeper, polls: Polls) -> None:
    key, third = world.key(), threading.Event()
    with faulty_proxy(world.endpoint) as proxy:
        proxy.inject(overtaken(lambda: None), "sqs:ReceiveMessage", times=2)
        proxy.inject(overtaken(third.set), "sqs:ReceiveMessage")
        wakeups = sleeper(world.beside(proxy.endpoint), poll_seconds=0)
        began = time.monotonic()
        wakeups.attend({key: None}, 0)
        assert third.wait(LONG)
        assert time.monotonic() - began >= 2 * SHORTEST_ROUND_SECONDS
        assert wakeups.sleep(0) == []
        wakeups.close()
        join(polls())


def waiting_for(world: PoolQueues) -> list[ProjectUser]:
    return [hint.key for hint in world.hints.receive(NOON, (), 10)]


def join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(LONG)
