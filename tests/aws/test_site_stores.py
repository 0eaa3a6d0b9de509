"""What a thread and a job leave in the store's bucket: the agent's session, and what builds said."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

from tests.aws.emulator import RunningEmulator  # noqa: E402
from tests.aws.site_bucket import clients_of  # noqa: E402
from webordinary.adapters.agents.session_store import (  # noqa: E402
    SessionRecord,
    SessionStore,
)
from webordinary.adapters.aws.clients import Clients  # noqa: E402
from webordinary.adapters.aws.site import job_files  # noqa: E402
from webordinary.adapters.aws.site.job_files import S3BuildLogs, S3SessionFiles  # noqa: E402
from webordinary.jobs.ports import AgentTask  # noqa: E402
from webordinary.model.errors import Permanent, Transient  # noqa: E402

TASK = AgentTask("a wish", Path("site"), project_id="amelia", thread_id="a" * 16)
OTHER = AgentTask("a wish", Path("site"), project_id="bob", thread_id="a" * 16)


@pytest.fixture
def clients(ministack: RunningEmulator) -> Clients:
    return clients_of(ministack.endpoint)


@pytest.fixture
def bucket(clients: Clients) -> str:
    name = f"store-{secrets.token_hex(6)}"
    clients.s3.create_bucket(Bucket=name)
    return name


def homes(clients: Clients, bucket: str, scratch: Path) -> SessionStore:
    return SessionStore(S3SessionFiles(lambda _: clients.s3, bucket), scratch)


def use(homes: SessionStore, task: AgentTask = TASK, **files: str) -> tuple[SessionRecord, dict[str, str]]:
    with homes.open("claude", task, lambda path: True) as home:
        seen = home.record, {path.name: path.read_text() for path in home.files.iterdir()}
        for name, text in files.items():
            (home.files / name).write_text(text)
        home.record = SessionRecord("claude", "session-1", 0.5)
    return seen


def test_a_thread_goes_on_in_another_container(clients: Clients, bucket: str, tmp_path: Path) -> None:
    assert use(homes(clients, bucket, tmp_path / "one"), transcript="hello") == (SessionRecord("claude"), {})
    there = homes(clients, bucket, tmp_path / "two")
    assert use(there) == (SessionRecord("claude", "session-1", 0.5), {"transcript": "hello"})
    assert use(there, OTHER) == (SessionRecord("claude"), {})
    assert list((tmp_path / "two").iterdir()) == [], "nothing of it stays on the disk"


def test_a_session_that_grew_too_large_starts_afresh(
    clients: Clients, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = homes(clients, bucket, tmp_path)
    use(mine, transcript="hello")
    monkeypatch.setattr(job_files, "MOST_SESSION_BYTES", 100)
    assert use(mine) == (SessionRecord("claude"), {})


def test_a_dropped_session_is_gone(clients: Clients, bucket: str, tmp_path: Path) -> None:
    files = S3SessionFiles(lambda _: clients.s3, bucket)
    (tmp_path / "archive").write_bytes(b"x")
    files.keep("amelia", "a" * 16, tmp_path / "archive")
    files.drop("amelia", "a" * 16)
    files.drop("amelia", "a" * 16)
    assert files.fetch("amelia", "a" * 16, tmp_path) is None


def test_a_store_that_is_away_is_said_and_not_taken_for_a_new_thread(clients: Clients, tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="doctor"):
        use(homes(clients, "no-such-bucket", tmp_path))
    with pytest.raises(Transient):
        use(homes(clients_of("http://127.0.0.1:1"), "any", tmp_path))


def test_builds_of_a_job_are_read_one_after_another(clients: Clients, bucket: str) -> None:
    logs = S3BuildLogs(clients.s3, bucket, lambda: datetime.now(UTC))
    logs.add("job-1", "first\n")
    logs.add("job-1", "second\n")
    logs.add("job-10", "other\n")
    assert logs.of("job-1") == "first\nsecond\n"
    assert logs.of("job-2") == logs.of("../job-1") == logs.of("") == ""


def test_a_build_log_is_bounded_and_its_end_is_what_matters(
    clients: Clients, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_files, "LOG_BYTES", 10)
    logs = S3BuildLogs(clients.s3, bucket, lambda: datetime.now(UTC))
    logs.add("job-1", "x" * 50 + "the reason")
    assert logs.of("job-1") == "the reason"


def test_a_build_log_that_cannot_be_kept_fails_nobody(clients: Clients) -> None:
    S3BuildLogs(clients.s3, "no-such-bucket", lambda: datetime.now(UTC)).add("job-1", "words")
