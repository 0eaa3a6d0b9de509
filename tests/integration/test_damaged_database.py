"""A damaged database: mail is not bounced, a loss is noticed, and mails whose files are left are taken up."""

from __future__ import annotations

import json
import shutil
import smtplib
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.harness.embedded import AMELIA_SCOTT, SCOTT, open_harness
from webordinary.adapters.sqlite.recovery import CommitsLost
from webordinary.compose.checks import run_doctor
from webordinary.config import Config
from webordinary.entrypoints.cli import main
from webordinary.entrypoints.smtp import SmtpServer, SmtpSettings
from webordinary.mail.write import CustomerMail, write_mail
from webordinary.model.checks import Verdict
from webordinary.model.errors import DatabaseDamaged, is_machine_fault
from webordinary.workflow.start import start_missing

FIRST_DAY = Path(__file__).parents[1] / "data" / "first_schema.sql"


def wal_of(data: Path) -> Path:
    return data / "webordinary.db-wal"


def killed_house(data: Path, copy: Path, *, mails: int = 2) -> list[str]:
    """A folder as a kill leaves it: the last mails are in the write-ahead log only; returns their ids."""
    with open_harness(data) as harness:
        harness.receive()
        with closing(sqlite3.connect(data / "webordinary.db")) as conn:
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ids = [harness.accept(f"Change the title to {number}") for number in range(mails)]
        harness.services.events.close()
        shutil.copytree(data, copy, ignore=shutil.ignore_patterns("run"))
    return ids


def remove(wal: Path) -> None:
    wal.unlink()


def cut(wal: Path) -> None:
    with wal.open("r+b") as file:
        file.truncate(wal.stat().st_size // 2)


@pytest.mark.parametrize("lose", [remove, cut])
def test_a_write_ahead_log_that_was_lost_while_stopped_is_noticed_at_start_and_by_the_doctor(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    killed_house(tmp_path / "data", tmp_path / "killed", mails=20)
    lose(wal_of(tmp_path / "killed"))
    with pytest.raises(CommitsLost, match="webordinary recover"), open_harness(tmp_path / "killed"):
        pass
    [database] = [run for run in run_doctor(Config(data=tmp_path / "killed"), running=False) if run.name == "database"]
    assert database.finding.verdict is Verdict.FAIL
    assert "lost what was written last" in database.finding.what


def test_a_kill_alone_loses_nothing_and_is_no_reason_to_refuse(tmp_path: Path) -> None:
    ids = killed_house(tmp_path / "data", tmp_path / "killed")
    with open_harness(tmp_path / "killed") as harness:
        assert sorted(harness.services.raw_mails.without_workflow(10)) == sorted(ids)


def test_recover_takes_up_accepted_mails_whose_rows_are_lost_and_they_are_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "killed"
    ids = killed_house(tmp_path / "data", data, mails=1)
    before = {email_id: house_mail(tmp_path / "data", email_id) for email_id in ids}
    remove(wal_of(data))
    assert main(["recover", "--data", str(data), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sorted(told["mails"]) == sorted(ids)
    assert told["unreadable"] == []
    with open_harness(data) as harness:
        assert {email_id: harness.services.raw_mails.load(email_id) for email_id in ids} == before
        start_missing(harness.engine, harness.services.raw_mails)
        harness.engine.run_ready()
        assert {job.email_id for job in harness.services.jobs.open_jobs(AMELIA_SCOTT)} >= set(ids)


def house_mail(data: Path, email_id: str) -> object:
    with open_harness(data) as harness:
        return harness.services.raw_mails.load(email_id)


def test_a_site_whose_settings_are_lost_is_named_by_recover(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_harness(tmp_path):
        pass
    (tmp_path / "sites" / "bakery").mkdir(parents=True)
    assert main(["recover", "--data", str(tmp_path)]) == 0
    assert "webordinary project add bakery" in capsys.readouterr().out


def test_a_damaged_database_answers_451_so_that_senders_keep_their_mail(tmp_path: Path) -> None:
    with open_harness(tmp_path) as harness:
        services = harness.services
        mailbox = services.mail_deps.mailbox
        server = SmtpServer(SmtpSettings(mailbox, port=0), services.accept_mail, lambda _: None, services.clock.now)
        server.start()
        try:
            damage(tmp_path / "webordinary.db")
            with smtplib.SMTP("127.0.0.1", server.port, local_hostname="localhost", timeout=30) as smtp:
                letter = write_mail(CustomerMail(SCOTT, "edit@localhost", "Title", "hello"), services.clock.now())
                with pytest.raises(smtplib.SMTPDataError) as refused:
                    smtp.sendmail(SCOTT, ["edit@localhost"], letter)
        finally:
            server.stop()
    assert refused.value.smtp_code == 451


def damage(database: Path) -> None:
    """Overwrite all pages; what is in the write-ahead log goes into the file first."""
    with closing(sqlite3.connect(database)) as conn:
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with database.open("r+b") as file:
        file.write(b"\xff" * database.stat().st_size)


def test_jobs_wait_while_the_database_is_damaged(tmp_path: Path) -> None:
    with open_harness(tmp_path) as harness:
        damage(tmp_path / "webordinary.db")
        with pytest.raises(DatabaseDamaged) as raised:
            harness.services.directory.projects()
    assert is_machine_fault(raised.value)


def test_a_folder_of_the_first_day_is_upgraded_and_its_mails_in_flight_are_answered(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "webordinary.db")) as conn:
        conn.executescript(FIRST_DAY.read_text())
        paths = dict(conn.execute("SELECT email_id, path FROM raw_mails").fetchall())
    for number, path in enumerate(paths.values()):
        (tmp_path / path).parent.mkdir(parents=True)
        letter = CustomerMail(SCOTT, "edit@localhost", "Title", "Set the title to Spring", message_id=f"<{number}@x>")
        (tmp_path / path).write_bytes(write_mail(letter, datetime.now(UTC)))
    with open_harness(tmp_path) as harness:
        harness.engine.run_ready()
        for _ in paths:
            harness.work()
        assert [len(harness.replies(email_id)) for email_id in paths] == [1, 1, 1]
        assert not harness.services.dead_letters.all(10)
