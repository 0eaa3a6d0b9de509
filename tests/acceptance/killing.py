"""Kills a running system as a power cut would: the whole process tree at once, at any instant."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def kill_tree(root: int) -> None:
    """SIGKILL a process and all its descendants; stopped first, so that none can start another meanwhile."""
    family = descendants(root)
    for pid in (root, *family):
        _signal(pid, signal.SIGSTOP)
    for pid in {root, *family, *descendants(root)}:
        _signal(pid, signal.SIGKILL)


def descendants(root: int) -> list[int]:
    """Children, grandchildren and so on, as the kernel knows them."""
    found: list[int] = []
    pending = [root]
    while pending:
        children = _children(pending.pop())
        found += children
        pending += children
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in _listed(Path(f"/proc/{pid}/task")):
        with contextlib.suppress(OSError):
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _signal(pid: int, what: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, what)
