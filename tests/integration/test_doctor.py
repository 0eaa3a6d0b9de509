"""`webordinary doctor` on a data folder."""

from __future__ import annotations

import json
import shutil
import smtplib
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Up
from tests.harness.embedded import open_harness
from webordinary.compose.checks import checks_of
from webordinary.config import Config
from webordinary.entrypoints.cli import main
from webordinary.model.checks import Check, Verdict, good, run_checks

PORTS = ("--port", "0", "--preview-port", "0", "--smtp-port", "0")


def doctor(data: Path, *flags: str) -> list[str]:
    command = [sys.executable, "-m", "webordinary", "doctor", "--data", str(data), "--json", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    looks = json.loads(done.stdout)
    assert done.returncode == int(any(look["verdict"] == "fail" for look in looks))
    return [f"{look['verdict']} {look['check']}: {look['what']} — {look['todo']}" for look in looks]


def found(lines: list[str], start: str) -> str:
    [line] = [line for line in lines if line.startswith(start)]
    return line


def test_a_machine_with_a_browser_but_no_jail_is_told_why_there_are_no_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chromium").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    [pictures] = [check for check in checks_of(Config(data=tmp_path)) if check.name == "pictures"]
    told = pictures.look()
    assert told.verdict is Verdict.WARN
    assert "no pictures" in told.what
    assert "bwrap" in told.what


def test_a_folder_with_a_customer_is_looked_at_from_disk_to_repository(tmp_path: Path) -> None:
    with open_harness(tmp_path / "data") as harness:
        harness.receive()
    (tmp_path / "data").chmod(0o700)  # as `up` makes it
    lines = doctor(tmp_path / "data", *PORTS)
    for start in ("ok data folder", "ok git", "ok database", "ok clock"):
        found(lines, start)
    assert "name a mail server in relay_host" in found(lines, "warn replies")
    assert "amelia" in found(lines, "fail repository of amelia")  # the site has no repository


def test_each_line_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--data", str(tmp_path / "none"), *PORTS]) == 1
    out = capsys.readouterr().out
    assert "fail  " in out
    assert "none is not there yet — `webordinary up` makes it" in out
    assert out.splitlines()[-1].endswith(" to mend")


def test_a_running_system_answers_at_its_ports(start_up: Callable[..., Up]) -> None:
    up = start_up()
    lines = doctor(up.data)
    for name in ("port", "preview_port", "smtp_port"):
        assert "answers" in found(lines, f"ok {name}:")
    assert "can be read and written" in found(lines, "ok repository of amelia")
    with smtplib.SMTP(up.smtp_host, up.smtp_port) as smtp:
        assert smtp.noop()[0] == 250
    relay = ("--relay-host", up.smtp_host, "--relay-port", str(up.smtp_port), "--relay-starttls", "no")
    assert "replies leave through" in found(doctor(up.data, *relay), "ok replies")
    shutil.rmtree(up.data / "origins" / "amelia.git")
    found(doctor(up.data), "fail repository of amelia")


def test_a_damaged_database_and_a_silent_mail_server_are_told(tmp_path: Path) -> None:
    (tmp_path / "webordinary.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    command = ["doctor", "--data", str(tmp_path), "--relay-host", "127.0.0.1", "--relay-port", "1", *PORTS]
    done = subprocess.run([sys.executable, "-m", "webordinary", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is damaged: " in done.stdout
    assert "the sites cannot be listed: " in done.stdout
    assert done.stdout.splitlines()[-1].endswith(" to mend"), "it looked at all of it"
    assert "127.0.0.1:1 does not take our mail" in done.stdout


def test_a_look_that_hangs_or_breaks_holds_up_no_other() -> None:
    released = threading.Event()

    def hang() -> object:
        released.wait(60)
        return good("late")

    def fail() -> object:
        raise ZeroDivisionError("none")

    checks = [Check("hangs", hang), Check("breaks", fail), Check("works", lambda: good("well"))]  # type: ignore[arg-type]
    looking = run_checks(checks, seconds=0.2)
    looks = [next(looking)]
    for thread in threading.enumerate():
        if thread.name in ("check breaks", "check works"):
            thread.join(60)
    looks += looking
    released.set()
    assert [look.finding.verdict for look in looks] == [Verdict.FAIL, Verdict.FAIL, Verdict.OK]
    assert "no answer within" in looks[0].finding.what
    assert "ZeroDivisionError" in looks[1].finding.what
