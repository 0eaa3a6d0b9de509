"""Dependencies of npm sites: installed once per lock file, kept, and shown to builds read-only.

A build gets a `node_modules` of its own whose entries are links to the kept packages, as pnpm does it: tools may
write beside them, and no build can change what the next one uses.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webordinary.adapters.local.builders.bench import Bench, NotBuilt
from webordinary.adapters.local.builders.npm_registry import Registry, registry_of
from webordinary.adapters.local.builders.programs import find_program, home_of
from webordinary.model.hold import Hold
from webordinary.site.reach import Network, Reach

MODULES = "node_modules"
KEPT_INSTALLS = 20
IN_USE_SECONDS = 7200.0
"""Longer than any job: what was used since may be in use still."""
_INPUTS = ("package-lock.json", ".npmrc")
_KINDS = (
    "dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "bundleDependencies",
    "overrides", "workspaces", "engines",
)  # fmt: skip
_QUIET = ("--no-audit", "--no-fund", "--no-update-notifier")
_INSTALL_BYTES = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Dependencies:
    """All installs below one folder. `scripts`: packages may run their install scripts, jailed."""

    folder: Path
    scripts: bool = False

    def provide(self, bench: Bench, package: dict[str, Any], npm: str, hold: Hold) -> tuple[Path, ...]:
        """Put `node_modules` on the bench; returns what the build must be able to read for it."""
        if _has_own_packages(bench.path / "package-lock.json"):
            self._install(bench, bench.path, npm, hold)
            return ()
        kept = self.folder / self._name(bench, package)
        if not (kept / MODULES).is_dir():
            self._install_and_keep(bench, kept, npm, hold)
        else:
            bench.said.append(f"$ npm ci\nthe same lock file was installed before: {kept.name[:12]}\n")
        os.utime(kept)
        _link_packages(kept / MODULES, bench.path / MODULES)
        return (kept.resolve(),)

    def _name(self, bench: Bench, package: dict[str, Any]) -> str:
        """Whatever an install depends on."""
        node = Path(find_program("node")).stat()
        digest = hashlib.sha256()
        for name in _INPUTS:
            file = bench.path / name
            digest.update(file.read_bytes() if name in bench.tree.files else b"")
            digest.update(b"\0")
        wanted = {kind: package.get(kind) for kind in _KINDS}
        about = [wanted, self.scripts, node.st_size, int(node.st_mtime)]
        digest.update(json.dumps(about, sort_keys=True).encode())
        return digest.hexdigest()

    def _install_and_keep(self, bench: Bench, kept: Path, npm: str, hold: Hold) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = self.folder / f".new-{secrets.token_hex(6)}"
        fresh.mkdir()
        try:
            for name in ("package.json", *_INPUTS):
                if name in bench.tree.files:
                    shutil.copyfile(bench.path / name, fresh / name)
            self._install(bench, fresh, npm, hold)
            (fresh / MODULES).mkdir(exist_ok=True)
            os.sync()  # a power cut must not leave half an install under its final name
            if not kept.exists():
                fresh.rename(kept)
        except OSError as problem:
            if not kept.exists():
                raise NotBuilt(f"What npm installed cannot be kept ({problem.strerror}).", mendable=False) from problem
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        self._forget_old(time.time())

    def _install(self, bench: Bench, where: Path, npm: str, hold: Hold) -> None:
        registry = registry_of(npm)
        cache = where / ".npm-cache"
        scripts = () if self.scripts else ("--ignore-scripts",)
        reach = Reach(readable=_homes(npm, registry), network=Network(hosts=registry.hosts, bytes=_INSTALL_BYTES))
        env = {**registry.env, "npm_config_cache": str(cache)}
        try:
            bench.run([npm, "ci", *_QUIET, *scripts], hold, env=env, reach=reach, cwd=where.resolve())
        finally:
            shutil.rmtree(cache, ignore_errors=True)

    def _forget_old(self, now: float) -> None:
        """Keep the latest used; what a killed worker left half-done goes too."""
        ages = {entry: now - entry.stat().st_mtime for entry in self.folder.iterdir()}
        by_age = sorted((entry for entry in ages if not entry.name.startswith(".")), key=ages.__getitem__)
        left = [entry for entry in ages if entry.name.startswith(".")]
        for entry in [*by_age[KEPT_INSTALLS:], *left]:
            if ages[entry] > IN_USE_SECONDS:
                shutil.rmtree(entry, ignore_errors=True)


def _homes(npm: str, registry: Registry) -> tuple[Path, ...]:
    return (*home_of(npm), *home_of(find_program("node")), *registry.files)


def _has_own_packages(lock: Path) -> bool:
    """Workspaces and `file:` packages are links into the source: such an install belongs to one bench."""
    try:
        packages = json.loads(lock.read_bytes())["packages"]
        return any(isinstance(entry, dict) and entry.get("link") for entry in packages.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _link_packages(kept: Path, modules: Path) -> None:
    modules.mkdir()
    for entry in kept.iterdir():
        if entry.name.startswith("@"):
            (modules / entry.name).mkdir()
            for package in entry.iterdir():
                (modules / entry.name / package.name).symlink_to(package.resolve())
        elif entry.name == ".bin" or not entry.name.startswith("."):
            (modules / entry.name).symlink_to(entry.resolve())
