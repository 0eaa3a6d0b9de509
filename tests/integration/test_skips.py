"""What tests/conftest.py asks of tests: skips as pytest counts them here and in CI, and one order in all processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest
from tests.extras import needs_extra

@pytest.mark.needs("no-such-program")
def test_of_a_program() -> None: ...

def test_of_a_package() -> None:
    needs_extra("no_such_package", "aws")

@pytest.mark.may_skip(True, reason="it stands elsewhere")
def test_that_may_skip() -> None:
    pytest.skip("not here")

@pytest.mark.may_skip(False, reason="it stands elsewhere")
def test_that_may_skip_elsewhere_only() -> None:
    pytest.skip("not here")

@pytest.mark.xfail
def test_of_a_known_fault() -> None:
    raise AssertionError
"""
MODULE = """
from tests.extras import needs_extra
needs_extra("no_such_package", "aws")
"""


def counted(folder: Path, text: str, ci: str) -> str:
    """The last line of pytest, and before it what it says of the failures."""
    (folder / "test_some.py").write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        str(ROOT / "pyproject.toml"),
        "-p",
        "tests.conftest",
        "--rootdir",
        str(folder),
    ]
    ran = subprocess.run(
        [*command, "-p", "no:xdist", "-rf", str(folder)],
        cwd=ROOT, env=os.environ | {"CI": ci}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    return ran.stdout


@pytest.mark.parametrize(
    ("ci", "counts"), [("", "4 skipped, 1 xfailed"), ("true", "2 failed, 1 skipped, 1 xfailed, 1 error")]
)
def test_a_test_without_its_program_or_package_is_skipped_and_fails_in_ci(tmp_path: Path, ci: str, counts: str) -> None:
    said = counted(tmp_path, TESTS, ci)
    assert counts in said
    assert ("Skipped: no-such-program not installed; in CI nothing may be missing" in said) is (ci == "true")


@pytest.mark.parametrize(("ci", "counts"), [("", "1 skipped"), ("true", "1 error")])
def test_a_file_without_its_package_is_skipped_and_fails_in_ci(tmp_path: Path, ci: str, counts: str) -> None:
    assert counts in counted(tmp_path, MODULE, ci)


def test_values_in_the_order_of_a_set_are_refused_where_they_are_collected(tmp_path: Path) -> None:
    text = "import pytest\n@pytest.mark.parametrize('one', {'a', 'b'})\ndef test_of_it(one: str) -> None: ...\n"
    said = counted(tmp_path, text, "")
    assert "the values of one are a set: sort them" in said
    assert "1 error" in said
