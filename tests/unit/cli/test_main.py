from __future__ import annotations

import json
from pathlib import Path

import pytest

from webordinary.entrypoints.cli import main


def test_a_wrong_setting_is_exit_code_2_and_names_the_setting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WEBORDINARY_PORT", "http")
    assert main(["status"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("webordinary: wrong settings")
    assert "port (WEBORDINARY_PORT): 'http'" in err
    assert "Traceback" not in err


def test_unknown_flags_are_exit_code_2() -> None:
    with pytest.raises(SystemExit) as caught:
        main(["status", "--colour"])
    assert caught.value.code == 2


def test_a_mistyped_command_is_told_which_one_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["statsu"]) == 2
    assert "did you mean `webordinary status`?" in capsys.readouterr().err


def test_without_a_command_it_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "upgrade-check" in capsys.readouterr().out


def test_the_states_to_choose_from_are_words(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["mails", "list", "--state", "nonsense"])
    said = capsys.readouterr().err
    assert "not-understood" in said
    assert "MailState" not in said


@pytest.mark.parametrize("limit", ["abc", "0", "-1", "1e3", "1000000"])
def test_a_number_that_is_none_is_told_in_words(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["logs", f"--limit={limit}"])
    assert caught.value.code == 2
    assert f"'{limit}' is not a number from 1 to 100,000" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["status"], ["logs"], ["worker"], ["project", "list"], ["backup", "b.tar.gz"]])
def test_a_folder_without_data_is_exit_code_3_and_stays_as_it_is(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--data", str(tmp_path)]) == 3
    assert "holds no WebOrdinary data; start it once with `webordinary up`" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_errors_can_be_read_by_scripts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["status", "--json", "--data", str(tmp_path)])
    error = json.loads(capsys.readouterr().err)
    assert error["exit_code"] == 3
    assert str(tmp_path) in error["error"]


def test_a_traceback_is_shown_only_when_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["status", "--debug", "--data", str(tmp_path)])
    assert "Traceback" in capsys.readouterr().err
