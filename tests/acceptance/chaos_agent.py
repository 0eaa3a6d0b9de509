"""An agent to be watched: writes a note step by step and keeps a journal; run as a program, by workers.

Instruction: `note=MARK file=FILE steps=N`, and where wanted `pause=SECONDS` between steps, `gate=1` (the last
step waits for the file `gates/MARK`), `deaf=1` (ignores SIGINT), `code=N` (fails with that code).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from types import FrameType

GATE_LOOK_SECONDS = 0.02


class AgentJournal:
    """One line per thing that happened, by agents of all keys; a line is one write."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.writable = os.access(folder, os.W_OK)  # not from inside a jail
        path = folder / "journal" if self.writable else os.devnull
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        self._about = {"mark": mark, "pid": os.getpid(), "key": key(), "worker": os.environ["WEBORDINARY_WORKER"]}

    def tell(self, what: str, **more: object) -> None:
        """Write it down."""
        line = {"what": what, "at": time.time(), **self._about, **more}
        os.write(self._file, json.dumps(line).encode() + b"\n")


def key() -> str:
    """Whose workspace this is: `…/{project}/{user}/tree`."""
    project, user = Path.cwd().parts[-3:-1]
    return f"{project}#{user}"


def main(folder: Path, instruction: str) -> int:
    """Do as the instruction says."""
    wish = dict(re.findall(r"(\w+)=(\S+)", instruction))
    journal = AgentJournal(folder, wish["note"])
    if journal.writable:
        _stay_alone(folder / f"lock-{key()}", journal)
    _heed_interrupts(journal, deaf="deaf" in wish)
    if "code" in wish:
        journal.tell("failed")
        sys.stderr.write("the test said so")
        return int(wish["code"])
    with contextlib.suppress(KeyboardInterrupt):
        _write(folder, journal, wish)
        journal.tell("ended")
        sys.stdout.write(json.dumps({"changed": f"Wrote note {wish['note']}."}))
        return 0
    return 130


def _stay_alone(path: Path, journal: AgentJournal) -> None:
    lock = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kernel lets go of it, however this process ends
    except BlockingIOError:
        journal.tell("overlapped")


def _heed_interrupts(journal: AgentJournal, *, deaf: bool) -> None:
    def heard(number: int, frame: FrameType | None) -> None:
        journal.tell("interrupted")
        if not deaf:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, heard)


def _write(folder: Path, journal: AgentJournal, wish: dict[str, str]) -> None:
    mark, steps, file = wish["note"], int(wish["steps"]), Path(wish["file"])
    there = file.read_text() if file.exists() else ""
    found = there.count(f"<p>note {mark} step ")
    journal.tell("started", found=found)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab", buffering=0) as page:
        for step in range(found + 1, steps + 1):
            if step == steps and "gate" in wish:
                _wait_for(folder / "gates" / mark, journal)
            page.write(f"<p>note {mark} step {step} of {steps}</p>\n".encode())
            time.sleep(float(wish.get("pause", "0")))


def _wait_for(gate: Path, journal: AgentJournal) -> None:
    journal.tell("waits")
    while not gate.exists():
        time.sleep(GATE_LOOK_SECONDS)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.stdin.read()))
