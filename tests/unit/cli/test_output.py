from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from webordinary.entrypoints.cli.output import clean, print_json, progress, table
from webordinary.model.names import ProjectUser


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert table(("key", "open"), [("amelia#scott", 2)]) == "  key           open\n  amelia#scott  2"


def test_an_empty_table_says_so() -> None:
    assert table(("key",), []) == "  none"


def test_text_from_a_mail_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in table(("subject",), [("\x1b[2J gone",)])
    assert clean("Grüße 👋") == "Grüße 👋"


def test_json_is_one_line_even_with_our_own_values(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"key": ProjectUser("amelia", "scott"), "at": datetime(2026, 1, 2, tzinfo=UTC), "p": Path("x")})
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == {
        "key": {"project_id": "amelia", "user_id": "scott"},
        "at": "2026-01-02T00:00:00+00:00",
        "p": "x",
    }


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(out: io.StringIO, moments: list[float]) -> str:
    ticks = iter([0.0, *moments])
    with progress("backup", out, lambda: next(ticks)) as report:
        for number, _ in enumerate(moments):
            report(f"{number} files")
    return out.getvalue()


def test_what_is_quick_shows_no_progress() -> None:
    assert shown(io.StringIO(), [0.2, 0.9]) == ""
    assert shown(Terminal(), [0.2, 0.9]) == ""


def test_without_a_terminal_a_line_is_printed_now_and_then() -> None:
    assert shown(io.StringIO(), [1.5, 2.0, 7.0]) == "backup: 0 files\nbackup: 2 files\n"


def test_on_a_terminal_one_line_is_rewritten_and_then_wiped() -> None:
    out = shown(Terminal(), [1.5, 2.0])
    assert "\n" not in out
    assert out.endswith("\r")
    assert "\rbackup: 1 files" in out
