"""Taking back lines that a commit only added, where git itself refuses because others were added right beside them.

Git takes neighbouring lines for one place. Whose each line is, it knows all the same: where what a commit added still
stands as it was added, piece by piece, and the commit changed nothing else in the file, taking it out touches nobody's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from webordinary.adapters.local.git.command import Git

_HUNK = re.compile(r"^@@ -\d+(?:,(?P<removed>\d+))? \+(?P<first>\d+)(?:,(?P<count>\d+))? @@", re.MULTILINE)
_LINE_OF = re.compile(r"^(?P<commit>[0-9a-f]{40,64}) \d+ (?P<line>\d+)", re.MULTILINE)
_TABLE_BEGINS = re.compile(rb"\|?[ \t]*:?-+:?[ \t]*\|[ \t|:-]*")
_PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")


def take_out_added_lines(git: Git, commit: str, files: Sequence[str]) -> bool:
    """Write these files into the tree without what a commit added to them; False, and none of them, if one cannot."""
    assert git.tree is not None
    wanted = {file: without_added_lines(git, commit, file) for file in files}
    if not files or None in wanted.values():
        return False
    for file, content in wanted.items():
        (git.tree / file).write_bytes(content or b"")
    return True


def without_added_lines(git: Git, commit: str, file: str) -> bytes | None:
    """The checked out file without what this commit added to it; None if not exactly that can be taken out."""
    hunks = list(_HUNK.finditer(git("diff", "--unified=0", *_PLAIN, f"{commit}^", commit, "--", file)))
    if not hunks or any(hunk["removed"] != "0" for hunk in hunks):
        return None
    before, then, now = (_lines(git, f"{where}:{file}") for where in (f"{commit}^", commit, "HEAD"))
    if before is None or then is None or now is None:
        return None
    starts = ((int(hunk["first"]) - 1, int(hunk["count"] or 1)) for hunk in hunks)
    added = [then[start : start + count] for start, count in starts]
    theirs = _lines_of(git, commit, file)
    runs = [list(run) for its, run in groupby(range(len(now)), key=theirs.__contains__) if its]
    if [[now[number] for number in run] for run in runs] != added:
        return None
    if any(_bears(lines, now[run[-1] + 1 :]) for lines, run in zip(added, runs, strict=True)):
        return None
    return b"".join(line for number, line in enumerate(now) if number not in theirs)


def _bears(lines: Sequence[bytes], rest: Sequence[bytes]) -> bool:
    """Whether what follows these lines may mean something else without them: rows of their table, or parts of them."""
    if any(_TABLE_BEGINS.fullmatch(line.strip()) for line in lines):
        return True
    first, following = (next(filter(bytes.strip, some), b"") for some in (lines, rest))
    return _indentation(following) > _indentation(first)


def _indentation(line: bytes) -> int:
    line = line.expandtabs(4)
    return len(line) - len(line.lstrip())


def _lines(git: Git, name: str) -> list[bytes] | None:
    shown = git.attempt("cat-file", "blob", name)
    return re.findall(rb"[^\n]*\n|[^\n]+$", shown.out) if shown.code == 0 else None


def _lines_of(git: Git, commit: str, file: str) -> set[int]:
    """Which lines of the checked out file this commit wrote, counted from 0."""
    told = git("blame", "--porcelain", f"{commit}^..HEAD", "--", file)
    return {int(line["line"]) - 1 for line in _LINE_OF.finditer(told) if line["commit"] == commit}
