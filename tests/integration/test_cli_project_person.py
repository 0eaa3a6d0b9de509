"""One person leaves a site: they are a stranger to it from then on, and nothing that they sent is lost silently."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness.chaos import until
from tests.harness.embedded import AMELIA_SCOTT, SCOTT, WORKER, EmbeddedHarness, open_harness
from webordinary.compose.steps import answering_of, steps_of
from webordinary.entrypoints.cli import main
from webordinary.model.jobs import Job, JobOutcome, JobState
from webordinary.model.names import ProjectUser, job_id_of
from webordinary.model.projects import Project, Sender

BOB, AMELIA_BOB = "bob@example.com", ProjectUser("amelia", "bob")


@dataclass
class RemovalShell:
    """Somebody at a shell, beside a house whose site bob may change as well."""

    harness: EmbeddedHarness
    data: Path
    capsys: pytest.CaptureFixture[str]

    def run(self, *flags: str, site: str = "amelia", sender: str | None = BOB) -> tuple[int, str, str]:
        self.capsys.readouterr()
        person = [] if sender is None else ["--sender", sender]
        code = main(["project", "remove", site, *person, "--data", str(self.data), *flags])
        said = self.capsys.readouterr()
        return code, said.out, said.err

    def mail(self, text: str = "Change the title to Autumn", answers: str = "", sender: str = BOB) -> str:
        return self.harness.receive(text, sender=sender, answers=answers)

    def job(self, email_id: str) -> Job:
        job = self.harness.services.jobs.get(job_id_of(email_id))
        assert job
        return job

    def sees_refused(self, email_id: str) -> None:
        def told() -> bool:
            detail = self.harness.services.overview.mail(email_id)
            return detail is not None and "MailRefused" in detail.summary.milestones

        until(told, "the page to show it as refused")
        assert not self.harness.replies(email_id), "a stranger gets no answer"


@pytest.fixture
def operator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[RemovalShell]:
    with open_harness(tmp_path / "data") as harness:
        harness.services.directory.add_sender(Sender(BOB, AMELIA_BOB), harness.services.clock.now())
        yield RemovalShell(harness, tmp_path / "data", capsys)


def test_who_is_removed_from_a_site_is_a_stranger_to_it(operator: RemovalShell) -> None:
    code, out, err = operator.run("--yes", sender="Bob@Example.com")
    assert code == 0, err
    assert f"{BOB} is removed from amelia: mail from there changes nothing of it any more." in out
    assert f"{SCOTT} (scott) may change amelia." in out
    operator.sees_refused(operator.mail())
    assert operator.harness.services.jobs.open_jobs(AMELIA_BOB) == []
    assert operator.job(operator.mail(sender=SCOTT)).open, "others go on as before"


def test_removing_somebody_twice_is_harmless_and_said(operator: RemovalShell) -> None:
    assert operator.run("--yes")[0] == 0
    code, out, _ = operator.run()
    assert (code, f"{BOB} may not change amelia; nothing was removed." in out) == (0, True)
    code, out, _ = operator.run("--json")
    assert json.loads(out) == {"project": "amelia", "removed": [], "stopped": 0, "may_change_it": [SCOTT]}


def test_nobody_is_removed_without_a_yes(operator: RemovalShell) -> None:
    code, _, err = operator.run()
    assert (code, "say --yes" in err) == (2, True)
    assert operator.harness.services.directory.entries(BOB)


def test_a_question_comes_first_on_a_terminal(operator: RemovalShell) -> None:
    keyboard, terminal = pty.openpty()
    command = [sys.executable, "-m", "webordinary", "project", "remove", "amelia", "--data", str(operator.data)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = subprocess.Popen([*command, "--sender", BOB], stdin=terminal, text=True, **pipes)  # type: ignore[call-overload]
    os.write(keyboard, b"n\n")
    out, _ = process.communicate(timeout=60)
    os.close(keyboard)
    os.close(terminal)
    assert f"mail from {BOB} will be treated as a stranger's" in out
    assert f"Remove {BOB} from amelia? [y/N]" in out
    assert "nothing was removed" in out
    assert operator.harness.services.directory.entries(BOB)


@pytest.mark.parametrize("sender", ["", "bob"])
def test_an_address_that_is_none_removes_no_site(operator: RemovalShell, sender: str) -> None:
    code, _, err = operator.run("--yes", sender=sender)
    assert (code, f"{sender!r} is not a mail address" in err) == (2, True)
    assert operator.harness.services.directory.project("amelia")


def test_a_site_that_is_not_there_is_told(operator: RemovalShell) -> None:
    code, _, err = operator.run("--yes", site="nobody")
    assert (code, "there is no site 'nobody'" in err) == (1, True)


def test_the_last_person_goes_with_words_about_what_stays(operator: RemovalShell) -> None:
    operator.run("--yes")
    code, out, err = operator.run("--yes", sender=SCOTT)
    assert code == 0, err
    assert "No person may change amelia now. It is still shown, with its releases and repository" in out
    assert "`webordinary project remove amelia` removes the site" in out
    assert operator.harness.services.directory.project("amelia")


def test_while_jobs_are_open_nobody_is_removed_unless_by_force_and_each_is_answered(operator: RemovalShell) -> None:
    waiting = operator.mail()
    code, _, err = operator.run("--yes")
    assert code == 1
    assert f"{BOB} has open jobs on amelia (1): wait until they are done" in err
    assert operator.harness.services.directory.entries(BOB)
    code, out, err = operator.run("--yes", "--force")
    assert code == 0, err
    assert "what was under way for it is stopped, and answered so: 1" in out
    operator.harness.engine.run_ready()
    assert operator.job(waiting).outcome is JobOutcome.CANCELLED
    [reply] = operator.harness.replies(waiting)
    assert b"Your address may not change this site any more" in reply.reply.raw


def test_the_worker_of_a_running_job_hears_that_it_is_to_end(operator: RemovalShell) -> None:
    running = operator.mail()
    services = operator.harness.services
    services.pool.claims.claim_and_start(AMELIA_BOB, WORKER, services.clock.now())
    assert operator.run("--yes", "--force")[0] == 0
    job = operator.job(running)
    assert (job.state, job.cancel_requested) == (JobState.RUNNING, True)
    assert operator.run("--yes")[0] == 1, "until it has ended, that is not forgotten"


def test_only_what_they_asked_for_is_stopped_whoever_s_conversation_it_is_in(operator: RemovalShell) -> None:
    theirs = operator.harness.receive("Change the title to Autumn", "<bobs@example.com>", sender=BOB)
    by_scott_in_bobs = operator.mail(sender=SCOTT, answers="<bobs@example.com>")
    operator.harness.receive("Change the title to Winter", "<scotts@example.com>")
    by_bob_in_scotts = operator.mail(answers="<scotts@example.com>")
    assert operator.job(by_scott_in_bobs).key == AMELIA_BOB
    assert operator.job(by_bob_in_scotts).key == AMELIA_SCOTT
    assert operator.run("--yes", "--force")[0] == 0
    assert [operator.job(one).open for one in (theirs, by_scott_in_bobs, by_bob_in_scotts)] == [False, True, False]
    again = operator.mail(sender=SCOTT, answers="<bobs@example.com>")
    assert operator.job(again).open, "their conversation goes on without them"
    code, _, err = operator.run("--yes", sender=None)
    assert (code, f"({AMELIA_SCOTT}, {AMELIA_BOB})" in err) == (1, True)


def test_who_is_removed_between_two_steps_of_their_mail_gets_no_job_and_no_answer(operator: RemovalShell) -> None:
    services = operator.harness.services
    answering = answering_of(services, lambda: None)
    steps = steps_of(services, answering)
    email_id = operator.harness.accept("Change the title to Autumn", sender=BOB)
    payload = {"emailId": email_id, "redrive": 0, "retries": 0}
    admitted = steps["AuthenticateSender"](payload)
    assert admitted == {"verdict": "admitted"}
    steps["ParseEmail"](payload)
    assert operator.run("--yes")[0] == 0
    route = steps["IdentifyProjectUser"](payload)
    assert route == {"route": "refused"}
    assert steps["Reply"]({**payload, "sender": admitted, "job": route}) == {"replied": False}
    operator.sees_refused(email_id)


def test_somebody_with_two_sites_keeps_the_other_one(operator: RemovalShell) -> None:
    services = operator.harness.services
    services.directory.add_project(Project("bakery", "elsewhere"), services.clock.now())
    services.directory.add_sender(Sender(BOB, ProjectUser("bakery", "bob")), services.clock.now())
    assert operator.run("--yes")[0] == 0
    assert operator.job(operator.mail()).key == ProjectUser("bakery", "bob")
