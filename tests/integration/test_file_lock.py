"""FileLock between processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from webordinary.adapters.durable import FileLock, is_locked

HOLDER = """
import sys
from pathlib import Path
from webordinary.adapters.durable import FileLock
lock = FileLock(Path(sys.argv[1]))
print(lock.acquire(), flush=True)
sys.stdin.read()
"""


def test_a_lock_has_one_holder_and_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"True\n"
        assert not FileLock(path).acquire()
        assert is_locked(path)
        holder.kill()
        holder.wait()
    assert not is_locked(path)
    with FileLock(path):
        assert is_locked(path)
    assert path.exists()


def test_a_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    one, other = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert one.acquire()
    assert not other.acquire()
    one.release()
    assert other.acquire()
    other.release()
