"""npm sites for real: an Astro 5 site from the package registry, in the jail, by its committed lock file."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.integration.builder_fixtures import DATA, Yard, source, tracked, yard
from webordinary.adapters.sandbox.bubblewrap import SandboxLimits
from webordinary.jobs.source import BuildFailed, Built

pytestmark = [pytest.mark.needs("node", "npm", "bwrap"), pytest.mark.xdist_group("npm"), pytest.mark.timeout(900)]
SAMPLE = DATA / "astro-site"
COUNTING = (
    'const fs = require("fs"); fs.mkdirSync("dist"); fs.writeFileSync("dist/index.html", "made by " + process.version);'
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("npm-cache")


@pytest.fixture
def place(tmp_path: Path, cache: Path) -> Yard:
    return yard(tmp_path, cache=cache, limits=SandboxLimits(), seconds=600)


def package(**more: object) -> str:
    return json.dumps({"name": "site", "private": True, "scripts": {"build": "node build.js"}, **more})


def test_no_registry_address_stands_in_the_samples_lock_file() -> None:
    lock = json.loads((SAMPLE / "package-lock.json").read_text())
    assert not [name for name, entry in lock["packages"].items() if "resolved" in entry]
    assert "omit-lockfile-registry-resolved=true" in (SAMPLE / ".npmrc").read_text()


def test_an_astro_site_is_installed_once_and_built_with_each_change(place: Yard, cache: Path, tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "tree")
    first = place.build(tracked(tmp_path / "tree"))
    assert isinstance(first, Built), first
    assert (first.builder, first.files) == ("npm", 3)
    assert "Pots for every day" in (place.site / "index.html").read_text()
    assert "throws every pot by hand" in (place.site / "about" / "index.html").read_text()
    assert "npm ci" in first.log
    assert str(tmp_path) not in first.log
    [installed] = cache.glob("amelia/*")

    page = tmp_path / "tree" / "src" / "pages" / "index.astro"
    page.write_text(page.read_text().replace("Pots for every day", "Spring Sale"))
    before = place.site
    second = place.build(tracked(tmp_path / "tree"))
    assert isinstance(second, Built), second
    assert "<h1>Spring Sale</h1>" in (place.site / "index.html").read_text()
    assert (place.site / "about" / "index.html").samefile(before / "about" / "index.html")
    assert list(cache.glob("amelia/*")) == [installed]
    assert "installed before" in second.log

    page.write_text("---\nimport Nothing from './Nothing.astro';\n---\n<Nothing/>\n")
    broken = place.build(tracked(tmp_path / "tree"))
    assert isinstance(broken, BuildFailed)
    assert "Nothing.astro" in broken.log
    assert "<h1>Spring Sale</h1>" in (place.site / "index.html").read_text()


def test_a_build_cannot_change_what_the_next_one_uses(place: Yard, cache: Path, tmp_path: Path) -> None:
    kept = tmp_path / "lock"
    lock = json.dumps({"name": "site", "lockfileVersion": 3, "packages": {"": {"name": "site"}}})
    planting = 'require("fs").writeFileSync(process.env.KEPT + "/planted", "x");' + COUNTING
    tree = source(kept, {"package.json": package(), "package-lock.json": lock, "build.js": COUNTING})
    assert isinstance(place.build(tree), Built)
    [installed] = [entry for entry in cache.glob("amelia/*") if not (entry / "node_modules" / "astro").exists()]
    (kept / "build.js").write_text(planting.replace("process.env.KEPT", json.dumps(str(installed / "node_modules"))))
    assert isinstance(place.build(tracked(kept)), BuildFailed)
    assert not (installed / "node_modules" / "planted").exists()


def test_dependencies_without_a_lock_file_are_refused_in_words(place: Yard, tmp_path: Path) -> None:
    tree = source(tmp_path / "tree", {"package.json": package(dependencies={"astro": "*"}), "build.js": COUNTING})
    refused = place.build(tree)
    assert isinstance(refused, BuildFailed)
    assert "package-lock.json" in refused.reason


def test_packages_that_find_no_space_are_waited_for(
    place: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = json.dumps({"name": "spacious", "lockfileVersion": 3, "packages": {"": {"name": "spacious"}}})
    files = {"package.json": package(), "package-lock.json": lock, "build.js": COUNTING}
    with monkeypatch.context() as full:
        full.setattr(os, "sync", no_space)
        with pytest.raises(OSError, match="No space"):
            place.build(source(tmp_path / "tree", files))
    assert isinstance(place.build(source(tmp_path / "again", files)), Built)


def no_space() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_install_scripts_of_the_site_do_not_run(place: Yard, tmp_path: Path) -> None:
    lock = json.dumps({"name": "other", "lockfileVersion": 3, "packages": {"": {"name": "other"}}})
    scripts = {"build": "node build.js", "postinstall": "echo x > postinstalled", "preinstall": "exit 9"}
    tree = source(
        tmp_path / "tree", {"package.json": package(scripts=scripts), "package-lock.json": lock, "build.js": COUNTING}
    )
    assert isinstance(place.build(tree), Built)


def test_no_site_shapes_the_packages_of_another_by_its_install_scripts(cache: Path, tmp_path: Path) -> None:
    poison = """mkdir -p node_modules/shared && echo 'module.exports = "poisoned"' > node_modules/shared/index.js"""
    lock = json.dumps({"name": "site", "lockfileVersion": 3, "packages": {"": {"name": "site"}}})
    asks = 'let got = "clean"; try { got = require("shared") } catch {}' + COUNTING.replace("process.version", "got")
    sites = {"attacker": {"build": "node build.js", "postinstall": poison}, "victim": {"build": "node build.js"}}
    shown = {}
    for name, scripts in sites.items():
        files = {"package.json": package(scripts=scripts), "package-lock.json": lock, "build.js": asks}
        place = yard(tmp_path / name, cache=cache, limits=SandboxLimits(), seconds=600, scripts=True)
        place.project_id = name
        assert isinstance(place.build(source(tmp_path / name / "tree", files)), Built)
        shown[name] = (place.site / "index.html").read_text()
    assert shown == {"attacker": "made by poisoned", "victim": "made by clean"}
    assert {path.parent.name for path in cache.glob("*/*")} >= set(sites)


@pytest.mark.parametrize("in_place_of_all", [True, False])
def test_a_link_of_an_install_script_lists_no_folder_of_the_machine(
    cache: Path, tmp_path: Path, *, in_place_of_all: bool
) -> None:
    outside = tmp_path / "outside"
    (outside / "a-customer").mkdir(parents=True)
    script = (
        f"mkdir -p node_modules/real && ln -s '{outside}' node_modules/@evil && ln -s '{outside}' node_modules/evil"
    )
    lock = json.dumps({"name": "linking", "lockfileVersion": 3, "packages": {"": {"name": "linking"}}})
    told = (
        'let got = []; for (const f of ["", "/@evil"]) try { got.push(...fs.readdirSync("node_modules" + f)) } catch {}'
    )
    build = (
        'const fs = require("fs"); '
        + told
        + COUNTING.replace('const fs = require("fs");', "").replace("process.version", "got.join()")
    )
    if in_place_of_all:
        script = f"rm -rf node_modules; ln -s '{outside}' node_modules"
    scripts = {"build": "node build.js", "postinstall": script}
    files = {"package.json": package(scripts=scripts), "package-lock.json": lock, "build.js": build}
    place = yard(tmp_path, cache=cache, limits=SandboxLimits(), seconds=600, scripts=True)
    built = place.build(source(tmp_path / "tree", files))
    if in_place_of_all:
        assert isinstance(built, BuildFailed)
        assert "left a link in place of node_modules" in built.reason
    else:
        assert (place.site / "index.html").read_text() == "made by real"


def test_a_build_has_no_network(place: Yard, tmp_path: Path) -> None:
    script = (
        'require("net").connect(443, "192.0.2.1").on("error", e => { console.log(e.code); process.exit(7) })'
        '.on("connect", () => process.exit(0))'
    )
    failed = place.build(source(tmp_path / "tree", {"package.json": package(), "build.js": script}))
    assert isinstance(failed, BuildFailed)
    assert "ENETUNREACH" in failed.log


@pytest.mark.parametrize(
    ("lock", "words"),
    [(" " * 10_000_001, "package-lock.json has more than 10 MB"), ("[" * 100_000, "npm ended with an error")],
    ids=["large", "deep"],
)
def test_a_lock_file_that_fills_memory_is_refused_in_words(place: Yard, tmp_path: Path, lock: str, words: str) -> None:
    built = place.build(source(tmp_path / "tree", {"package.json": package(), "package-lock.json": lock}))
    assert isinstance(built, BuildFailed)
    assert words in built.reason


def test_a_package_file_of_brackets_is_no_npm_site(place: Yard, tmp_path: Path) -> None:
    built = place.build(source(tmp_path / "tree", {"package.json": "[" * 100_000, "index.html": "x"}))
    assert isinstance(built, Built)
    assert built.builder == "plain"


def test_a_package_without_a_build_script_is_no_npm_site(place: Yard, tmp_path: Path) -> None:
    tree = source(tmp_path / "tree", {"package.json": "{}", "index.html": "plain"})
    built = place.build(tree)
    assert isinstance(built, Built)
    assert built.builder == "plain"
