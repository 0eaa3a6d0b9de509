"""The docs build as a site, and the builder refuses a broken link."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _build(root: Path, into: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(into)]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=200, check=False)


def test_the_docs_build_as_a_site_without_a_broken_link(tmp_path: Path) -> None:
    built = _build(ROOT, tmp_path / "site")
    assert built.returncode == 0, built.stderr
    start = (tmp_path / "site/index.html").read_text()
    assert 'href="architecture.html"' in start
    assert "/blob/main/CONTRIBUTING.md" in start
    assert (tmp_path / "site/decisions/index.html").exists()
    assert not list((tmp_path / "site").rglob("*.py"))


def test_a_broken_link_fails_the_build_of_the_docs(tmp_path: Path) -> None:
    for name in ("docs", "mkdocs.yml", "README.md"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    page = tmp_path / "docs/states.md"
    page.write_text(page.read_text() + "\n[gone](nowhere.md)\n")
    assert "nowhere.md" in _build(tmp_path, tmp_path / "site").stderr
