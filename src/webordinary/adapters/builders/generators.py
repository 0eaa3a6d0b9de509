"""Builders that run a generator: Hugo, MkDocs, a command of the operator's, and npm for Astro and other packages.

Packages are installed by the package manager whose lock file is there: npm, pnpm, yarn or bun.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from webordinary.adapters.builders.outside import BuildDir, NotBuilt, files_of, find_output, find_program, search_path
from webordinary.adapters.processes import run
from webordinary.jobs.sandbox_policy import Network, SandboxPolicy
from webordinary.jobs.source import SourceTree
from webordinary.model.claims import CancelToken
from webordinary.model.errors import is_machine_fault
from webordinary.model.text import clean

_OWN = frozenset(f"hugo.{kind}" for kind in ("toml", "yaml", "yml", "json"))
_OLD = frozenset(f"config.{kind}" for kind in ("toml", "yaml", "yml", "json"))
_FOLDERS = ("content/", "layouts/", "themes/")


class Hugo:
    """Built with links that begin with "/": the same release is shown under several host names."""

    name = "hugo"

    def fits(self, tree: SourceTree) -> bool:
        """Its settings are there under their own name, or under the old one beside Hugo's folders."""
        names = tree.files.keys()
        if not names.isdisjoint(_OWN) or any(name.startswith("config/_default/") for name in names):
            return True
        return not names.isdisjoint(_OLD) and any(name.startswith(_FOLDERS) for name in names)

    def make(self, build_dir: BuildDir, token: CancelToken) -> Path:
        """Run the generator; it needs no network."""
        hugo = find_program("hugo")
        output = build_dir.path / ".output"
        words = [
            "--source", str(build_dir.path), "--destination", str(output), "--baseURL", "/",
            "--noBuildLock", "--cacheDir", str(build_dir.path / ".hugo-cache"),
        ]  # fmt: skip
        build_dir.run([hugo, *words], token, policy=SandboxPolicy(readable=files_of(hugo)))
        with suppress(FileExistsError):
            output.mkdir()
        return output


_SETTINGS = ("mkdocs.yml", "mkdocs.yaml")


class MkDocs:
    """Built by the operator's `mkdocs`, with the themes and plugins that are installed beside it."""

    name = "mkdocs"

    def fits(self, tree: SourceTree) -> bool:
        """Whether the settings of the generator are there."""
        return not tree.files.keys().isdisjoint(_SETTINGS)

    def make(self, build_dir: BuildDir, token: CancelToken) -> Path:
        """Run the generator."""
        mkdocs = find_program("mkdocs")
        output = build_dir.path / ".output"
        env = {"PYTHONDONTWRITEBYTECODE": "1", "SOURCE_DATE_EPOCH": _this_year(), **search_path(mkdocs)}
        words = ["build", "--site-dir", str(output)]
        build_dir.run([mkdocs, *words], token, env=env, policy=SandboxPolicy(readable=files_of(mkdocs)))
        with suppress(FileExistsError):
            output.mkdir()
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
        """Always False: a project must name this builder."""
        return False

    def make(self, build_dir: BuildDir, token: CancelToken) -> Path:
        """Run the generator."""
        program = find_program(self._words[0])
        output = build_dir.path / ".output"
        output.mkdir()
        env = {OUTPUT: str(output), **search_path(program)}
        build_dir.run([program, *self._words[1:]], token, env=env, policy=SandboxPolicy(readable=files_of(program)))
        if not output.is_symlink() and output.is_dir() and any(output.iterdir()):
            return output
        return find_output(build_dir.path, build_dir.tree.files)


_SECONDS = 30.0
_PASSED_ON = ("PATH", "HOME")


@dataclass(frozen=True, slots=True)
class NpmRegistry:
    """Where packages come from. No key goes along: what a package would do with it is not known."""

    url: str
    authorities: str = ""
    files: tuple[Path, ...] = field(default=())

    @property
    def hosts(self) -> frozenset[str]:
        """The one host that an install may reach."""
        parts = urlsplit(self.url)
        return frozenset({f"{parts.hostname}:{parts.port or 443}"})

    @property
    def env(self) -> dict[str, str]:
        """Tells npm so; this wins over a site's own settings."""
        known = {"npm_config_registry": self.url}
        return known | ({"npm_config_cafile": self.authorities} if self.authorities else {})


def registry_of(npm: str) -> NpmRegistry:
    """Ask the operator's npm, away from any site; raises NotBuilt where the answer cannot be used."""
    env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    with tempfile.TemporaryDirectory(prefix="webordinary-") as nowhere:
        printed = run([npm, "config", "list", "--json"], cwd=Path(nowhere), env=env, seconds=_SECONDS)
    try:
        settings = json.loads(printed.out)
        url, authorities = str(settings["registry"]), settings.get("cafile") or ""
    except (ValueError, KeyError, TypeError) as problem:
        raise NotBuilt("npm does not tell which registry it uses.", mendable=False) from problem
    if urlsplit(url).scheme != "https" or not urlsplit(url).hostname:
        raise NotBuilt("npm is set to a registry without https, which installs cannot reach.", mendable=False)
    files = (Path(authorities),) if authorities and Path(authorities).is_file() else ()
    return NpmRegistry(url, str(authorities) if files else "", files)


@dataclass(frozen=True, slots=True)
class PackageManager:
    """A package manager: its lock file and its command to install."""

    name: str
    locks: tuple[str, ...]
    install: tuple[str, ...]
    no_scripts: tuple[str, ...] = ("--ignore-scripts",)
    env: tuple[tuple[str, str], ...] = ()
    cache: str = "npm_config_cache"
    """The variable that names its cache."""


MANAGERS = (
    PackageManager(
        "npm", ("package-lock.json", "npm-shrinkwrap.json"), ("ci", "--no-audit", "--no-fund", "--no-update-notifier")
    ),
    PackageManager(
        "pnpm", ("pnpm-lock.yaml",), ("install", "--frozen-lockfile"), cache="npm_config_store_dir",
        env=(("npm_config_manage_package_manager_versions", "false"), ("npm_config_package_import_method", "copy")),
    ),
    PackageManager(
        "yarn", ("yarn.lock",), ("install", "--frozen-lockfile", "--non-interactive"), cache="YARN_CACHE_FOLDER",
    ),
    PackageManager(
        "bun", ("bun.lock", "bun.lockb"), ("install", "--frozen-lockfile"), cache="BUN_INSTALL_CACHE_DIR"
    ),
)  # fmt: skip
YARN_2 = replace(
    MANAGERS[2], install=("install", "--immutable"), no_scripts=(),
    env=(("YARN_NODE_LINKER", "node-modules"), ("YARN_ENABLE_GLOBAL_CACHE", "false"), ("YARN_ENABLE_TELEMETRY", "0"),
         ("YARN_HTTPS_PROXY", "${HTTPS_PROXY}")),
)  # fmt: skip
"""Has other flags; `.yarnrc.yml` tells that a repository is written for it."""
LOCKS = tuple(lock for manager in MANAGERS for lock in manager.locks)


def manager_of(files: Container[str], wanted: str = "") -> PackageManager | None:
    """The package manager whose lock file is at the top; where several are the `wanted` one, else npm."""
    there = [one for one in MANAGERS if any(lock in files for lock in one.locks)]
    found = next((one for one in there if one.name == wanted), there[0] if there else None)
    return YARN_2 if found and found.name == "yarn" and ".yarnrc.yml" in files else found


def package_source(tree: SourceTree) -> SourceTree:
    """The site's folder; the whole repository if only its top has a lock file, as a workspace of packages has."""
    site = tree.site
    return tree if manager_of(site.files) is None and manager_of(tree.files) else site


MODULES = "node_modules"
KEPT_INSTALLS = 20
IN_USE_SECONDS = 7200.0
"""Longer than any job: what was used since may be in use still."""
_INPUTS = (*LOCKS, ".npmrc", ".yarnrc", "bunfig.toml")
_KINDS = (
    "dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "bundleDependencies",
    "overrides", "workspaces", "engines",
)  # fmt: skip
_OWN_PACKAGES = re.compile(r"\b(file|link|portal|workspace):|patch")
"""In a lock file of another manager than npm: packages that are part of the source."""
_INSTALL_BYTES = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Dependencies:
    """All installs below one folder. `scripts`: packages may run their install scripts, sandboxed."""

    folder: Path
    scripts: bool = False

    def provide(
        self, build_dir: BuildDir, package: dict[str, Any], manager: PackageManager, token: CancelToken
    ) -> tuple[Path, ...]:
        """Put `node_modules` into the build directory; returns what the build must be able to read for it."""
        if not build_dir.tree.project_id or build_dir.tree.folder or _has_own_packages(build_dir, manager):
            self._install(build_dir, build_dir.path, manager, token)
            return ()
        kept = self.folder / build_dir.tree.project_id / self._name(build_dir, package)
        if not (kept / MODULES).is_dir():
            self._install_and_keep(build_dir, kept, manager, token)
        else:
            build_dir.output.append(
                f"$ {manager.name} {manager.install[0]}\nthe same lock file was installed before: {kept.name[:12]}\n"
            )
        os.utime(kept)
        _link_packages(kept / MODULES, build_dir.path / MODULES)
        return (kept.resolve(),)

    def _name(self, build_dir: BuildDir, package: dict[str, Any]) -> str:
        """The name of an install: a digest of everything that it depends on."""
        node = Path(find_program("node")).stat()
        digest = hashlib.sha256()
        for name in _INPUTS:
            file = build_dir.path / name
            digest.update(file.read_bytes() if name in build_dir.tree.files else b"")
            digest.update(b"\0")
        relevant = package if self.scripts else {kind: package.get(kind) for kind in _KINDS}
        about = [relevant, self.scripts, node.st_size, int(node.st_mtime)]
        digest.update(json.dumps(about, sort_keys=True).encode())
        return digest.hexdigest()

    def _install_and_keep(self, build_dir: BuildDir, kept: Path, manager: PackageManager, token: CancelToken) -> None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.parent / f".new-{secrets.token_hex(6)}"
        fresh.mkdir()
        try:
            for name in ("package.json", *_INPUTS):
                if name in build_dir.tree.files:
                    shutil.copyfile(build_dir.path / name, fresh / name)
            self._install(build_dir, fresh, manager, token)
            if (fresh / MODULES).is_symlink():
                raise NotBuilt(f"An install script left a link in place of {MODULES}.")
            (fresh / MODULES).mkdir(exist_ok=True)
            os.sync()  # a power cut must not leave half an install under its final name
            if not kept.exists():
                fresh.rename(kept)
        except OSError as problem:
            if is_machine_fault(problem):
                raise
            if not kept.exists():
                raise NotBuilt(
                    f"What {manager.name} installed cannot be kept ({problem.strerror}).", mendable=False
                ) from problem
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        self._forget_old(time.time())

    def _install(self, build_dir: BuildDir, where: Path, manager: PackageManager, token: CancelToken) -> None:
        program, node, registry = find_program(manager.name), find_program("node"), registry_of(find_program("npm"))
        cache = where / ".npm-cache"
        scripts = () if self.scripts else manager.no_scripts
        readable = (*files_of(program, node), *registry.files)
        policy = SandboxPolicy(readable=readable, network=Network(hosts=registry.hosts, bytes=_INSTALL_BYTES))
        env = {**registry.env, **dict(manager.env), **search_path(node), manager.cache: str(cache)}
        if manager.name == "yarn":
            _use_registry(where / "yarn.lock", registry.url)
        if manager is YARN_2:
            env |= {"YARN_NPM_REGISTRY_SERVER": registry.url, "YARN_ENABLE_SCRIPTS": str(self.scripts).lower()}
            env |= {"YARN_HTTPS_CA_FILE_PATH": registry.authorities} if registry.authorities else {}
        try:
            build_dir.run([program, *manager.install, *scripts], token, env=env, policy=policy, cwd=where.resolve())
        finally:
            shutil.rmtree(cache, ignore_errors=True)

    def _forget_old(self, now: float) -> None:
        """Keep the latest used of all projects; what a killed worker left half-done goes too."""
        ages = {entry: now - entry.stat().st_mtime for entry in self.folder.glob("*/*")}
        by_age = sorted((entry for entry in ages if not entry.name.startswith(".")), key=ages.__getitem__)
        left = [entry for entry in ages if entry.name.startswith(".")]
        for entry in [*by_age[KEPT_INSTALLS:], *left]:
            if ages[entry] > IN_USE_SECONDS:
                shutil.rmtree(entry, ignore_errors=True)


_RESOLVED = re.compile(r'^(  resolved ")https?://[^/"]+/(?=[^"#]+/-/)', re.MULTILINE)


def _use_registry(lock: Path, registry: str) -> None:
    """Yarn fetches packages from where its lock file says; all come from the one registry that may be reached."""
    kept = lock.read_bytes().decode(errors="surrogateescape")
    moved = _RESOLVED.sub(lambda found: f"{found[1]}{registry.rstrip('/')}/", kept)
    lock.write_bytes(moved.encode(errors="surrogateescape"))


def _has_own_packages(build_dir: BuildDir, manager: PackageManager) -> bool:
    """Workspaces and `file:` packages are links into the source: such an install serves one build only."""
    lock = next(build_dir.path / name for name in manager.locks if name in build_dir.tree.files)
    if manager.name != "npm":
        text = lock.read_bytes().decode(errors="replace")
        return manager is YARN_2 or "pnpm-workspace.yaml" in build_dir.tree.files or bool(_OWN_PACKAGES.search(text))
    try:
        packages = json.loads(lock.read_bytes())["packages"]
        return any(isinstance(entry, dict) and entry.get("link") for entry in packages.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def _link_packages(kept: Path, modules: Path) -> None:
    modules.mkdir()
    for entry in kept.iterdir():
        if not entry.resolve().is_relative_to(kept.resolve()):  # an install script's way out of the sandbox
            continue
        if entry.name.startswith("@"):
            (modules / entry.name).mkdir()
            for package in entry.iterdir():
                (modules / entry.name / package.name).symlink_to(package.resolve())
        elif entry.name == ".bin" or not entry.name.startswith("."):
            (modules / entry.name).symlink_to(entry.resolve())


_PACKAGE = "package.json"
_NAMED_CHARACTERS = 100
_PACKAGE_BYTES, MAX_LOCK_BYTES = 1_000_000, 10_000_000
"""They are read in the worker's own process, where JSON takes up to 25 times its size."""
_ENV = {
    "ASTRO_TELEMETRY_DISABLED": "1",
    "NEXT_TELEMETRY_DISABLED": "1",
    "npm_config_update_notifier": "false",
    "npm_config_offline": "true",
}


class Npm:
    """An install by the committed lock file, such as `npm ci`, then `npm run build` without any network."""

    name = "npm"

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies

    def fits(self, tree: SourceTree) -> bool:
        """Whether package.json has a build script."""
        return _PACKAGE in tree.files and bool(_scripts(_read(tree.path / _PACKAGE)).get("build"))

    def make(self, build_dir: BuildDir, token: CancelToken) -> Path:
        """Install by the lock file, or use an earlier install of the same one; then build."""
        folder = build_dir.tree.folder
        home = build_dir.path / folder
        package = _read(home / _PACKAGE)
        if not _scripts(package).get("build"):
            raise NotBuilt("package.json has no build script.")
        manager = _manager_of(build_dir)
        npm, node = find_program("npm"), find_program("node")
        programs = [npm, node, *([find_program(manager.name)] if manager else [])]
        readable = (*files_of(*programs), *self._installed(build_dir, package, manager, token))
        env = {**_ENV, **search_path(*programs), "npm_config_cache": str(build_dir.path / ".npm-cache")}
        inside = ("--prefix", folder) if folder else ()
        build_dir.run([npm, "run", "build", *inside], token, env=env, policy=SandboxPolicy(readable=readable))
        return find_output(home, build_dir.tree.site.files)

    def _installed(
        self, build_dir: BuildDir, package: dict[str, Any], manager: PackageManager | None, token: CancelToken
    ) -> tuple[Path, ...]:
        if manager:
            lock = next(name for name in manager.locks if name in build_dir.tree.files)
            if (build_dir.path / lock).stat().st_size > MAX_LOCK_BYTES:
                raise NotBuilt(f"{lock} has more than {MAX_LOCK_BYTES // 1_000_000} MB: remove what is not needed.")
            return self._dependencies.provide(build_dir, package, manager, token)
        if any(package.get(kind) for kind in ("dependencies", "devDependencies")):
            words = (
                "There is no package-lock.json, nor a lock file of pnpm, yarn or bun: run `npm install` and commit it"
            )
            raise NotBuilt(f"{words}, so that every build is the same.")
        return ()


def _manager_of(build_dir: BuildDir) -> PackageManager | None:
    """`packageManager` decides between lock files. Its version is not installed: each build would have to fetch it."""
    named = " ".join(str(_read(build_dir.path / _PACKAGE).get("packageManager") or "")[:_NAMED_CHARACTERS].split())
    manager = manager_of(build_dir.tree.files, named.partition("@")[0])
    if named and manager:
        used = f"the {manager.name} of this machine is used, by its lock file"
        build_dir.output.append(f"package.json asks for {clean(named)}; {used}\n")
    return manager


def _read(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > _PACKAGE_BYTES:
            return {}
        package = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return package if isinstance(package, dict) else {}


def _scripts(package: dict[str, Any]) -> dict[str, Any]:
    scripts = package.get("scripts")
    return scripts if isinstance(scripts, dict) else {}
