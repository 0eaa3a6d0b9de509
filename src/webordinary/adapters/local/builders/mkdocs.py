"""MkDocs sites."""

from __future__ import annotations

from datetime import UTC, datetime
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
        env = {"PYTHONDONTWRITEBYTECODE": "1", "SOURCE_DATE_EPOCH": _this_year()}
        words = ["build", "--site-dir", str(output)]
        bench.run([mkdocs, *words], hold, env=env, reach=Reach(readable=home_of(mkdocs)))
        output.mkdir(exist_ok=True)
        return output


def _this_year() -> str:
    """The time that MkDocs writes into pages as that of the build: were it exact, no page would ever stay the same."""
    return str(int(datetime(datetime.now(UTC).year, 1, 1, tzinfo=UTC).timestamp()))
