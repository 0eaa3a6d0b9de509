"""`webordinary agent test`, as an operator runs it."""

from __future__ import annotations

import json

import pytest

from tests.extras import needs_extra
from webordinary.adapters.sandbox.bubblewrap import python
from webordinary.entrypoints.cli.main import main
from webordinary.entrypoints.cli.output import Exit

pytestmark = pytest.mark.needs("bwrap")


def test_the_builtin_agent_needs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "test", "--agent", "builtin"]) == Exit.OK
    told = capsys.readouterr().out
    assert told.startswith("it works: the agent builtin changed the page as asked, in ")
    assert "does simple wishes only" in told


def test_any_program_can_be_tried(capsys: pytest.CaptureFixture[str]) -> None:
    program = "import re; p = open('index.html').read(); open('index.html', 'w').write(p.replace('Before', 'It works'))"
    command = ["agent", "test", "--agent", "command", "--agent-command", f'{python()} -c "{program}"', "--json"]
    assert main(command) == Exit.OK
    assert json.loads(capsys.readouterr().out)["ok"] is True


def test_an_agent_that_does_something_else_fails_the_test(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "test", "--agent", "command", "--agent-command", "echo hello"]) == Exit.FAILED
    told = capsys.readouterr().out
    assert "not as it was asked for: the agent command ran, and says that it is done" in told
    assert "try again, then another --agent-model or --agent" in told


def test_claude_can_be_tried_without_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    needs_extra("claude_agent_sdk", "claude")
    assert main(["agent", "test", "--scripted"]) == Exit.OK
    told = capsys.readouterr()
    assert told.out.startswith("it works: the agent claude changed the page as asked, in ")
    assert "for real mails it needs a key" in told.out
    assert "$" not in told.out, "a script costs nothing"
    assert "edits index.html" in told.err


def test_what_is_missing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "test", "--agent", "acp"]) == Exit.USAGE
    assert main(["agent", "test", "--agent", "builtin", "--scripted"]) == Exit.USAGE
    assert main(["agent", "test", "--agent", "claude"]) == Exit.FAILED
    told = capsys.readouterr().err
    assert "ANTHROPIC_API_KEY" in told or "webordinary[claude]" in told
