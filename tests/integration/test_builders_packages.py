"""Sites of other package managers than npm, and packages of a workspace: installed by their lock files, in the jail."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.integration.builders_world import Yard, source, yard
from webordinary.adapters.sandbox.bubblewrap import SandboxLimits
from webordinary.jobs.source import BuildFailed, Built
from webordinary.model.projects import Project

pytestmark = [pytest.mark.needs("node", "npm", "bwrap"), pytest.mark.xdist_group("npm"), pytest.mark.timeout(600)]
MANAGERS = ("pnpm@9.15.9", "yarn@1.22.22", "bun@1.2.0", "npm@10.9.0")
BUILD = (
    'const fs = require("fs"); fs.mkdirSync("dist"); '
    'fs.writeFileSync("dist/index.html", "odd: " + require("is-odd")(3));'
)
PACKAGE = json.dumps({
    "name": "site", "private": True, "scripts": {"build": "node build.js"}, "dependencies": {"is-odd": "3.0.1"},
})  # fmt: skip
NUMBER = "sha512-Wu1VHeILBK8KAWJUAiSZQX94GmOE45Rg6/538fKwiloUu21KncEkYGPqob2oSZ5mUT73vLGrHQjKw3KMPwfDzg=="
ODD = "sha512-CQpnWPrDwmP1+SMHXZhtLtJv90yiyVfluGsX5iNCVkrhQtU3TQHsUWPG9wkdk9Lgd5yNpAg9jQEo90CBaXgWMA=="
LOCK_FILES = {
    "pnpm-lock.yaml": f"""lockfileVersion: '9.0'
settings: {{autoInstallPeers: true, excludeLinksFromLockfile: false}}
importers:
  .:
    dependencies:
      is-odd: {{specifier: 3.0.1, version: 3.0.1}}
packages:
  is-number@6.0.0: {{resolution: {{integrity: {NUMBER}}}}}
  is-odd@3.0.1: {{resolution: {{integrity: {ODD}}}}}
snapshots:
  is-number@6.0.0: {{}}
  is-odd@3.0.1:
    dependencies: {{is-number: 6.0.0}}
""",
    "yarn.lock": f"""# yarn lockfile v1
is-number@^6.0.0:
  version "6.0.0"
  resolved "https://packages.example/is-number/-/is-number-6.0.0.tgz#e6d15ad31fc262887cccf217ae5f9316f81b1995"
  integrity {NUMBER}
is-odd@3.0.1:
  version "3.0.1"
  resolved "https://packages.example/is-odd/-/is-odd-3.0.1.tgz#65101baf3727d728b66fa62f50cda7f2d3989601"
  integrity {ODD}
  dependencies:
    is-number "^6.0.0"
""",
    "bun.lock": json.dumps({
        "lockfileVersion": 1, "workspaces": {"": {"name": "site", "dependencies": {"is-odd": "3.0.1"}}},
        "packages": {
            "is-number": ["is-number@6.0.0", "", {}, NUMBER],
            "is-odd": ["is-odd@3.0.1", "", {"dependencies": {"is-number": "^6.0.0"}}, ODD],
        },
    }),
}  # fmt: skip


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Node prefix with all package managers, as `npm install --global` makes it."""
    prefix = tmp_path_factory.mktemp("managers")
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--global", "--prefix", str(prefix), *MANAGERS]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return prefix / "bin"


@pytest.fixture
def place(tmp_path: Path) -> Yard:
    return yard(tmp_path, limits=SandboxLimits(), seconds=300)


@pytest.mark.parametrize("lock", LOCK_FILES)
def test_packages_are_installed_by_the_lock_file_that_is_there_and_kept_for_the_next_build(
    lock: str, place: Yard, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    files = {"package.json": PACKAGE, "build.js": BUILD, lock: LOCK_FILES[lock]}
    first = place.build(source(tmp_path / "tree", files))
    assert isinstance(first, Built), first
    assert (place.site / "index.html").read_text() == "odd: true"
    second = place.build(source(tmp_path / "tree", files | {"build.js": BUILD.replace("odd:", "odder:")}))
    assert isinstance(second, Built), second
    assert (place.site / "index.html").read_text() == "odder: true"
    assert "installed before" in second.log


def test_a_lock_file_that_does_not_fit_is_refused_and_not_brought_up_to_date(
    place: Yard, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    other = PACKAGE.replace("3.0.1", "3.0.0")
    files = {"package.json": other, "build.js": BUILD, "pnpm-lock.yaml": LOCK_FILES["pnpm-lock.yaml"]}
    failed = place.build(source(tmp_path / "tree", files))
    assert isinstance(failed, BuildFailed)
    assert "frozen-lockfile" in failed.log


def test_a_package_manager_that_is_missing_is_named(
    place: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    files = {"package.json": PACKAGE, "build.js": BUILD, "bun.lock": LOCK_FILES["bun.lock"]}
    failed = place.build(source(tmp_path / "tree", files))
    assert isinstance(failed, BuildFailed)
    assert failed.reason == "bun is not installed on the machine that builds this site."
    assert not failed.mendable


def test_a_site_in_a_folder_is_built_with_the_packages_of_its_workspace(place: Yard, tmp_path: Path) -> None:
    lock = {"name": "all", "lockfileVersion": 3, "packages": {
        "": {"name": "all", "workspaces": ["apps/*", "packages/*"]},
        "apps/web": {"name": "web", "dependencies": {"words": "*"}},
        "packages/words": {"name": "words", "version": "1.0.0"},
        "node_modules/web": {"resolved": "apps/web", "link": True},
        "node_modules/words": {"resolved": "packages/words", "link": True},
    }}  # fmt: skip
    files = {
        "package.json": json.dumps({"name": "all", "private": True, "workspaces": ["apps/*", "packages/*"]}),
        "package-lock.json": json.dumps(lock),
        "packages/words/package.json": json.dumps({"name": "words", "version": "1.0.0", "main": "words.js"}),
        "packages/words/words.js": 'module.exports = "from the workspace";',
        "apps/web/package.json": json.dumps({
            "name": "web", "scripts": {"build": "node build.js"}, "dependencies": {"words": "*"},
        }),
        "apps/web/build.js": BUILD.replace('require("is-odd")(3)', 'require("words")'),
        "index.html": "not this one",
    }  # fmt: skip
    tree = source(tmp_path / "tree", files).of(Project("amelia", "repo", folder="apps/web"))
    built = place.build(tree)
    assert isinstance(built, Built), built
    assert (place.site / "index.html").read_text() == "odd: from the workspace"
