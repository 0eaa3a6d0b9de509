"""Bench: where an outside program builds one site, on a copy of its tracked files, and what it said."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from webordinary.model.errors import JobTimedOut, Permanent
from webordinary.model.hold import Hold
from webordinary.model.text import clean
from webordinary.site.ports import Programs
from webordinary.site.reach import NOTHING_ELSE, Reach
from webordinary.site.sources import SourceTree

STEP_CHARACTERS = 60_000
LOG_CHARACTERS = 200_000
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PLAIN_OUTPUT = {"CI": "1", "NO_COLOR": "1", "FORCE_COLOR": "0", "TERM": "dumb"}


class NotBuilt(Exception):
    """No site came out, and why; `mendable` if another state of its source could be built here."""

    def __init__(self, reason: str, *, mendable: bool = True) -> None:
        super().__init__(reason)
        self.reason, self.mendable = clean(reason), mendable


@dataclass(slots=True)
class Bench:
    """One build under way."""

    path: Path
    tree: SourceTree
    programs: Programs
    seconds: float
    said: list[str] = field(default_factory=list)

    def run(
        self,
        args: Sequence[str],
        hold: Hold,
        *,
        env: Mapping[str, str] | None = None,
        reach: Reach = NOTHING_ELSE,
        cwd: Path | None = None,
    ) -> None:
        """Run one program to its good end; raises NotBuilt when it ends badly, too late, or wants too much."""
        name = Path(args[0]).name
        shown = " ".join([name, *args[1:]])
        try:
            code, out, err = self.programs.run(
                args, cwd or self.path, b"", {**_PLAIN_OUTPUT, **(env or {})}, self.seconds, hold, reach
            )
        except (JobTimedOut, Permanent) as problem:
            hold.check()  # the job's own end goes before the program's
            self._say(shown, str(problem))
            raise NotBuilt(_words(name, problem, self.seconds)) from problem
        self._say(shown, (out + b"\n" + err).decode(errors="replace"))
        if code != 0:
            self.said.append(f"{name} ended with {code}\n")
            raise NotBuilt(f"{name} ended with an error.")

    @property
    def log(self) -> str:
        """All that was said, bounded; the end matters most."""
        return "".join(self.said)[-LOG_CHARACTERS:]

    def _say(self, shown: str, text: str) -> None:
        plain = clean(_COLOURS.sub("", text).replace("\r", "\n")).replace(os.fspath(self.path), ".").strip()
        self.said.append(f"$ {shown.replace(os.fspath(self.path), '.')}\n{plain[-STEP_CHARACTERS:]}\n")


def _words(name: str, problem: Exception, seconds: float) -> str:
    if isinstance(problem, JobTimedOut):
        return f"{name} took longer than {seconds:.0f} seconds and was stopped."
    return f"{name} was stopped: it wanted more than it may have."


@contextmanager
def opened_bench(scratch: Path, tree: SourceTree, programs: Programs, seconds: float) -> Iterator[Bench]:
    """A copy of the tracked files to build in, gone when the block ends: builds leave nothing in a workspace."""
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=scratch, ignore_cleanup_errors=True) as name:
        path = Path(name).resolve()
        _copy_tree(tree, path)
        yield Bench(path, tree, programs, seconds)


def _copy_tree(tree: SourceTree, into: Path) -> None:
    made = {into}
    for name in tree.files:
        source, target = tree.path / name, into / name
        if source.is_symlink() or not source.is_file():
            raise NotBuilt(f"{name} is a link or not a file, and links cannot be published.")
        if target.parent not in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            made.add(target.parent)
        shutil.copyfile(source, target)
        target.chmod(source.stat().st_mode & 0o755)
