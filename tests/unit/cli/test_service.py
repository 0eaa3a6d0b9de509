"""The systemd unit of `webordinary service install`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from webordinary.entrypoints.cli.service import unit_of


def test_the_service_has_a_user_of_its_own_no_capabilities_and_a_closed_data_folder() -> None:
    lines = unit_of(Path("/opt/webordinary/bin/webordinary")).splitlines()
    for line in (
        "User=webordinary",
        "CapabilityBoundingSet=",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "StateDirectoryMode=0700",
        "ExecStart=/opt/webordinary/bin/webordinary up --no-sample",
    ):
        assert line in lines


def test_a_program_in_a_home_stays_readable() -> None:
    assert "ProtectHome=read-only" in unit_of(Path("/home/op/.local/bin/webordinary")).splitlines()


@pytest.mark.needs("systemd-analyze")
def test_systemd_finds_no_fault_in_the_unit(tmp_path: Path) -> None:
    program = tmp_path / "webordinary"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "webordinary.service"
    unit.write_text(unit_of(program))
    ran = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
