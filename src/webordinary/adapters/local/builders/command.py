"""Any other site: a program of the operator's builds it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from webordinary.adapters.local.builders.bench import Bench
from webordinary.adapters.local.builders.output import find_output
from webordinary.adapters.local.builders.programs import find_program, home_of
from webordinary.model.hold import Hold
from webordinary.site.reach import Reach
from webordinary.site.sources import SourceTree

OUTPUT = "SITE_OUTPUT"


class Command:
    """Runs in a copy of the source; writes to the folder that SITE_OUTPUT names, or to one with a usual name."""

    name = "command"

    def __init__(self, words: Sequence[str]) -> None:
        self._words = tuple(words)

    def fits(self, tree: SourceTree) -> bool:
        """Never by itself: a project names it."""
        return False

    def make(self, bench: Bench, hold: Hold) -> Path:
        """One call."""
        program = find_program(self._words[0])
        output = bench.path / ".output"
        output.mkdir()
        env = {OUTPUT: str(output)}
        bench.run([program, *self._words[1:]], hold, env=env, reach=Reach(readable=home_of(program)))
        if not output.is_symlink() and output.is_dir() and any(output.iterdir()):
            return output
        return find_output(bench.path, bench.tree.files)
