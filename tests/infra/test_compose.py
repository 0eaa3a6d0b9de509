"""compose.yaml and its overlay: what docs/server.md promises of a container, in words of the Compose specification."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from webordinary.config import setting_of


def service_of(file: Path) -> dict[str, Any]:
    [service] = yaml.safe_load(file.read_text())["services"].values()
    assert isinstance(service, dict)
    return service


@pytest.fixture
def server(repository_root: Path) -> dict[str, Any]:
    return service_of(repository_root / "compose.yaml")


def test_every_variable_of_the_container_is_a_setting_and_those_without_a_default_are_asked_for(
    server: dict[str, Any],
) -> None:
    given = server["environment"]
    for name in given:
        assert setting_of(name.removeprefix("WEBORDINARY_").lower()), name
    asked_for = {name for name, value in given.items() if value.startswith("${" + name + ":?")}
    assert asked_for == {"WEBORDINARY_PUBLIC_URL", "WEBORDINARY_DOMAIN", "WEBORDINARY_MAILBOX"}


def test_data_is_in_one_volume_and_only_the_proxy_of_the_machine_reaches_the_ports(
    server: dict[str, Any], repository_root: Path
) -> None:
    whole = yaml.safe_load((repository_root / "compose.yaml").read_text())
    assert list(whole["volumes"]) == ["data"]
    assert server["volumes"] == ["data:/work"]
    assert "VOLUME /work" in (repository_root / "Dockerfile").read_text()
    assert [port.split(":")[0] for port in server["ports"]] == ["127.0.0.1"] * 2
    [network] = whole["networks"]["webordinary"]["ipam"]["config"]
    assert server["environment"]["WEBORDINARY_TRUSTED_PROXIES"].endswith(f":-{network['gateway']}}}")


def test_it_has_no_rights_but_those_of_its_overlay_for_jails(server: dict[str, Any], repository_root: Path) -> None:
    assert (server["read_only"], server["cap_drop"]) == (True, ["ALL"])
    assert server["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "user", "network_mode", "pid", "devices"} & set(server)
    overlay = service_of(repository_root / "compose.jail.yaml")
    assert list(overlay) == ["security_opt"]
    assert overlay["security_opt"][0] == "no-new-privileges:true"
    assert "Price:" in (repository_root / "compose.jail.yaml").read_text(), "its reasons are told"


def test_a_stop_waits_as_long_as_the_service_needs(server: dict[str, Any]) -> None:
    assert int(server["stop_grace_period"].removesuffix("s")) >= 150
