"""`webordinary dlq`, on a data folder where nothing runs."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.embedded import DONE, EmbeddedHarness, open_harness
from webordinary.adapters.files.wake import ENGINE
from webordinary.entrypoints.cli import main


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path / "data") as harness:
        yield harness


def dlq(harness: EmbeddedHarness, *args: str) -> int:
    return main(["dlq", *args, "--data", str(harness.services.config.data)])


def test_letters_are_listed_and_shown_with_reason_mail_job_and_timeline(
    harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    email_id = harness.give_up("Change the title to \x1b[31mRed")
    harness.services.events.close()
    assert dlq(harness, "list") == 0
    listed = capsys.readouterr().out
    assert email_id[:12] in listed
    assert "JobDied: the kiln exploded" in listed
    assert dlq(harness, "show", "1") == 0
    shown = capsys.readouterr().out
    for expected in (email_id, "scott@example.com", "Mail 1", "dead, 1 starts", "kiln exploded", "Queued for amelia"):
        assert expected in shown
    assert "\x1b" not in shown
    assert dlq(harness, "show", email_id[:8], "--json") == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["letter_id"], plain["job"]["outcome"]) == (1, "dead")
    assert plain["timeline"][0]["kind"] == "MailReceived"


def test_redrive_starts_the_mail_again_and_wakes_the_engine(
    harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    email_id = harness.give_up()
    ear = harness.services.bus.listen(ENGINE)
    assert dlq(harness, "redrive", email_id[:12]) == 0
    assert ear.wait(10)[0] == [""]
    ear.close()
    assert "runs again as soon as `webordinary up` does" in capsys.readouterr().out
    harness.engine.run_ready()
    harness.work(DONE)
    assert [entry.reply.kind for entry in harness.replies(email_id)] == ["answer", "answer-r1"]
    assert dlq(harness, "list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []


def test_all_letters_can_be_redriven_at_once(harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]) -> None:
    mails = {harness.give_up(), harness.give_up("Change the title to Autumn")}
    assert dlq(harness, "redrive", "--all", "--json") == 0
    done = json.loads(capsys.readouterr().out)
    assert {one["execution"] for one in done} == {f"{mail}-r1" for mail in mails}


def test_drop_wants_a_yes_and_forgets_the_letter_only(
    harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    email_id = harness.give_up()
    data = harness.services.config.data
    command = [sys.executable, "-m", "webordinary", "dlq", "drop", "1", "--data", str(data)]
    silent = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (silent.returncode, "say --yes" in silent.stderr) == (2, True)
    assert asked(command, "n\n")[0] == 1
    assert len(harness.services.dead_letters.all(10)) == 1
    code, out = asked(command, "y\n")
    assert code == 0
    assert "Drop 1 letter?" in out
    assert harness.services.dead_letters.all(10) == []
    assert harness.services.raw_mails.load(email_id).raw


def asked(command: list[str], answer: str) -> tuple[int, str]:
    keyboard, terminal = pty.openpty()
    process = subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    os.write(keyboard, answer.encode())
    out, _ = process.communicate(timeout=60)
    os.close(keyboard)
    os.close(terminal)
    return process.returncode, out


def test_what_is_not_there_is_told(harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]) -> None:
    harness.give_up()
    for args, message in (
        (("show", "99"), "there is no dead letter '99'; see `webordinary dlq list`"),
        (("redrive", "f00d"), "there is no dead letter 'f00d'"),
        (("redrive",), "no letter is named; name some, or say --all"),
        (("drop", "1", "--all", "--yes"), "no letter is named"),
    ):
        assert dlq(harness, *args) in (1, 2)
        assert message in capsys.readouterr().err
    assert len(harness.services.dead_letters.all(10)) == 1


def test_a_letter_whose_mail_is_gone_is_not_redriven(
    harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    harness.services.dead_letters.add("e" * 64, None, "odd", harness.services.clock.now())
    assert dlq(harness, "redrive", "1") == 1
    assert f"no mail {'e' * 64} is stored here" in capsys.readouterr().err
    assert len(harness.services.dead_letters.all(10)) == 1
