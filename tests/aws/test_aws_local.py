"""`webordinary aws local`, as `make up-aws` runs it: one mail through the page, all of it in processes of its own."""
# ruff: noqa: E402

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.extras import needs_extra
from tests.processes import wait_gone

needs_extra("boto3", "aws")

from tests.aws.emulator import find_ministack
from tests.aws.lambdas import packaged, until
from webordinary.entrypoints.cli import main
from webordinary.operations import sample

pytestmark = pytest.mark.timeout(600)


def start(data: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "webordinary", "aws", "local", "--emulator", find_ministack()]
    settings = ["--data", str(data), "--port", "0", "--preview-port", "0", "--workers", "1", "--pictures", "off"]
    quick = ["--emulator-port", "0", "--interrupt-grace-seconds", "1", "--json"]
    return subprocess.Popen([*command, *settings, *quick], stdout=subprocess.PIPE, text=True)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    packaged()
    data = tmp_path / "data"
    process = start(data)
    yield process, data
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=200)


def variables(file: Path) -> dict[str, str]:
    lines = (line.removeprefix("export ").partition("=") for line in file.read_text().splitlines())
    return {name: value.strip("'") for name, _, value in lines}


def test_the_page_takes_a_mail_which_changes_the_site_and_ctrl_c_ends_everything(
    local: tuple[subprocess.Popen[str], Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    process, data = local
    assert process.stdout
    ready = json.loads(process.stdout.readline())
    for name, value in variables(data / "emulator" / "environment").items():
        monkeypatch.setenv(name, value)
    form = {"from": sample.SENDER, "subject": "Spring", "text": "Set the title to Spring Sale"}
    headers = {"Origin": ready["page"].rstrip("/")}
    request = urllib.request.Request(ready["page"] + "mails", urllib.parse.urlencode(form).encode(), headers)
    with urllib.request.urlopen(request, timeout=100) as page:
        email_id = page.url.rpartition("/")[2]
    until(lambda: newest(capsys)["job"], "its place before the next mail")
    # A second mail of the same customer is answered after the first.
    smoke = ["aws", "smoke", "--from", sample.SENDER, "--seconds", "240"]
    assert main([*smoke, "--text", "Set the title to Spring Sale", "--json"]) == 0
    capsys.readouterr()
    # A mail of which nobody said what is in it is understood, and changes nothing.
    assert main(smoke) == 0
    assert "answered as asked for after" in capsys.readouterr().out
    assert main(["status", "--json"]) == 0
    mails = {mail["email_id"]: mail for mail in json.loads(capsys.readouterr().out)["recent"]}
    assert mails[email_id]["job"]["outcome"] == "succeeded"
    assert mails[email_id]["answered_at"]
    assert main(["logs", "--mail", email_id]) == 0
    said = capsys.readouterr().out
    assert "claimed by worker 1" in said
    assert "Job settled (outcome succeeded" in said
    with urllib.request.urlopen(ready["page"] + "metrics", timeout=100) as answer:
        measured = answer.read().decode()
    assert re.search(r'^webordinary_claim_attempts_total{result="success"} [1-9]', measured, re.MULTILINE)
    assert "webordinary_workers_alive 1\n" in measured
    site = urllib.request.Request(ready["page"], headers={"Host": f"edit.amelia.localhost:{ready['port']}"})
    with urllib.request.urlopen(site, timeout=100) as page:
        assert "Spring Sale" in page.read().decode()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=200)
    assert process.returncode == 0
    # Who was killed last is still listed for a moment, though nobody waits for it.
    until(lambda: not _processes_of(data), "all to end")


def test_what_kill_9_left_behind_ends_and_the_next_start_finds_everything(
    local: tuple[subprocess.Popen[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    process, data = local
    assert process.stdout
    ready = json.loads(process.stdout.readline())
    assert (ready["mailbox"], ready["bucket"]) == ("edit@localhost", "webordinary-mail-123456789012")
    until(lambda: len(_processes_of(data)) >= 5, "itself, the emulator and its keeper, up and its worker")
    left = _processes_of(data)
    capfd.readouterr()
    process.kill()
    process.communicate()
    for pid in left:
        wait_gone(pid)
    again = start(data)
    assert again.stdout
    assert json.loads(again.stdout.readline())["ready"]
    again.send_signal(signal.SIGINT)
    again.communicate(timeout=200)
    said = capfd.readouterr().err
    assert "workflow email-processor is there" in said
    assert "made" not in said


def test_a_mail_under_way_when_it_is_stopped_is_answered_after_the_next_start(
    local: tuple[subprocess.Popen[str], Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    process, data = local
    assert process.stdout
    json.loads(process.stdout.readline())
    for name, value in variables(data / "emulator" / "environment").items():
        monkeypatch.setenv(name, value)
    assert main(["pause", "amelia"]) == 0
    mail = data / "mail.eml"
    mail.write_text(f"From: {sample.SENDER}\nTo: edit@localhost\nMessage-ID: <1@x>\n\nSet the title to Spring Sale\n")
    assert main(["send", str(mail)]) == 0
    until(lambda: newest(capsys)["job"], "its job to be recorded")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=200)
    again = start(data)
    try:
        assert again.stdout
        json.loads(again.stdout.readline())
        for name, value in variables(data / "emulator" / "environment").items():
            monkeypatch.setenv(name, value)
        assert main(["resume", "amelia"]) == 0
        until(lambda: newest(capsys)["answered_at"], "an answer")
        assert newest(capsys)["job"]["outcome"] == "succeeded"
    finally:
        again.send_signal(signal.SIGINT)
        again.communicate(timeout=200)


def newest(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["status", "--json"]) == 0
    recent: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["recent"]
    return recent[0] if recent else {"job": None, "answered_at": None}


def _processes_of(data: Path) -> list[int]:
    return [int(process.name) for process in Path("/proc").glob("[0-9]*") if _works_on(process, data)]


def _works_on(process: Path, data: Path) -> bool:
    """Named by its command, or in its environment: the emulator's home is there."""
    try:
        return any(str(data).encode() in (process / part).read_bytes() for part in ("cmdline", "environ"))
    except OSError:
        return False
