"""The commands with `--backend aws`: an account on the emulator, lambdas from the packaged zip, a real worker."""
# ruff: noqa: E402

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.aws.lambdas import MAILBOX, Account, brought_up, close_down, until
from tests.extras import needs_extra

needs_extra("boto3", "aws")

from tests.aws.emulator import REGION, RunningEmulator
from webordinary.adapters.aws import names
from webordinary.adapters.aws.provision.shapes import make_site_bucket
from webordinary.compose.aws import AwsContainer, open_aws
from webordinary.compose.provision import verify_sender
from webordinary.config import Config
from webordinary.entrypoints.cli import main
from webordinary.model.claims import StartedJob
from webordinary.model.jobs import JobOutcome, JobResult, NewJob, Settlement
from webordinary.model.mail import Command, Reply
from webordinary.model.names import ProjectUser, job_id_of

pytestmark = [pytest.mark.xdist_group("cli-aws"), pytest.mark.timeout(400)]
ANN = "ann@example.com"
MOMENTS = [
    "MailReceived", "MailParsed", "JobRecorded", "JobQueued", "JobStarted", "WorkspacePrepared",
    "AgentFinished", "ChangeCommitted", "SiteBuilt", "SitePublished", "JobSettled", "ReplyWritten",
]  # fmt: skip
"""In the timeline of a mail, in this order: told by lambdas, records and a worker."""
KILN_ANN = ProjectUser("kiln", "ann")
BOB, POTS_BOB = "bob@example.com", ProjectUser("pots", "bob")


@pytest.fixture(scope="module")
def account(ministack: RunningEmulator) -> Iterator[Account]:
    account = brought_up(ministack.endpoint)
    verify_sender(account.clients, MAILBOX)
    yield account
    close_down(account.tools)


@dataclass
class AwsShell:
    """Somebody at a shell whose environment names the account."""

    config: Config
    account: Account
    repo: Path
    capsys: pytest.CaptureFixture[str]

    def run(self, *command: str) -> tuple[int, str, str]:
        self.capsys.readouterr()
        code = main(command)
        said = self.capsys.readouterr()
        return code, said.out, said.err

    def ask(self, *command: str) -> Any:  # noqa: ANN401  JSON
        code, out, err = self.run(*command, "--json")
        assert code == 0, err
        return json.loads(out)

    def add(self, *flags: str, name: str = "kiln", user: str = "ann", sender: str = ANN) -> tuple[int, str, str]:
        who = ("--repo", str(self.repo), "--user", user, "--sender", sender)
        return self.run("project", "add", name, *who, *flags)

    @property
    def bucket(self) -> str:
        return names.sites_bucket(self.account.account_id)

    def objects(self, prefix: str) -> list[str]:
        found = self.account.clients.s3.list_object_versions(Bucket=self.bucket, Prefix=prefix)
        return [one["Key"] for one in found.get("Versions", [])]

    def page(self) -> bytes:
        """The home page of the edit site, as the edge would fetch it."""
        found = self.account.clients.s3.get_object(Bucket=self.bucket, Key="kiln/edit/index.html")
        return found["Body"].read()

    @contextmanager
    def services(self) -> Iterator[AwsContainer]:
        with open_aws(self.config) as services:
            yield services

    @contextmanager
    def worker(self, *flags: str) -> Iterator[int]:
        command = [sys.executable, "-m", "webordinary", "worker", *flags]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            yield process.pid
        finally:
            process.terminate()
            assert process.wait(200) == 0


@pytest.fixture
def operator(
    account: Account,
    ministack: RunningEmulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[AwsShell]:
    config = Config(
        data=tmp_path / "data",
        backend="aws",
        aws_endpoint=ministack.endpoint,
        aws_account=account.account_id,
        aws_poll_seconds=1,
        mailbox=MAILBOX,
        domain="sites.example.net",
        pictures="off",
        interrupt_grace_seconds=1.0,
    )
    for name, value in (config.environment() | credentials(account.account_id)).items():
        monkeypatch.setenv(name, value)
    repo = tmp_path / "site"
    repo.mkdir()
    (repo / "index.html").write_text("<!doctype html><title>Kiln</title><h1>Kiln</h1>")
    yield AwsShell(config, account, repo, capsys)
    with open_aws(config) as services:
        left = [project.project_id for project in services.directory.projects()]
    for project_id in left:
        main(["project", "remove", project_id, "--yes", "--force"])


def credentials(account_id: str) -> dict[str, str]:
    return {"AWS_ACCESS_KEY_ID": account_id, "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}


def queues_of(operator: AwsShell, key: ProjectUser) -> list[str]:
    wanted = names.queues_of(key)
    every = (wanted.input, wanted.output, wanted.interrupts)
    urls = operator.account.clients.sqs.list_queues(QueueNamePrefix=f"{names.PREFIX}-").get("QueueUrls", [])
    return [name for name in every if any(url.endswith(f"/{name}") for url in urls)]


def buckets(operator: AwsShell) -> set[str]:
    return {one["Name"] for one in operator.account.clients.s3.list_buckets()["Buckets"]}


def test_a_customer_is_onboarded_by_one_command_and_again_is_harmless(operator: AwsShell) -> None:
    for first in (True, False):
        code, out, err = operator.add()
        assert code == 0, err
        assert f"mail from {ANN} to {MAILBOX} changes it" in out
        assert ("a first mail is on its way" in out) == first
    assert len(queues_of(operator, KILN_ANN)) == 3
    assert operator.objects("kiln/")
    page = operator.page()
    assert b"<h1>Kiln</h1>" in page
    [project] = operator.ask("project", "list")
    assert project["senders"] == [{"address": ANN, "user": "ann", "role": "both"}]


def test_a_mail_goes_the_whole_way_and_the_commands_show_it(operator: AwsShell) -> None:
    assert operator.add("--no-sample-mail")[0] == 0
    with operator.worker("--name", "the potter"):
        trip = operator.ask("aws", "smoke", "--from", ANN, "--text", "Set the title to Spring Sale", "--seconds", "240")
        assert trip["outcome"] == "succeeded"
        [claim] = operator.ask("claims")
        assert (claim["key"], claim["live"]) == ("kiln#ann", True)
        assert operator.run("worker", "health")[0] == 0
        with operator.services() as services:
            detail = services.overview.mail(trip["email_id"])
        assert detail
        assert [entry.kind for entry in detail.timeline if entry.kind in MOMENTS] == MOMENTS
        [committed] = [entry for entry in detail.timeline if entry.kind == "ChangeCommitted"]
        assert committed.data["files"] == ["index.html"]
        assert {entry.worker for entry in detail.timeline} == {None, "the potter"}
    page = operator.page()
    assert b"Spring Sale" in page
    assert operator.run("worker", "health")[0] == 3
    status = operator.ask("status")
    assert status["recent"][0]["job"]["outcome"] == "succeeded"
    assert status["recent"][0]["job"]["worker"] == "the potter", "though it has left"
    assert operator.ask("queues")["queues"] == []
    shown = operator.ask("release", "list", "kiln")
    assert [one["shown"] for one in shown] == [True, False]
    assert operator.run("release", "rollback", "kiln")[0] == 0
    page = operator.page()
    assert b"<h1>Kiln</h1>" in page
    assert operator.ask("costs") == []


def test_a_worker_without_a_claim_is_shown_and_asked_for_by_its_name(operator: AwsShell) -> None:
    with operator.worker("--name", "the keeper of kilns", "--slots", "3") as pid:
        until(lambda: operator.ask("status")["pool"]["workers"], "the worker to say that it is there")
        [worker] = operator.ask("status")["pool"]["workers"]
        assert (worker["name"], worker["pid"], worker["slots"]) == ("the keeper of kilns", pid, 3)
        assert "the keeper of kilns" in operator.run("status")[1]
        assert operator.run("worker", "health", "--name", "the keeper of kilns")[0] == 0
        code, _, err = operator.run("worker", "health", "--name", "nobody")
        assert code == 3
        assert "there is no worker 'nobody'" in err
        code, _, err = operator.run("worker", "--name", "the keeper of kilns")
        assert code == 4
        assert f"a worker named 'the keeper of kilns' runs already, as process {pid}" in err
    assert operator.ask("status")["pool"]["workers"] == []


def test_a_refused_mail_is_shown_as_refused_with_the_reason(operator: AwsShell, tmp_path: Path) -> None:
    mail = tmp_path / "mail.eml"
    mail.write_text(f"From: stranger@example.org\nTo: {MAILBOX}\nSubject: Hello\nMessage-ID: <9@example.org>\n\nHi\n")
    email_id = operator.run("send", str(mail))[1].split()[-1]

    def refused() -> Any:  # noqa: ANN401  JSON
        mails = {one["email_id"]: one for one in operator.ask("status")["recent"]}
        return mails.get(email_id, {}).get("stopped_because")

    until(refused, "the refusal to be noted")
    reason = refused()
    assert "refused" in operator.run("status")[1]
    with operator.services() as services:
        detail = services.overview.mail(email_id)
    assert detail
    [entry] = [entry for entry in detail.timeline if entry.kind == "MailRefused"]
    assert entry.data["reason"] == reason


def test_the_claim_of_a_customer_who_left_goes_too(operator: AwsShell) -> None:
    operator.add("--no-sample-mail")
    with operator.services() as services:
        now = services.clock.now()
        services.jobs.record(NewJob("j2", KILN_ANN, "t1", "f" * 64, Command.EDIT), now, ready=True)
        started = services.pool.claims.claim_and_start(KILN_ANN, "w1", now)
    assert isinstance(started, StartedJob)
    assert operator.run("project", "remove", "kiln", "--yes", "--force")[0] == 0
    assert operator.ask("claims") == []
    with operator.services() as services:
        assert services.pool.claims.renew([started.claim], services.clock.now()) == set()


def test_the_claim_of_a_worker_that_died_on_this_machine_is_neither_live_nor_busy(operator: AwsShell) -> None:
    operator.add("--no-sample-mail")
    with operator.services() as services:
        now = services.clock.now()
        services.jobs.record(NewJob("j3", KILN_ANN, "t1", "c" * 64, Command.EDIT), now, ready=True)
        started = services.pool.claims.claim_and_start(KILN_ANN, "w-died", now)
        locks = services.config.data / "run" / "workers"
    assert isinstance(started, StartedJob)
    assert [(claim["live"], claim["busy"]) for claim in operator.ask("claims")] == [(True, True)]
    locks.mkdir(parents=True, exist_ok=True)
    (locks / "w-died").write_text("1\n")  # left behind, and no process holds its lock
    assert [(claim["live"], claim["busy"]) for claim in operator.ask("claims")] == [(False, False)]
    assert "its worker is dead" in operator.run("claims")[1]
    assert operator.ask("queues")["queues"][0]["owner"] is None


def test_a_mail_file_is_sent_as_ses_would_store_it(operator: AwsShell, tmp_path: Path) -> None:
    operator.add("--no-sample-mail")
    mail = tmp_path / "mail.eml"
    mail.write_text(f"From: {ANN}\nTo: {MAILBOX}\nSubject: Hello\nMessage-ID: <1@example.com>\n\nSet the title to A\n")
    code, out, err = operator.run("send", str(mail))
    assert code == 0, err
    assert f"accepted from {ANN} to {MAILBOX}: taken as mail " in out
    email_id = out.split()[-1]

    def taken() -> bool:
        with operator.services() as services:
            return services.overview.mail(email_id) is not None

    until(taken, "the intake to take it")
    code, out, _ = operator.run("send", str(mail))
    assert code == 0
    assert f"was here already, as {email_id}" in out


def test_a_reply_that_ses_did_not_take_is_listed_and_sent_again(operator: AwsShell) -> None:
    reply = Reply("e" * 64, "answer", ANN, "<r@localhost>", b"raw", "")
    with operator.services() as services:
        services.outbox.put(reply, services.clock.now())
        services.outbox.mark_failed(reply, "the address is on the suppression list", None)
    assert "the address is on the suppression list" in operator.run("replies", "list")[1]
    code, out, _ = operator.run("replies", "send-again", reply.email_id[:12])
    assert (code, out) == (0, f"the reply to {ANN} for mail {reply.email_id[:12]} is sent again within two minutes\n")
    assert operator.ask("replies", "list") == []
    with operator.services() as services:
        services.outbox.mark_sent(reply, services.clock.now())


@pytest.mark.parametrize("nothing", ["nope", "a/b", "x" * 3000, "\N{SNOWMAN}", " "], ids=lambda nothing: nothing[:8])
def test_what_is_not_there_is_told(operator: AwsShell, nothing: str) -> None:
    for command in (
        ("pause",), ("resume",), ("costs",), ("dlq", "show"), ("dlq", "redrive"), ("replies", "send-again"),
        ("project", "show"), ("project", "remove", "--yes"), ("project", "credential", "--remove"),
        ("release", "list"), ("release", "rollback"), ("worker", "health", "--name"),
    ):  # fmt: skip
        try:
            code, out, err = operator.run(*command, nothing)
        except SystemExit as refused:
            code, (out, err) = int(refused.code or 0), operator.capsys.readouterr()
        assert code in (1, 2, 3), (command, out)
        assert out == ""
        assert "webordinary" in err
        assert "unexpected" not in err


def test_what_a_site_may_cost_can_be_set(operator: AwsShell) -> None:
    operator.add("--no-sample-mail")
    assert operator.ask("project", "set", "kiln", "--daily-cap", "2.5")["daily_cap_usd"] == 2.5
    assert operator.ask("project", "show", "kiln")["daily_cap_usd"] == 2.5


def test_a_paused_site_waits_and_goes_on(operator: AwsShell) -> None:
    operator.add("--no-sample-mail")
    assert operator.run("pause", "kiln")[0] == 0
    assert operator.ask("project", "show", "kiln")["paused"] is True
    assert operator.run("resume", "kiln")[0] == 0
    assert operator.ask("project", "show", "kiln")["paused"] is False


def test_dead_letters_are_shown_redriven_and_dropped(operator: AwsShell, tmp_path: Path) -> None:
    operator.add("--no-sample-mail")
    mail = tmp_path / "mail.eml"
    mail.write_text(f"From: {ANN}\nTo: {MAILBOX}\nSubject: Lost\nMessage-ID: <2@example.com>\n\nSet the title to A\n")
    email_id = operator.run("send", str(mail))[1].split()[-1]
    with operator.services() as services:
        for reason in ("the kiln exploded", "the clay is gone"):
            services.dead_letters.add(email_id, None, reason, services.clock.now())
    second, first = (one for one in operator.ask("dlq", "list") if one["email_id"] == email_id)
    assert operator.run("dlq", "drop", str(second["letter_id"]), "--yes")[0] == 0
    assert "the kiln exploded" in operator.run("dlq", "show", str(first["letter_id"]))[1]
    [done] = operator.ask("dlq", "redrive", email_id[:12])
    assert done["execution"] == f"{email_id}-r1"
    assert not [one for one in operator.ask("dlq", "list") if one["email_id"] == email_id]
    machine = operator.account.standing.state_machine_arn.replace(":stateMachine:", ":execution:")
    arn = f"{machine}:{email_id}-r1"
    assert operator.account.clients.stepfunctions.describe_execution(executionArn=arn)["name"] == f"{email_id}-r1"


def test_a_redriven_mail_is_shown_by_its_last_run(operator: AwsShell, tmp_path: Path) -> None:
    mail = tmp_path / "mail.eml"
    mail.write_text(f"From: {ANN}\nTo: {MAILBOX}\nSubject: Twice\nMessage-ID: <3@example.com>\n\nSet the title to A\n")
    email_id = operator.run("send", str(mail))[1].split()[-1]
    dead = Settlement(JobOutcome.DEAD, JobResult("", error="the kiln exploded"))
    with operator.services() as services:
        until(lambda: services.overview.mail(email_id), "the intake to take it")
        jobs, now = services.jobs, services.clock.now()
        jobs.record(NewJob(job_id_of(email_id), KILN_ANN, "t1", email_id, Command.EDIT), now)
        jobs.settle_waiting(job_id_of(email_id), dead, now)
        jobs.record(NewJob(job_id_of(email_id, 1), KILN_ANN, "t1", email_id, Command.EDIT), now)
        shown = services.overview.mail(email_id)
        jobs.settle_waiting(job_id_of(email_id, 1), dead, now)
    assert shown
    assert shown.summary.job
    assert (shown.summary.job.job_id, shown.summary.job.outcome) == (job_id_of(email_id, 1), None)


def test_a_site_with_open_jobs_is_removed_only_by_force_and_its_repository_stays(operator: AwsShell) -> None:
    operator.add("--no-sample-mail")
    with operator.services() as services:
        new = NewJob("j1", KILN_ANN, "t1", "e" * 64, Command.EDIT)
        services.jobs.record(new, services.clock.now(), ready=True)
        origin = services.directory.project("kiln")
    assert origin
    code, _, err = operator.run("project", "remove", "kiln", "--yes")
    assert code == 1
    assert "kiln has open jobs (kiln#ann)" in err
    assert len(queues_of(operator, KILN_ANN)) == 3
    code, out, err = operator.run("project", "remove", "kiln", "--yes", "--force")
    assert code == 0, err
    assert f"its repository {origin.repo} stays" in out
    assert queues_of(operator, KILN_ANN) == []
    assert operator.objects("kiln/") == []
    assert Path(origin.repo).is_dir()
    with operator.services() as services:
        assert services.directory.entries(ANN) == ()
    assert operator.run("project", "remove", "kiln", "--yes")[0] == 1


def test_one_person_leaves_a_site_and_is_a_stranger_to_it(operator: AwsShell, tmp_path: Path) -> None:
    operator.add("--no-sample-mail", name="pots")
    _, out, _ = operator.add(name="pots", user="bob", sender=BOB)
    assert "a first mail is on its way" not in out, "the site has had one"

    def mail(number: int) -> str:
        file = tmp_path / f"{number}.eml"
        head = f"From: {BOB}\nTo: {MAILBOX}\nSubject: Title\nMessage-ID: <pots-{number}@example.com>\n"
        file.write_text(f"{head}\nSet the title to Pots\n")
        return str(operator.run("send", str(file))[1].split()[-1])

    def token_is_bound() -> bool:
        with operator.services() as services:
            return any(job.task_token for job in services.jobs.open_jobs(POTS_BOB))

    asked = mail(1)
    until(token_is_bound, "the workflow to wait for a worker")
    leave = ("project", "remove", "pots", "--sender", BOB, "--yes")
    code, _, err = operator.run(*leave)
    assert (code, f"{BOB} has open jobs on pots (1)" in err) == (1, True)
    left = operator.ask(*leave, "--force")
    assert left == {"project": "pots", "removed": [BOB], "stopped": 1, "may_change_it": [ANN]}

    def answered() -> bool:
        with operator.services() as services:
            return any(b"may not change this site any more" in one.reply.raw for one in services.outbox.of(asked))

    until(answered, "the answer to what was stopped")
    late = mail(2)

    def refused() -> bool:
        with operator.services() as services:
            detail = services.overview.mail(late)
            return detail is not None and "MailRefused" in detail.summary.milestones

    until(refused, "the mail of a stranger to be refused")
    assert len(queues_of(operator, POTS_BOB)) == 3, "others may go on in the conversations"
    assert operator.run("project", "remove", "pots", "--yes")[0] == 0
    assert queues_of(operator, POTS_BOB) == []


def test_the_doctor_finds_all_in_order_and_says_what_is_missing(operator: AwsShell) -> None:
    operator.add("--no-sample-mail")
    code, out, err = operator.run("doctor", "--port", "0", "--preview-port", "0")
    assert code == 0, out + err
    for found in (
        "table webordinary-active-jobs",
        "queues of kiln#ann",
        "16 lambdas",
        "is this version's",
        "SES sends",
    ):
        assert found in out
    sqs = operator.account.clients.sqs
    sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=names.queues_of(KILN_ANN).interrupts)["QueueUrl"])
    operator.account.clients.s3.put_bucket_versioning(
        Bucket=operator.bucket, VersioningConfiguration={"Status": "Suspended"}
    )
    code, out, _ = operator.run("doctor", "--port", "0", "--preview-port", "0")
    assert code == 1
    assert f"fail  queue {names.queues_of(KILN_ANN).interrupts} is not there" in out
    assert f"fail  bucket {operator.bucket} does not keep what is replaced" in out
    assert operator.add("--no-sample-mail")[0] == 0
    make_site_bucket(operator.account.clients.s3, operator.bucket)
    assert operator.run("doctor", "--port", "0", "--preview-port", "0")[0] == 0


def test_the_doctor_of_an_empty_account_says_deploy(operator: AwsShell) -> None:
    empty = f"{int(operator.account.account_id) // 7:012d}"
    with pytest.MonkeyPatch.context() as environment:
        for name, value in (credentials(empty) | {"WEBORDINARY_AWS_ACCOUNT": empty}).items():
            environment.setenv(name, value)
        code, out, _ = operator.run("doctor", "--port", "0", "--preview-port", "0")
    assert code == 1
    assert "fail  table webordinary-mails is not there — `webordinary aws deploy` makes it" in out
    assert "fail  lambda webordinary-intake is not there" in out
    assert "fail  SES does not send as example.net yet" in out


def test_credentials_of_another_account_are_noticed(operator: AwsShell) -> None:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ACCESS_KEY_ID", "210987654321")
        code, out, _ = operator.run("doctor", "--port", "0", "--preview-port", "0")
    assert code == 1
    assert "these are credentials of account 210987654321" in out


@pytest.mark.parametrize("command", [("backup", "x.tar.gz"), ("replay", "j1")])
def test_what_works_on_a_data_folder_only_says_so(operator: AwsShell, command: tuple[str, ...]) -> None:
    code, _, err = operator.run(*command)
    assert code != 0
    assert "this works on a data folder; on AWS tables and buckets keep their own earlier states" in err
