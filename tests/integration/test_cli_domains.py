"""`webordinary project domain`: a site under a domain of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.embedded import EmbeddedHarness, open_harness
from webordinary.entrypoints.cli import main


def test_a_domain_is_added_with_the_record_for_its_dns_and_removed_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_harness(tmp_path / "data") as harness:
        data = ["--data", str(harness.services.config.data), "--json"]
        assert main(["project", "domain", "add", "amelia", "www.pottery.invalid", *data]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["dns"] == ["www.pottery.invalid.  CNAME  amelia.localhost."]
        assert domains_of(harness) == ("www.pottery.invalid",)
        assert main(["project", "domain", "add", "amelia", "edit.amelia.localhost", *data]) == 1
        assert "is a name of this server" in capsys.readouterr().err
        assert main(["project", "domain", "remove", "amelia", "www.pottery.invalid", *data]) == 0
        assert domains_of(harness) == ()


@pytest.mark.parametrize("wrong", ["nope", "10.0.0.1", "www.x"])
def test_a_name_that_no_visitor_can_reach_is_no_domain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: str
) -> None:
    with open_harness(tmp_path / "data") as harness:
        data = ["--data", str(harness.services.config.data)]
        assert main(["project", "domain", "add", "amelia", wrong, *data]) == 1
        assert f"{wrong} is no domain that visitors can reach" in capsys.readouterr().err
        assert domains_of(harness) == ()
        assert main(["project", "domain", "remove", "amelia", wrong, *data]) == 0, "as one kept by an earlier version"


def test_a_domain_that_was_not_added_is_said_so_and_localhost_is_to_be_named_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_harness(tmp_path / "data") as harness:
        data = ["--data", str(harness.services.config.data)]
        assert main(["project", "domain", "check", "amelia", "www.pottery.invalid", *data]) == 1
        assert "webordinary project domain add amelia www.pottery.invalid" in capsys.readouterr().err
        assert main(["project", "domain", "add", "amelia", "www.pottery.invalid", *data]) == 0
        assert main(["project", "domain", "check", "amelia", "www.pottery.invalid", *data]) == 0
        assert "first set `domain` to the server's own name" in capsys.readouterr().out


def domains_of(harness: EmbeddedHarness) -> tuple[str, ...]:
    project = harness.services.directory.project("amelia")
    assert project
    return project.domains
