"""Threads around the engine: all due work is done, none of it twice at once, and it stops when told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.unit.asl.engine_harness import EngineHarness

from webordinary.asl.engine import EngineClock
from webordinary.asl.errors import NotReady
from webordinary.asl.ports import Execution, Status, send_task_success
from webordinary.asl.runner import EngineRunner, Waker
from webordinary.asl.values import JSON

TASK = {"Only": {"Type": "Task", "Resource": "work", "End": True}}
TIMEOUT_SECONDS = 60


@contextmanager
def running(world: EngineHarness, threads: int = 4) -> Iterator[Waker]:
    """A runner on the machine's clock, stopped and joined at the end."""
    waker = Waker()
    world.engine.clock = EngineClock()
    runner = EngineRunner(world.engine, waker.wait, waker.wake, threads, delay=float)
    thread = threading.Thread(target=runner.run)
    thread.start()
    try:
        yield waker
    finally:
        runner.stop()
        thread.join(TIMEOUT_SECONDS)
        assert not thread.is_alive()


def test_different_executions_run_at_the_same_time() -> None:
    all_here = threading.Barrier(3, timeout=TIMEOUT_SECONDS)
    world = EngineHarness(TASK, {"work": lambda _: all_here.wait()})
    for name in ("a", "b"):
        world.engine.start(name, {})
    with running(world):
        all_here.wait()


def test_an_execution_is_advanced_while_the_machine_starts_no_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, second, over = threading.Event(), threading.Event(), threading.Event()

    def work(name: JSON) -> JSON:
        if name == "first":
            begun.set()
            over.wait(2 * TIMEOUT_SECONDS)
        else:
            second.set()
        return None

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    world = EngineHarness(TASK, {"work": work})
    with running(world, threads=2) as waker:
        world.engine.start("first", "first")
        waker.wake()
        assert begun.wait(TIMEOUT_SECONDS)
        monkeypatch.setattr(threading.Thread, "start", refuse)
        world.engine.start("second", "second")
        waker.wake()
        came = second.wait(TIMEOUT_SECONDS)
        over.set()
        assert came


def test_a_machine_without_room_for_threads_at_the_start_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    refused, start, done = threading.Semaphore(0), threading.Thread.start, threading.Event()

    def refuse_the_second(thread: threading.Thread) -> None:
        if thread.name.startswith("workflow") and thread.name.endswith("_1"):
            refused.release()
            raise RuntimeError("can't start new thread")
        start(thread)

    world = EngineHarness(TASK, {"work": lambda _: done.set()})
    world.engine.start("a", {})
    monkeypatch.setattr(threading.Thread, "start", refuse_the_second)
    with running(world, threads=2) as waker:
        for _ in range(2):
            assert refused.acquire(timeout=TIMEOUT_SECONDS)
            waker.wake()
        assert not done.is_set()
        monkeypatch.undo()
        waker.wake()
        assert done.wait(TIMEOUT_SECONDS)


def test_a_wake_up_brings_new_work_and_a_timer_needs_none() -> None:
    done = threading.Event()
    states = {"Nap": {"Type": "Wait", "Seconds": 0, "Next": "Only"}, **TASK}
    world = EngineHarness(states, {"work": lambda _: done.set()})
    with running(world) as waker:
        world.engine.start("late", {})
        waker.wake()
        assert done.wait(TIMEOUT_SECONDS)


def test_a_broken_execution_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    announced = threading.Event()

    def on_finished(execution: Execution) -> None:
        if execution.name == "broken":
            raise OSError("cannot be told")
        announced.set()

    world = EngineHarness({"Only": {"Type": "Fail"}})
    world.engine.on_finished = on_finished
    world.engine.start("broken", {})
    world.engine.start("good", {})
    with running(world, threads=1):
        assert announced.wait(TIMEOUT_SECONDS)
    assert "broken" in caplog.text
    assert world.store.due(world.clock.now(), 9).names == ["broken"]


def test_a_handler_that_is_not_ready_is_called_again_and_no_catch_sees_it() -> None:
    done, calls = threading.Event(), []

    def work(given: JSON) -> JSON:
        calls.append(given)
        if len(calls) < 2:
            raise NotReady("the disk is full")
        done.set()
        return given

    caught = {"ErrorEquals": ["States.ALL"], "Next": "Lost"}
    world = EngineHarness({"Only": {**TASK["Only"], "Catch": [caught]}, "Lost": {"Type": "Fail"}}, {"work": work})
    world.engine.start("patient", {})
    with running(world):
        assert done.wait(TIMEOUT_SECONDS)
    assert len(calls) == 2
    world.engine.advance("patient")
    stored = world.store.load("patient")
    assert stored
    assert stored.execution.status is Status.SUCCEEDED


def test_more_work_than_threads_is_all_done_once() -> None:
    finished = threading.Semaphore(0)
    calls: list[JSON] = []

    def work(given: JSON) -> JSON:
        calls.append(given)
        finished.release()
        return given

    world = EngineHarness(TASK, {"work": work})
    for number in range(50):
        world.engine.start(str(number), number)
    with running(world, threads=3):
        assert all(finished.acquire(timeout=TIMEOUT_SECONDS) for _ in range(50))
    assert sorted(calls, key=str) == sorted(range(50), key=str)


def test_an_answered_token_goes_on_after_a_wake_up() -> None:
    asked, done = threading.Event(), threading.Event()
    tokens: list[str] = []

    def ask(token: JSON) -> JSON:
        tokens.append(str(token))
        asked.set()
        return None

    world = EngineHarness(
        {
            "Ask": {
                "Type": "Task",
                "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
                "Parameters": {"FunctionName": "ask", "Payload.$": "$$.Task.Token"},
                "Next": "Only",
            },
            **TASK,
        },
        {"ask": ask, "work": lambda given: done.set() or given},
    )
    world.engine.start("one", {})
    with running(world) as waker:
        assert asked.wait(TIMEOUT_SECONDS)
        assert send_task_success(world.store, tokens[0], "answer")
        waker.wake()
        assert done.wait(TIMEOUT_SECONDS)
    assert world.execution().status is Status.SUCCEEDED
