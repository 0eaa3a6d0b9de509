"""A git diff as lines that a page can colour."""

from __future__ import annotations

from dataclasses import dataclass

MAX_LINES = 600


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line: added, removed, context, hunk or note."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class FileDiff:
    """What changed in one file."""

    path: str
    added: int
    removed: int
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class DiffView:
    """A change, file by file; `cut` when it was too long to show whole."""

    files: tuple[FileDiff, ...] = ()
    cut: bool = False


_KINDS = {"+": "added", "-": "removed", " ": "context", "@": "hunk"}
_NOTES = ("new file", "deleted file", "rename ", "Binary files")


def diff_view(diff: str) -> DiffView:
    """Read `git diff` or `git show`; what stands before the first file is left out."""
    lines = diff.splitlines()
    files = []
    path, kept = "", list[DiffLine]()
    for line in lines[:MAX_LINES]:
        if line.startswith("diff --git "):
            files += _file(path, kept)
            path, kept = _path(line), []
        elif path and (shown := _shown(line, in_hunk=any(k.kind == "hunk" for k in kept))):
            kept.append(shown)
    return DiffView((*files, *_file(path, kept)), cut=len(lines) > MAX_LINES)


def _shown(line: str, *, in_hunk: bool) -> DiffLine | None:
    if in_hunk or line.startswith("@@"):
        kind = _KINDS.get(line[:1], "note")
        return DiffLine(kind, line if kind in ("hunk", "note") else line[1:])
    return DiffLine("note", line) if line.startswith(_NOTES) else None


def _path(header: str) -> str:
    return header.rpartition(" b/")[2].strip('"')


def _file(path: str, lines: list[DiffLine]) -> list[FileDiff]:
    if not path:
        return []
    added = sum(line.kind == "added" for line in lines)
    removed = sum(line.kind == "removed" for line in lines)
    return [FileDiff(path, added, removed, tuple(lines))]
