"""Every command that is given the name of a thing, given the name of nothing: it says so, and does nothing."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.embedded import EmbeddedHarness, open_harness
from webordinary.entrypoints.cli import main
from webordinary.entrypoints.cli.main import parser

IT = "IT"
COMMANDS = (
    ("pause", IT), ("resume", IT), ("costs", IT), ("logs", "--mail", IT), ("logs", "--job", IT), ("replay", IT),
    ("dlq", "show", IT), ("dlq", "redrive", IT), ("dlq", "drop", "--yes", IT), ("replies", "send-again", IT),
    ("project", "show", IT), ("project", "remove", "--yes", IT), ("project", "credential", "--remove", IT),
    ("project", "set", "--daily-cap", "1", IT), ("project", "role", IT, "ann@example.com", "editor"),
    ("release", "list", IT), ("release", "rollback", IT), ("release", "rollback", "amelia", IT), ("send", IT),
    ("worker", "health", "--name", IT), ("worker", "health", "--id", IT), ("interruptions", IT), ("outputs", IT),
    ("mails", "show", IT), ("mails", "release", IT), ("mails", "drop", IT), ("mails", "replay", IT),
    ("mails", "retry", IT), ("mails", "close", IT), ("mails", "cancel", IT), ("mails", "interrupt", IT),
    ("pool", "release", IT), ("pool", "drain", IT), ("release", "rebuild", IT), ("project", "hook", IT),
    ("mails", "admit", "amelia#scott", IT), ("mails", "admit", IT, "x" * 12),
    ("mails", "let-in", "amelia#scott", IT), ("mails", "let-in", IT, "x" * 12),
    ("mails", "answer", IT, "text"), ("user", "remove", IT), ("user", "sessions", IT), ("user", "token", IT),
    *(("project", "domain", action, IT, "www.example.com") for action in ("add", "remove", "check")),
)  # fmt: skip
NOTHING = (
    "nope",
    "job-nope",
    "a/b",
    "../x",
    "0" * 64,
    "x" * 5000,
    "\N{SNOWMAN}",
    "a b",
    "-1",
    "99999999999999999999",
    " ",
)
GIVEN_NOTHING_TO_LOOK_FOR = {
    "up", "worker", "status", "claims", "queues", "dlq list", "replies list", "project list", "project add",
    "agent test", "backup", "restore", "recover", "upgrade-check", "doctor", "simulate", "receive",
    "mails list", "mails export",
    "user list", "user add", "user log", "config show", "config check", "completion", "service install",
    "aws local", "aws preflight", "aws deploy", "aws migrate", "aws diff", "aws destroy", "aws image", "aws smoke",
}  # fmt: skip


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path_factory.mktemp("house") / "data") as harness:
        harness.receive()
        yield harness


def told(
    command: tuple[str, ...], harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    try:
        code = main([*command, "--data", str(harness.services.config.data)])
    except SystemExit as ended:
        code = int(ended.code or 0)
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize("nothing", [*NOTHING, ""], ids=lambda nothing: repr(nothing[:24]))
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_is_not_there_is_told(
    command: tuple[str, ...], nothing: str, harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    given = tuple(nothing if part == IT else part for part in command)
    code, out, err = told(given, harness, capsys)
    assert code in (1, 2, 3), out
    assert out == ""
    assert "webordinary" in err
    for never in ("Traceback", "unexpected", "Errno"):
        assert never not in err


def test_no_command_is_left_out() -> None:
    tried = {" ".join(part for part in command if part in _names(parser())) for command in COMMANDS}
    assert {*_leaves(parser(), ())} - GIVEN_NOTHING_TO_LOOK_FOR <= tried


@pytest.mark.parametrize(
    "command",
    [
        ("costs", "--days", "0"), ("costs", "--days", "-1"), ("costs", "--days", "99999999999"),
        ("costs", "--days", "1e3"),
        ("logs", "--limit", "0"), ("worker", "--slots", "0"), ("worker", "--name", ""), ("send", "m.eml", "--from", ""),
        ("aws", "destroy", "--site", ""), ("aws", "local", "--emulator-port", "99999"),
        ("aws", "smoke", "--seconds", "-1"),
        ("simulate", "--mails-per-day", "-5"), ("up", "--port", "-1"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_senseless_value_is_a_wrong_flag(
    command: tuple[str, ...], harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = told(command, harness, capsys)
    assert (code, out) == (2, "")
    assert "Traceback" not in err


@pytest.mark.parametrize("repo", ["/nowhere/at/all", "~nobody-of-that-name/site", "x" * 5000, "README.nowhere"])
def test_a_repository_that_is_nowhere_is_told(
    repo: str, harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("project", "add", "kiln", "--repo", repo, "--user", "ann", "--sender", "ann@example.com")
    code, out, err = told(command, harness, capsys)
    assert (code, out) == (2, "")
    assert f"there is no folder {repo[:200]}; name one that is there, or the address of a git repository" in err


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (("restore", "FOLDER"), "FOLDER"),
        (("replay", "MAIL", "--keep", "FILE/kept"), "FILE/kept"),
    ],
    ids=lambda part: part[0],
)
def test_what_the_machine_refuses_is_told_without_the_number_of_its_error(
    command: tuple[str, ...], place: str, harness: EmbeddedHarness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    [mail] = harness.services.overview.recent_mails(None, 1)
    real = {"FOLDER": str(tmp_path), "FILE": str(tmp_path / "file"), "MAIL": mail.email_id}
    for name, value in real.items():
        command = tuple(part.replace(name, value) for part in command)
        place = place.replace(name, value)
    where = () if command[0] != "restore" else ("--data", str(tmp_path / "new"))
    code = main([*command, "--data", str(harness.services.config.data), *where])
    err = capsys.readouterr().err
    assert code == 1
    assert f"{place} cannot be used (" in err
    assert "Errno" not in err


def _commands(of: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = [action.choices for action in of._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found[0]) if found else {}


def _leaves(of: argparse.ArgumentParser, before: tuple[str, ...]) -> Iterator[str]:
    inside = _commands(of)
    if not inside or before == ("worker",):
        yield " ".join(before)
    for name, one in inside.items():
        yield from _leaves(one, (*before, name))


def _names(of: argparse.ArgumentParser) -> set[str]:
    return {name for leaf in _leaves(of, ()) for name in leaf.split()}
