"""Hugo and MkDocs sites, built for real in the jail."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.integration.builder_fixtures import Yard, source, yard
from webordinary.adapters.sandbox.bubblewrap import SandboxLimits
from webordinary.jobs.source import BuildFailed, Built

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.timeout(300)]
LAYOUT = "<!doctype html><title>{{ .Title }}</title><a href='{{ .Site.Home.RelPermalink }}'>home</a>{{ .Content }}"
HUGO = {
    "hugo.toml": 'baseURL = "https://pots.example/"\ntitle = "Pots"\n',
    "content/_index.md": "# Pots for every day\n",
    "content/about.md": "---\ntitle: About\n---\nThrown by hand.\n",
    "layouts/index.html": LAYOUT,
    "layouts/_default/single.html": LAYOUT,
    "layouts/_default/list.html": LAYOUT,
}
DOCS = {
    "mkdocs.yml": "site_name: Pots\ntheme:\n  name: mkdocs\n",
    "docs/index.md": "# Pots for every day\n",
    "docs/about.md": "# About\n\nThrown by hand.\n",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    monkeypatch.setenv("PATH", str(Path(sys.prefix, "bin")), prepend=":")
    return yard(tmp_path, limits=SandboxLimits(), seconds=120)


@pytest.mark.needs("hugo")
def test_a_hugo_site_is_built_for_any_host_name(place: Yard, tmp_path: Path) -> None:
    built = place.build(source(tmp_path / "tree", HUGO))
    assert isinstance(built, Built), built
    assert built.builder == "hugo"
    assert "Pots for every day" in (place.site / "index.html").read_text()
    about = (place.site / "about" / "index.html").read_text()
    assert "Thrown by hand." in about
    assert "pots.example" not in about


@pytest.mark.needs("hugo")
def test_a_broken_hugo_site_is_explained(place: Yard, tmp_path: Path) -> None:
    failed = place.build(source(tmp_path / "tree", {**HUGO, "layouts/index.html": "{{ .Nothing "}))
    assert isinstance(failed, BuildFailed)
    assert "index.html" in failed.log


@pytest.mark.needs("hugo")
def test_a_template_that_fetches_something_gets_nothing(place: Yard, tmp_path: Path) -> None:
    fetching = '{{ with resources.GetRemote "http://127.0.0.1:1/x" }}{{ with .Err }}no: {{ . }}{{ end }}{{ end }}'
    built = place.build(source(tmp_path / "tree", {**HUGO, "layouts/index.html": fetching}))
    assert isinstance(built, BuildFailed) or "no:" in (place.site / "index.html").read_text()


def test_a_mkdocs_site_is_built(place: Yard, tmp_path: Path) -> None:
    built = place.build(source(tmp_path / "tree", DOCS))
    assert isinstance(built, Built), built
    assert built.builder == "mkdocs"
    assert "Thrown by hand." in (place.site / "about" / "index.html").read_text()


def test_a_page_that_nobody_changed_is_built_the_same_by_mkdocs(place: Yard, tmp_path: Path) -> None:
    place.build(source(tmp_path / "tree", DOCS))
    assert re.search(r"Build Date UTC : \d+-01-01 00:00:00", (place.site / "index.html").read_text())


HOOK = """
import os, shutil
from pathlib import Path

def on_post_build(config):
    shutil.rmtree(config["site_dir"])
    os.symlink("{outside}", config["site_dir"])
"""


@pytest.mark.parametrize("is_there", [True, False])
def test_a_build_that_leaves_a_link_in_place_of_its_output_publishes_nothing_of_the_machine(
    place: Yard, tmp_path: Path, *, is_there: bool
) -> None:
    draft = tmp_path / "the draft of another customer"
    if is_there:
        draft.mkdir()
        (draft / "index.html").write_text("not public yet")
    files = {**DOCS, "mkdocs.yml": f"{DOCS['mkdocs.yml']}hooks: [hook.py]\n", "hook.py": HOOK.format(outside=draft)}
    failed = place.build(source(tmp_path / "tree", files))
    assert isinstance(failed, BuildFailed)
    assert "left a link in place of its output" in failed.reason
    assert place.all() == ()


def test_a_mkdocs_site_with_a_wrong_setting_is_explained(place: Yard, tmp_path: Path) -> None:
    failed = place.build(source(tmp_path / "tree", {**DOCS, "mkdocs.yml": "site_name: Pots\ntheme: nowhere\n"}))
    assert isinstance(failed, BuildFailed)
    assert "nowhere" in failed.log
