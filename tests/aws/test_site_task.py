"""A worker as an ECS task: its name, and its protection while it is busy. The agent is a small real server."""

from __future__ import annotations

import json
import queue
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.fakes.cancel_token import FakeCancelToken
from tests.unit.jobs.fixtures import NOON, SCOTT
from webordinary.adapters.aws import ecs
from webordinary.adapters.aws.ecs import EXPIRES_MINUTES, ProtectedWork, TaskProtection, container_id

ARN = "arn:aws:ecs:us-east-1:000000000000:task/webordinary-edit-cluster/158d1c8083dd49d6b527399fd6414f5c"
SILENCE_SECONDS = 60.0
ON = {"ProtectionEnabled": True, "ExpiresInMinutes": EXPIRES_MINUTES}
OFF = {"ProtectionEnabled": False}


class EcsAgentEndpoint:
    """The ECS agent: what it was told, and what it answers; a None among the answers is an outage."""

    def __init__(self) -> None:
        self.told: queue.Queue[dict[str, object]] = queue.Queue()
        self.answers: list[tuple[int, object]] = []
        self.uri = ""

    def answer(self, path: str, body: bytes) -> tuple[int, object]:
        if path == "/api/x/task-protection/v1/state":
            self.told.put(json.loads(body))
            told = json.loads(body)
            return self.answers.pop(0) if self.answers else (200, {"protection": {"TaskArn": ARN, **told}})
        if path == "/api/x/task":
            return self.answers.pop(0) if self.answers else (200, {"Cluster": "c", "TaskARN": ARN})
        return 404, {}

    def next(self) -> dict[str, object]:
        return self.told.get(timeout=SILENCE_SECONDS)


@pytest.fixture
def agent() -> Iterator[EcsAgentEndpoint]:
    known = EcsAgentEndpoint()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            status, said = known.answer(self.path, self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            text = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PUT = _serve  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    known.uri = f"http://127.0.0.1:{server.server_port}/api/x"
    yield known
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def protection(uri: str, renew: float = 1000.0, linger: float = 0.0) -> Iterator[TaskProtection]:
    made = TaskProtection(uri, renew, linger)
    yield made
    made.close()


def test_a_worker_is_called_as_its_task(agent: EcsAgentEndpoint) -> None:
    assert container_id(agent.uri, NOON) == "158d1c8083dd49d6b527399fd6414f5c"


@pytest.mark.parametrize("said", [(500, {}), (200, {}), (200, {"TaskARN": None}), (200, []), (200, {"TaskARN": ""})])
def test_elsewhere_or_when_the_agent_fails_it_has_a_name_of_its_own(
    agent: EcsAgentEndpoint, said: tuple[int, object]
) -> None:
    agent.answers = [said]
    for uri in (agent.uri, "", "http://127.0.0.1:1"):
        assert re.fullmatch(r"container-20260501120000-[0-9a-f]{8}", container_id(uri, NOON))


def test_two_starts_are_two_names() -> None:
    assert container_id("", datetime.now(UTC)) != container_id("", datetime.now(UTC))


def test_a_busy_task_is_protected_and_an_idle_one_is_not(agent: EcsAgentEndpoint) -> None:
    with protection(agent.uri) as kept:
        with kept.busy():
            assert agent.next() == ON
        assert agent.next() == OFF


def test_protection_is_renewed_while_a_job_runs(agent: EcsAgentEndpoint) -> None:
    with protection(agent.uri, renew=0.01) as kept, kept.busy():
        assert [agent.next() for _ in range(3)] == [ON] * 3


def test_two_jobs_at_once_are_protected_until_the_last_one_ends(agent: EcsAgentEndpoint) -> None:
    with protection(agent.uri) as kept:
        with kept.busy():
            with kept.busy():
                assert agent.next() == ON
            assert agent.told.empty()
        assert agent.next() == OFF


def test_the_next_job_comes_soon_and_nothing_is_said_in_between(agent: EcsAgentEndpoint) -> None:
    with protection(agent.uri, linger=1000.0) as kept:
        for _ in range(5):
            with kept.busy():
                pass
        with kept.busy():
            assert agent.next() == ON
        assert agent.told.empty()
    assert agent.next() == OFF, "a worker that ends gives it up"


@pytest.mark.parametrize("said", [(500, {}), (200, {"failure": {"Reason": "DEPLOYMENT_BLOCKED"}}), (200, "odd")])
def test_a_refusal_is_tried_again(
    agent: EcsAgentEndpoint, said: tuple[int, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ecs, "RETRY_SECONDS", 0.01)
    agent.answers = [said, said]
    with protection(agent.uri) as kept:
        with kept.busy():
            assert [agent.next() for _ in range(3)] == [ON] * 3
        assert agent.next() == OFF


def test_without_an_agent_nothing_happens() -> None:
    before = protecting_threads()  # earlier tests' may still be ending
    with protection("") as kept, kept.busy():
        assert protecting_threads() <= before


def protecting_threads() -> set[threading.Thread]:
    """By name: servers of other tests start threads at any time."""
    return {thread for thread in threading.enumerate() if thread.name == "task-protection"}


class ObservedWork:
    """Work that looks at what the agent was told."""

    def __init__(self, look: Callable[[], object]) -> None:
        self.perform = self.find_done = self.save = lambda started, token: look()


def test_a_worker_is_protected_while_it_works(agent: EcsAgentEndpoint) -> None:
    with protection(agent.uri) as kept:
        work = ProtectedWork(ObservedWork(agent.next), kept)  # type: ignore[arg-type]
        assert work.perform(SCOTT, FakeCancelToken()) == ON  # type: ignore[arg-type, comparison-overlap]
        assert agent.next() == OFF
        assert work.find_done(SCOTT, FakeCancelToken()) == ON  # type: ignore[arg-type, comparison-overlap]
        assert agent.next() == OFF
        work.save(SCOTT, FakeCancelToken())  # type: ignore[arg-type]
        assert agent.next() == OFF
