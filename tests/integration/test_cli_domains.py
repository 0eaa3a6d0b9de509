"""`webordinary project domain`: a site under a domain of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.harness.console import open_console
from tests.harness.embedded import EmbeddedHarness, open_harness
from webordinary.compose.embedded import EmbeddedContainer, open_embedded
from webordinary.compose.worker import site_kit
from webordinary.config import Config
from webordinary.entrypoints.cli import main
from webordinary.entrypoints.dashboard.ports import EventFeed
from webordinary.jobs.site_files import Stage
from webordinary.operations import onboarding, site_settings


def test_a_domain_is_added_with_the_record_for_its_dns_and_removed_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_harness(tmp_path / "data") as harness:
        data = ["--data", str(harness.services.config.data), "--json"]
        assert main(["project", "domain", "add", "amelia", "www.pottery.invalid", *data]) == 1
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
        for action in ("add", "check"):
            assert main(["project", "domain", action, "amelia", "www.pottery.invalid", *data]) == 1
            assert "first set `domain` to the server's own name" in capsys.readouterr().out


def test_a_domain_may_be_added_before_its_dns_is_set_and_a_check_fails_until_then(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data", str(tmp_path / "data")]
    with open_embedded(Config(data=tmp_path / "data", domain="pottery.invalid")) as services:
        onboarding.ensure_sample(services)
    assert main(["project", "domain", "add", "amelia", "www.kiln.invalid", *data]) == 1, "its name is localhost"
    (tmp_path / "data" / "webordinary.toml").write_text('domain = "pottery.invalid"\n')
    assert main(["project", "domain", "add", "amelia", "www.kiln.invalid", *data]) == 0
    assert "It is kept and waits" in capsys.readouterr().out
    assert main(["project", "domain", "check", "amelia", "www.kiln.invalid", *data]) == 1


SITE, OWN = "amelia.pottery.example", "www.kiln.example"
HERE, ELSEWHERE = frozenset({"192.0.2.1"}), frozenset({"198.51.100.9"})


@pytest.fixture
def dns() -> dict[str, frozenset[str]]:
    return {SITE: HERE}


@pytest.fixture
def server(tmp_path: Path, dns: dict[str, frozenset[str]]) -> Iterator[EmbeddedContainer]:
    class Server(EmbeddedContainer):
        addresses_of = staticmethod(lambda host: dns.get(host, frozenset()))

    with ExitStack() as closing:
        services = Server(Config(data=tmp_path / "data", domain="pottery.example"), closing)
        onboarding.ensure_sample(services)
        yield services


def linked(services: EmbeddedContainer, home: Path) -> str:
    """The host of the public site in the replies to its owners."""
    return urlsplit(site_kit(services, "worker", home).site_url("amelia", Stage.PUBLIC)).hostname or ""


def test_a_domain_that_does_not_lead_here_is_in_no_link_until_a_check_has_found_that_it_does(
    server: EmbeddedContainer, dns: dict[str, frozenset[str]], tmp_path: Path
) -> None:
    assert not site_settings.add_domain(server, "amelia", OWN).points_here
    assert linked(server, tmp_path) == SITE
    dns[OWN] = HERE
    assert site_settings.look_at_domain(server, "amelia", OWN).points_here
    assert linked(server, tmp_path) == OWN
    dns[OWN] = ELSEWHERE
    assert not site_settings.look_at_domain(server, "amelia", OWN).points_here
    assert linked(server, tmp_path) == SITE
    with open_console(server) as page:
        text = page.get("/sites/amelia").text
    assert "waits for its DNS" in text
    assert f'href="http://{OWN}' not in text


def test_a_domain_that_leads_here_when_it_is_added_is_linked_at_once(
    server: EmbeddedContainer, dns: dict[str, frozenset[str]], tmp_path: Path
) -> None:
    dns[OWN] = HERE
    assert site_settings.add_domain(server, "amelia", OWN).points_here
    assert linked(server, tmp_path) == OWN
    with open_console(server) as page:
        assert "waits for its DNS" not in page.get("/sites/amelia").text


def test_waiting_domains_are_checked_one_after_the_other_until_they_lead_here(
    server: EmbeddedContainer, dns: dict[str, frozenset[str]], tmp_path: Path
) -> None:
    for name in ("a.example", "b.example", OWN):
        site_settings.add_domain(server, "amelia", name)
    dns[OWN] = HERE
    waiting = site_settings.WaitingDomains(server)
    for _ in range(2):
        assert waiting.run_once(server.clock.now()) == 1
        assert linked(server, tmp_path) == SITE
    assert waiting.run_once(server.clock.now()) == 1
    assert linked(server, tmp_path) == OWN
    for name in ("a.example", "b.example"):
        site_settings.remove_domain(server, "amelia", name)
    assert waiting.run_once(server.clock.now()) == 0


def domains_of(harness: EmbeddedHarness) -> tuple[str, ...]:
    project = harness.services.directory.project("amelia")
    assert project
    return project.domains


def test_a_running_server_checks_waiting_domains_by_itself(server: EmbeddedContainer) -> None:
    with ExitStack() as closing:
        duties = [duty.name for duty in server.background(closing, EventFeed())]
    assert site_settings.WaitingDomains.name in duties
