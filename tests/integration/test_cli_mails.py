"""`webordinary mails`: an operator finds, reads, releases and drops mails."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness.embedded import EmbeddedHarness, open_harness
from tests.harness.site import open_site_harness
from webordinary.entrypoints.cli.main import main
from webordinary.mail.parsing.message import parse
from webordinary.model.mail import Delivery, TransportKind
from webordinary.model.names import job_id_of
from webordinary.operations.mails import _csv_line
from webordinary.workflow.start import start


@dataclass
class MailsShell:
    harness: EmbeddedHarness
    data: Path
    capsys: pytest.CaptureFixture[str]

    def run(self, *words: str) -> tuple[int, str, str]:
        code = main(["mails", *words, "--data", str(self.data)])
        said = self.capsys.readouterr()
        return code, said.out, said.err

    def json(self, *words: str) -> list[dict[str, str]]:
        code, out, err = self.run(*words, "--json")
        assert (code, err) == (0, "")
        said = json.loads(out)
        return said if isinstance(said, list) else [said]

    def ids(self, *words: str) -> list[str]:
        return [one["mail"] for one in self.json("list", *words)]


@pytest.fixture
def operator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[MailsShell]:
    with open_harness(tmp_path, trusted_peers=()) as harness:
        yield MailsShell(harness, tmp_path, capsys)


def test_mails_are_found_by_state_sender_project_and_time(operator: MailsShell) -> None:
    held, strange = operator.harness.receive(), operator.harness.receive(sender="eve@evil.example")
    assert set(operator.ids()) == {held, strange}
    assert operator.ids("--state", "held") == [held]
    assert operator.ids("--state", "refused") == [strange]
    assert operator.ids("--state", "done") == []
    assert operator.ids("--text", "evil") == [strange]
    assert operator.ids("--limit", "1", "--page", "2") == [held]
    assert operator.ids("--sender", "EVIL") == [strange]
    assert operator.ids("--project", "amelia") == [held]
    assert operator.ids("--project", "bakery") == []
    assert set(operator.ids("--since", "1h")) == {held, strange}
    assert operator.ids("--since", "2999-01-01") == []
    assert len(operator.ids("--limit", "1")) == 1


def test_a_held_mail_is_shown_with_its_reason_and_the_next_command(operator: MailsShell) -> None:
    held = operator.harness.receive()
    operator.ids()
    code, out, _ = operator.run("show", held[:12])
    assert code == 0
    assert "held" in out.splitlines()[0]
    assert f"webordinary mails release {held[:12]}" in out
    assert operator.json("show", held)[0]["state"] == "held"


def test_a_mail_held_for_a_header_with_bare_line_feeds_says_that_nobody_is_asked(operator: MailsShell) -> None:
    services = operator.harness.services
    raw = b"From: scott@example.com\nTo: edit@localhost\nSubject: Title\nMessage-ID: <a@x>\n\nundo\n"
    delivery = Delivery(TransportKind.SMTP, "127.0.0.1", "scott@example.com", ("edit@localhost",), services.clock.now())
    [accepted] = services.accept_mail(raw, delivery)
    start(accepted.email_id, operator.harness.engine, services.raw_mails)
    operator.harness.engine.run_ready()
    services.events.close()
    code, out, _ = operator.run("show", accepted.email_id)
    assert code == 0
    assert "Held; no person is asked" in out
    assert "a bare LF" in out
    assert "until the sender confirms" not in out
    assert "mails release" not in out
    assert operator.harness.replies(accepted.email_id) == []


def test_a_released_mail_is_done_once(operator: MailsShell) -> None:
    held = operator.harness.receive()
    for _ in range(2):
        assert operator.json("release", held[:12]) == [{"mail": held}]
    operator.harness.engine.run_ready()
    assert operator.harness.services.jobs.get(job_id_of(held))
    assert operator.ids("--state", "held") == []
    operator.harness.work()
    assert [entry.reply.kind for entry in operator.harness.replies(held)] == ["confirm", "answer"]


def test_a_dropped_mail_is_never_done(operator: MailsShell) -> None:
    held = operator.harness.receive()
    assert operator.json("drop", held[:12]) == [{"mail": held}]
    assert operator.ids("--state", "dropped") == [held]
    code, _, err = operator.run("release", held[:12])
    assert code != 0
    assert "is not held" in err


def test_a_mail_of_a_stranger_cannot_be_released(operator: MailsShell) -> None:
    strange = operator.harness.receive(sender="eve@evil.example")
    code, _, err = operator.run("release", strange[:12])
    assert code != 0
    assert "entitled to no project" in err
    code, _, err = operator.run("drop", strange[:12])
    assert "is not held" in err


def test_a_time_that_is_none_is_named(operator: MailsShell) -> None:
    with pytest.raises(SystemExit):
        operator.run("list", "--since", "yesterday")
    assert "is no time" in operator.capsys.readouterr().err


def test_a_mail_that_no_agent_understood_waits_for_a_person_whose_answer_goes_out_in_the_thread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_site_harness(tmp_path) as site:
        operator = MailsShell(site.harness, tmp_path, capsys)
        job = site.mail("Could you make everything a bit more festive?")
        site.mail("change the homepage title to Spring Sale", "<other@example.com>")
        told = parse(site.harness.replies(job.email_id)[-1].reply.raw)
        assert "the person who looks after your site" in " ".join(told.text.split())
        assert operator.ids("--needs-person") == [job.email_id]
        assert operator.run("answer", job.email_id[:12], "Gladly: which page first?")[0] == 0
        answer = site.harness.replies(job.email_id)[-1].reply
        assert "Gladly: which page first?" in parse(answer.raw).text
        assert answer.thread_id == job.thread_id
        assert parse(answer.raw).in_reply_to == told.in_reply_to
        assert operator.ids("--needs-person") == []


def test_a_mail_is_done_once_more_by_command_with_and_without_another_agent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_site_harness(tmp_path) as site:
        operator = MailsShell(site.harness, tmp_path, capsys)
        mail = site.mail("Could you make everything a bit more festive?").email_id
        assert operator.json("retry", mail[:12]) == [{"mail": mail}]
        site.harness.engine.run_ready()
        assert site.harness.services.jobs.get(job_id_of(mail, 1))
        other = site.mail("Could you make everything calmer?", "<other@example.com>").email_id
        assert operator.json("retry", other[:12], "--agent", "builtin") == [{"mail": other}]
        project = site.harness.services.directory.project("amelia")
        assert project
        assert project.agent == "builtin"


def test_mails_are_exported_as_csv_that_no_spreadsheet_runs(operator: MailsShell) -> None:
    operator.harness.receive(sender="=cmd@evil.example")
    code, out, _ = operator.run("export", "--csv", "--state", "refused")
    head, row = out.splitlines()
    assert (code, head.split(",")[:3]) == (0, ["mail", "received_at", "state"])
    assert ",'=cmd@evil.example," in row
    assert json.loads(operator.run("export")[1])["state"] == "refused"


@pytest.mark.parametrize(
    "text", ["=1+1", "Hello;=1+1", "a\t@x", "\uff1d1+1", "x\r\n -1", " =1", "a|+1", ';"=1', '"\t" @x']
)
def test_no_cell_of_an_export_begins_like_a_formula_whatever_separates_cells(text: str) -> None:
    [row] = csv.reader(io.StringIO(_csv_line([text, "second"]), newline=""))
    cells = re.split(r"[;,\t\r\n|]", ",".join(row))
    for separator in ";,\t|":  # as the spreadsheet of another country reads the line
        lines = csv.reader(io.StringIO(_csv_line(["first", text, "last"]), newline=""), delimiter=separator)
        cells += (cell for line in lines for cell in line)
    assert not [cell for cell in cells if re.match(r"\s*[=+@\-\uff1d]", cell)]
