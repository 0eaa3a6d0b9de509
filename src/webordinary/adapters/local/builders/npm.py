"""npm sites: Astro, and whatever else has a package.json with a build script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from webordinary.adapters.local.builders.bench import Bench, NotBuilt
from webordinary.adapters.local.builders.npm_install import Dependencies
from webordinary.adapters.local.builders.output import find_output
from webordinary.adapters.local.builders.programs import find_program, home_of
from webordinary.model.hold import Hold
from webordinary.site.reach import Reach
from webordinary.site.sources import SourceTree

LOCK = "package-lock.json"
_PACKAGE = "package.json"
_PACKAGE_BYTES = 1_000_000
_ENV = {
    "ASTRO_TELEMETRY_DISABLED": "1",
    "NEXT_TELEMETRY_DISABLED": "1",
    "npm_config_update_notifier": "false",
    "npm_config_offline": "true",
}


class Npm:
    """`npm ci` by the committed lock file, then `npm run build` without any network."""

    name = "npm"

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies

    def fits(self, tree: SourceTree) -> bool:
        """There is a build script."""
        return _PACKAGE in tree.files and bool(_scripts(_read(tree.path / _PACKAGE)).get("build"))

    def make(self, bench: Bench, hold: Hold) -> Path:
        """Install what the lock file says, or use what was installed for the same one; then build."""
        package = _read(bench.path / _PACKAGE)
        if not _scripts(package).get("build"):
            raise NotBuilt("package.json has no build script.")
        npm = find_program("npm")
        homes = (*home_of(npm), *home_of(find_program("node")))
        readable = (*homes, *self._installed(bench, package, npm, hold))
        env = {**_ENV, "npm_config_cache": str(bench.path / ".npm-cache")}
        bench.run([npm, "run", "build"], hold, env=env, reach=Reach(readable=readable))
        return find_output(bench.path, bench.tree.files)

    def _installed(self, bench: Bench, package: dict[str, Any], npm: str, hold: Hold) -> tuple[Path, ...]:
        if LOCK in bench.tree.files:
            return self._dependencies.provide(bench, package, npm, hold)
        if any(package.get(kind) for kind in ("dependencies", "devDependencies")):
            raise NotBuilt(f"There is no {LOCK}: run `npm install` and commit it, so that every build is the same.")
        return ()


def _read(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > _PACKAGE_BYTES:
            return {}
        package = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return package if isinstance(package, dict) else {}


def _scripts(package: dict[str, Any]) -> dict[str, Any]:
    scripts = package.get("scripts")
    return scripts if isinstance(scripts, dict) else {}
