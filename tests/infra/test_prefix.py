"""Two deployments in one account: staging stands beside production, and neither names what is the other's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.infra.templates import StackTemplates
from webordinary.adapters.aws import names
from webordinary.model.errors import InvalidName

pytestmark = pytest.mark.xdist_group("infra")

ROOT = Path(__file__).parents[2]
SYNTHESISE = """
import sys
from pathlib import Path
from tests.infra.templates import synthesise
synthesise(Path(sys.argv[1]))
"""
NO_NAME = re.compile(r'"CMD",\s*"webordinary"|webordinary\.entrypoints[\w.]*')
"""The program and its modules; `.webordinary/` are the manifests of sites."""


def test_a_second_deployment_shares_no_name_with_the_first(cloud: StackTemplates, tmp_path: Path) -> None:
    environment = {**os.environ, names.PREFIX_VARIABLE: "staging", "PYTHONPATH": str(ROOT)}
    done = [sys.executable, "-c", SYNTHESISE, str(tmp_path)]
    subprocess.run(done, cwd=ROOT, env=environment, check=True, capture_output=True, timeout=300)
    templates = sorted((tmp_path / "out").glob("*.template.json"))
    assert len(templates) == len(cloud.stacks)
    for template in templates:
        text = NO_NAME.sub("", template.read_text())
        assert re.findall(r".{0,60}(?<!\.)\bwebordinary.{0,40}", text) == [], template.name
        assert re.findall(r"(?<!staging-)email-processor.{0,40}", text) == [], template.name
    for told in ("lambdas", "workers"):  # what runs there names the same
        assert names.PREFIX_VARIABLE in (tmp_path / "out" / f"{told}.template.json").read_text()


def test_the_usual_names_are_those_of_the_first_system() -> None:
    assert names.prefix_in({}) == names.prefix_in({names.PREFIX_VARIABLE: ""}) == "webordinary"
    assert (names.STATE_MACHINE, names.CLUSTER) == ("email-processor", "webordinary-edit-cluster")


@pytest.mark.parametrize("prefix", ["webordinary-two", "Staging", "2nd", "a" * 17, "x y"])
def test_a_prefix_that_might_begin_anothers_names_is_refused(prefix: str) -> None:
    """Rights are given by the beginning of names: `webordinary-*` would reach `webordinary-two-…`."""
    with pytest.raises(InvalidName, match=names.PREFIX_VARIABLE):
        names.prefix_in({names.PREFIX_VARIABLE: prefix})


def test_a_prefix_that_cannot_be_used_is_told_in_one_line() -> None:
    environment = {**os.environ, names.PREFIX_VARIABLE: "Staging-2"}
    words = [sys.executable, "-m", "webordinary", "--version"]
    told = subprocess.run(words, env=environment, check=False, capture_output=True, text=True, timeout=60)
    assert told.returncode == 2
    what = "WEBORDINARY_AWS_PREFIX is 'Staging-2': use a letter and up to 15 of a-z and 0-9"
    assert told.stderr == f"webordinary: {what}\n"
