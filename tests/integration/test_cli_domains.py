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


def domains_of(harness: EmbeddedHarness) -> tuple[str, ...]:
    project = harness.services.directory.project("amelia")
    assert project
    return project.domains
