"""The wheel: what an index page shows of it, and the files that the program needs beside its modules."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert built.returncode == 0, built.stderr
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_the_index_page_of_the_wheel_has_links_that_work_there(wheel: zipfile.ZipFile) -> None:
    name = next(name for name in wheel.namelist() if name.endswith("METADATA"))
    metadata = email.message_from_bytes(wheel.read(name))
    targets = re.findall(r"\]\(([^)]+)\)", metadata.get_payload())  # type: ignore[arg-type]
    assert len(targets) > 10
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    linked = {re.sub(r".*/main/", "", target).partition("#")[0] for target in targets if "/main/" in target}
    assert [path for path in linked if not (ROOT / path).exists()] == []


def test_the_wheel_says_who_made_it_for_what_and_under_which_licence(wheel: zipfile.ZipFile) -> None:
    name = next(name for name in wheel.namelist() if name.endswith("METADATA"))
    metadata = email.message_from_bytes(wheel.read(name))
    assert metadata["License-Expression"] == "MIT"
    assert {line.partition(",")[0] for line in metadata.get_all("Project-URL", [])} >= {"Homepage", "Documentation"}
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])


def test_the_wheel_holds_every_file_that_the_package_reads(wheel: zipfile.ZipFile) -> None:
    beside = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src/webordinary").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert beside <= set(wheel.namelist())
