"""Which modules a command loads: a short one must not wait for what only others need."""

from __future__ import annotations

import subprocess
import sys

import pytest

from webordinary.entrypoints.cli.main import COMMANDS, main

LOADED = """
import sys
from webordinary.entrypoints.cli.main import parser
for command in sys.argv[1:]:
    parser(command)
print(*sys.modules)
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_is_found_where_it_is_declared(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: webordinary {command} ")


def test_a_flag_before_the_command_hides_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--data", "up", "resume", "--help"])
    assert capsys.readouterr().out.startswith("usage: webordinary resume ")


def test_short_commands_load_neither_engine_nor_worker_nor_page() -> None:
    words = [sys.executable, "-c", LOADED, "status", "send", "dlq"]
    loaded = set(subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout.split())
    assert "webordinary.compose.backends" in loaded
    assert not loaded & {"jsonpath", "starlette", "asyncio", "webordinary.worker.worker", "webordinary.asl.engine"}
