"""An agent's home: what it keeps between the mails of a thread follows the thread to any worker.

Kept is one file per thread, replaced whole when a run has ended in good order. So a run that died with its worker
leaves no memory of edits that died with it.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from webordinary.adapters.durable import disk_errors
from webordinary.jobs.ports import AgentTask, SessionFiles

MOST_BYTES = 64_000_000
MOST_FILES = 5_000
_RECORD = "memo.json"
_RECORD_BYTES = 10_000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """The record of a thread's agent beside its own files. `total_cost_usd` covers all runs."""

    agent: str
    session: str = ""
    total_cost_usd: float = 0.0
    interrupted: bool = False


@dataclass(slots=True)
class SessionHome:
    """The home of one run: a fresh folder with the kept files. `record` is kept with the files."""

    folder: Path
    record: SessionRecord

    @property
    def files(self) -> Path:
        """The agent's own files in the home."""
        return self.folder / "home"


class SessionStore:
    """`kept` lasts and is shared by all workers; `scratch` is this worker's alone, emptied at its start."""

    def __init__(self, kept: SessionFiles, scratch: Path) -> None:
        self._kept, self._scratch = kept, scratch
        shutil.rmtree(scratch, ignore_errors=True)

    @contextmanager
    def open(self, agent: str, task: AgentTask, is_kept: Callable[[Path], bool]) -> Iterator[SessionHome]:
        """The thread's home, with its session if that is one of this kind of agent.

        Files for which `is_kept` is true are kept after the block, unless the block fails.
        """
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="agent-", dir=self._scratch, ignore_cleanup_errors=True) as folder:
            home = SessionHome(Path(folder), SessionRecord(agent))
            home.files.mkdir()
            lasting = bool(task.project_id and task.thread_id)
            if lasting and (archive := self._kept.fetch(task.project_id, task.thread_id, home.folder)):
                _unpack(archive, home)
            yield home
            if lasting and home.record.session:
                self._keep(task, home, is_kept)

    def _keep(self, task: AgentTask, home: SessionHome, is_kept: Callable[[Path], bool]) -> None:
        archive = home.folder / "kept.tar"
        if _pack(archive, home, is_kept):
            self._kept.keep(task.project_id, task.thread_id, archive)
        else:
            _log.warning("%s: the agent's memory of this thread has grown too large and is dropped", task.thread_id)
            self._kept.drop(task.project_id, task.thread_id)


def _unpack(path: Path, home: SessionHome) -> None:
    try:
        record = _record_in(path)
        if record.agent != home.record.agent:
            return
        with tarfile.open(path) as kept:
            kept.extractall(home.folder, members=_bounded(kept), filter="data")
        home.record = record
    except (OSError, tarfile.TarError, ValueError, TypeError) as problem:
        _log.warning("an agent's session is not readable and starts afresh: %s: %s", path, problem)
        shutil.rmtree(home.files, ignore_errors=True)
        home.files.mkdir(exist_ok=True)


def _bounded(kept: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    size = count = 0
    for member in kept:
        size, count = size + member.size, count + 1
        if size > MOST_BYTES or count > MOST_FILES:
            raise ValueError("it is too large")
        if member.name.startswith("home/"):
            if not member.isreg():
                raise ValueError(f"{member.name} is not a plain file")
            yield member


def _record_in(path: Path) -> SessionRecord:
    with tarfile.open(path) as kept:
        first = kept.next()
        file = kept.extractfile(first) if first and first.name == _RECORD and first.size < _RECORD_BYTES else None
        if file is None:
            raise ValueError("it has no record")
        return SessionRecord(**json.load(file))


def _pack(archive: Path, home: SessionHome, is_kept: Callable[[Path], bool]) -> bool:
    """False if it would be too large."""
    files = list(_files(home.files, is_kept))
    if sum(file.lstat().st_size for file in files) > MOST_BYTES or len(files) > MOST_FILES:
        return False
    with disk_errors(archive):
        (home.folder / _RECORD).write_text(json.dumps(asdict(home.record)), encoding="utf-8")
        with tarfile.open(archive, mode="w") as kept:
            for member in (home.folder / _RECORD, *files):
                kept.add(member, str(member.relative_to(home.folder)), recursive=False)
    return True


def _files(folder: Path, is_kept: Callable[[Path], bool]) -> Iterator[Path]:
    """Plain files only: whatever else an agent made is not worth remembering."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if stat.S_ISREG(path.lstat().st_mode) and is_kept(path.relative_to(folder)):
                yield path
