"""What an agent keeps between the mails of a thread."""

from __future__ import annotations

import tarfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from webordinary.adapters.agents import session_store
from webordinary.adapters.agents.session_store import SessionRecord, SessionStore
from webordinary.adapters.files.stores import FolderSessionFiles, forget_homes
from webordinary.jobs.ports import AgentTask

TASK = AgentTask("a wish", Path("site"), project_id="amelia", thread_id="a" * 16)


@pytest.fixture
def homes(tmp_path: Path) -> SessionStore:
    return SessionStore(FolderSessionFiles(tmp_path / "kept"), tmp_path / "w-1")


def everything(path: Path) -> bool:
    return True


def use(
    homes: SessionStore, agent: str = "claude", task: AgentTask = TASK, **files: str
) -> tuple[SessionRecord, set[str]]:
    """Open it, look, leave something behind."""
    with homes.open(agent, task, everything) as home:
        seen = home.record, {str(path.relative_to(home.files)) for path in home.files.rglob("*")}
        for name, text in files.items():
            (home.files / name).write_text(text)
        home.record = SessionRecord(agent, "session-1", 0.5)
    return seen


def test_a_thread_finds_its_files_on_another_worker(homes: SessionStore, tmp_path: Path) -> None:
    assert use(homes, transcript="…") == (SessionRecord("claude"), set())
    assert use(SessionStore(FolderSessionFiles(tmp_path / "kept"), tmp_path / "w-2")) == (
        SessionRecord("claude", "session-1", 0.5),
        {"transcript"},
    )


def test_another_thread_and_another_agent_find_nothing(homes: SessionStore) -> None:
    use(homes, transcript="…")
    other = AgentTask("a wish", Path("site"), project_id="amelia", thread_id="b" * 16)
    assert use(homes, task=other) == (SessionRecord("claude"), set())
    assert use(homes, agent="acp") == (SessionRecord("acp"), set())


def test_a_run_that_failed_leaves_no_memory(homes: SessionStore) -> None:
    use(homes, first="1")
    with suppress(RuntimeError), homes.open("claude", TASK, everything) as home:
        (home.files / "second").touch()
        raise RuntimeError
    assert use(homes)[1] == {"first"}


def test_links_and_odd_files_are_not_kept(homes: SessionStore) -> None:
    with homes.open("claude", TASK, everything) as home:
        (home.files / "link").symlink_to("/etc/passwd")
        (home.files / "plain").touch()
        home.record = SessionRecord("claude", "s")
    assert use(homes)[1] == {"plain"}


def test_a_memory_that_has_grown_too_large_is_dropped(homes: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    use(homes, first="1")
    monkeypatch.setattr(session_store, "MOST_BYTES", 100)
    use(homes, large="x" * 200)
    assert use(homes) == (SessionRecord("claude"), set())


def test_a_broken_or_hostile_file_means_a_fresh_start(homes: SessionStore, tmp_path: Path) -> None:
    use(homes, first="1")
    [kept] = (tmp_path / "kept").rglob("*.tar")
    kept.write_bytes(b"not a tar")
    assert use(homes) == (SessionRecord("claude"), set())
    with tarfile.open(kept, "w") as tar:
        for name, path in (("memo.json", kept.parent / "memo.json"), ("../evil", kept.parent / "memo.json")):
            path.write_text('{"agent": "claude", "session": "s"}')
            tar.add(path, name)
    assert use(homes)[1] == set()
    assert not (tmp_path / "w-1" / "evil").exists()


def test_a_link_in_a_kept_file_means_a_fresh_start(homes: SessionStore, tmp_path: Path) -> None:
    use(homes, first="1")
    [kept] = (tmp_path / "kept").rglob("*.tar")
    memo = tmp_path / "memo.json"
    memo.write_text('{"agent": "claude", "session": "s"}')
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
        with tarfile.open(kept, "w") as tar:
            tar.add(memo, "memo.json")
            odd = tarfile.TarInfo("home/odd")
            odd.type, odd.linkname = kind, "memo.json"
            tar.addfile(odd)
        with homes.open("claude", TASK, everything) as home:
            assert (home.record, list(home.files.iterdir())) == (SessionRecord("claude"), [])


def test_old_ones_are_forgotten(homes: SessionStore, tmp_path: Path) -> None:
    use(homes, first="1")
    now = datetime.now(UTC)
    assert forget_homes(tmp_path / "kept", now - timedelta(days=1)) == 0
    assert forget_homes(tmp_path / "kept", now + timedelta(days=1)) == 1
    assert use(homes) == (SessionRecord("claude"), set())
