"""Hugo sites."""

from __future__ import annotations

from pathlib import Path

from webordinary.adapters.local.builders.bench import Bench
from webordinary.adapters.local.builders.programs import find_program, home_of
from webordinary.model.hold import Hold
from webordinary.site.reach import Reach
from webordinary.site.sources import SourceTree

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

    def make(self, bench: Bench, hold: Hold) -> Path:
        """One call; nothing is fetched."""
        hugo = find_program("hugo")
        output = bench.path / ".output"
        words = [
            "--source", str(bench.path), "--destination", str(output), "--baseURL", "/",
            "--noBuildLock", "--cacheDir", str(bench.path / ".hugo-cache"),
        ]  # fmt: skip
        bench.run([hugo, *words], hold, reach=Reach(readable=home_of(hugo)))
        output.mkdir(exist_ok=True)
        return output
