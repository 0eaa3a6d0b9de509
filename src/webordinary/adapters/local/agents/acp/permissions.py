"""Which of an agent's requests are granted: edits of the site; commands only where a jail holds them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from webordinary.adapters.local.agents import confined

_LOOKING = frozenset({"read", "search", "think"})
_EDITING = frozenset({"edit", "delete", "move"})


def granted(kind: str, paths: Sequence[str], workspace: Path, readable: Path, *, jailed: bool) -> bool:
    """Whether a tool may run; what is not said to be a look or an edit of this site is not granted."""
    if kind == "execute":
        return jailed
    if kind in _EDITING:
        return _all_inside(paths, (workspace,)) if paths else jailed
    return kind in _LOOKING and _all_inside(paths, (workspace, readable))


def _all_inside(paths: Sequence[str], folders: tuple[Path, ...]) -> bool:
    return all(any(_is_inside(path, folder) for folder in folders) for path in paths)


def _is_inside(path: str, folder: Path) -> bool:
    if Path(path) == folder:
        return True
    try:
        confined.inside(folder, path)
    except confined.Outside:
        return False
    return True
