"""MkDocs sites."""

from __future__ import annotations

from pathlib import Path

from webordinary.adapters.local.builders.bench import Bench
from webordinary.adapters.local.builders.programs import find_program, home_of
from webordinary.model.hold import Hold
from webordinary.site.reach import Reach
from webordinary.site.sources import SourceTree

_SETTINGS = ("mkdocs.yml", "mkdocs.yaml")


class MkDocs:
    """Built by the operator's `mkdocs`, with the themes and plugins that are installed beside it."""

    name = "mkdocs"

    def __init__(self, program: str = "mkdocs") -> None:
        self._program = program

    def fits(self, tree: SourceTree) -> bool:
        """Its settings are there."""
        return any(name in tree.files for name in _SETTINGS)

    def make(self, bench: Bench, hold: Hold) -> Path:
        """One call."""
        mkdocs = find_program(self._program)
        output = bench.path / ".output"
        env = {"PYTHONDONTWRITEBYTECODE": "1"}
        words = ["build", "--site-dir", str(output)]
        bench.run([mkdocs, *words], hold, env=env, reach=Reach(readable=home_of(mkdocs)))
        output.mkdir(exist_ok=True)
        return output
