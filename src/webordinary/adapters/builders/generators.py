"""Hugo sites."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from webordinary.adapters.builders.outside import BuildDir, files_of, find_output, find_program, search_path
from webordinary.jobs.sandbox_policy import SandboxPolicy
from webordinary.jobs.source import SourceTree
from webordinary.model.claims import CancelToken

_OWN = frozenset(f"hugo.{kind}" for kind in ("toml", "yaml", "yml", "json"))
_OLD = frozenset(f"config.{kind}" for kind in ("toml", "yaml", "yml", "json"))
_FOLDERS = ("content/", "layouts/", "themes/")


class Hugo:
    """Built with links that begin with "/": the same release is shown under several host names."""

    name = "hugo"

    def fits(self, tree: SourceTree) -> bool:
        """Its settings are there under their own name, or under the old one beside Hugo's folders."""
        if any(name in tree.files for name in _OWN) or any(name.startswith("config/_default/") for name in tree.files):
            return True
        return any(name in tree.files for name in _OLD) and any(name.startswith(_FOLDERS) for name in tree.files)

    def make(self, bench: BuildDir, token: CancelToken) -> Path:
        """One call; nothing is fetched."""
        hugo = find_program("hugo")
        output = bench.path / ".output"
        words = [
            "--source", str(bench.path), "--destination", str(output), "--baseURL", "/",
            "--noBuildLock", "--cacheDir", str(bench.path / ".hugo-cache"),
        ]  # fmt: skip
        bench.run([hugo, *words], token, reach=SandboxPolicy(readable=files_of(hugo)))
        output.mkdir(exist_ok=True)
        return output


_SETTINGS = ("mkdocs.yml", "mkdocs.yaml")


class MkDocs:
    """Built by the operator's `mkdocs`, with the themes and plugins that are installed beside it."""

    name = "mkdocs"

    def __init__(self, program: str = "mkdocs") -> None:
        self._program = program

    def fits(self, tree: SourceTree) -> bool:
        """Its settings are there."""
        return any(name in tree.files for name in _SETTINGS)

    def make(self, bench: BuildDir, token: CancelToken) -> Path:
        """One call."""
        mkdocs = find_program(self._program)
        output = bench.path / ".output"
        env = {"PYTHONDONTWRITEBYTECODE": "1", "SOURCE_DATE_EPOCH": _this_year(), **search_path(mkdocs)}
        words = ["build", "--site-dir", str(output)]
        bench.run([mkdocs, *words], token, env=env, reach=SandboxPolicy(readable=files_of(mkdocs)))
        output.mkdir(exist_ok=True)
        return output


def _this_year() -> str:
    """The time that MkDocs writes into pages as that of the build: were it exact, no page would ever stay the same."""
    return str(int(datetime(datetime.now(UTC).year, 1, 1, tzinfo=UTC).timestamp()))


OUTPUT = "SITE_OUTPUT"


class CommandBuilder:
    """Runs in a copy of the source; writes to the folder that SITE_OUTPUT names, or to one with a usual name."""

    name = "command"

    def __init__(self, words: Sequence[str]) -> None:
        self._words = tuple(words)

    def fits(self, tree: SourceTree) -> bool:
        """Never by itself: a project names it."""
        return False

    def make(self, bench: BuildDir, token: CancelToken) -> Path:
        """One call."""
        program = find_program(self._words[0])
        output = bench.path / ".output"
        output.mkdir()
        env = {OUTPUT: str(output), **search_path(program)}
        bench.run([program, *self._words[1:]], token, env=env, reach=SandboxPolicy(readable=files_of(program)))
        if not output.is_symlink() and output.is_dir() and any(output.iterdir()):
            return output
        return find_output(bench.path, bench.tree.files)
