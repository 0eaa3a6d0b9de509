"""The console as a task on AWS: its login, its walls, its role, and every action of it on an account."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.infra.templates import StackTemplates, plain, ready, synthesise  # first: it skips where something is missing

# isort: split
from starlette.testclient import TestClient

from tests.aws.emulator import RunningEmulator
from tests.infra.calls import Right, allowed
from tests.infra.rights_harness import KEY, SCOTT, TIMEOUT_SECONDS, Listening, RightsHarness, through, walk
from tests.integration.test_console import COMMANDS
from webordinary.adapters.aws import names
from webordinary.adapters.aws.pool.claim_table import Presence
from webordinary.adapters.aws.provision.preflight import CONSOLE_CPU, CONSOLE_MEMORY, CONSOLE_USD
from webordinary.compose.aws import AwsContainer
from webordinary.compose.aws_worker import run_cloud_worker
from webordinary.config import Config
from webordinary.entrypoints.dashboard.ports import EventFeed
from webordinary.entrypoints.dashboard.web import create_app
from webordinary.entrypoints.server import balancer_login, dashboard_of
from webordinary.model.claims import StartedJob
from webordinary.model.errors import Permanent
from webordinary.model.projects import Sender
from webordinary.model.snapshot import WorkerSummary
from webordinary.operations.capacity.costs import COMPUTE, CONSOLE_MONTH, MONTH_HOURS, NETWORK, price
from webordinary.operations.pool import drain_worker

pytestmark = pytest.mark.xdist_group("infra")
CONSOLE = {
    "console": "console.example.com",
    "console_certificate": "arn:aws:acm:eu-west-1:111122223333:certificate/12345678",
    "console_issuer": "https://login.example.org",
    "console_authorization": "https://login.example.org/authorize",
    "console_token": "https://login.example.org/token",
    "console_userinfo": "https://login.example.org/userinfo",
    "console_client_id": "webordinary",
    "console_secret": "console-oidc",
    "console_operators": "olga@example.org otto@example.org",
    "console_viewers": "vera@example.org",
}
BALANCER = "arn:aws:elasticloadbalancing:eu-west-1:111122223333:loadbalancer/app/webordinary-console/50dc6c495c0c9188"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> StackTemplates:
    """The templates of a deployment that asks for it, with an image."""
    return synthesise(tmp_path_factory.mktemp("asked"), **CONSOLE, image_tag="0.1.0", hosted_zone="Z0123456789")


def test_it_is_there_only_where_it_is_asked_for(cloud: StackTemplates, asked: StackTemplates) -> None:
    assert not cloud.workers.of_type("AWS::ElasticLoadBalancingV2::LoadBalancer")
    assert set(cloud.workers.named("AWS::ECS::Service", "ServiceName")) == {names.SERVICE}
    assert set(asked.workers.named("AWS::ECS::Service", "ServiceName")) == {names.SERVICE, names.CONSOLE}
    assert asked.workers.only("AWS::Route53::RecordSet")["Name"] == "console.example.com."


def test_every_request_is_signed_in_but_a_signed_webhook(asked: StackTemplates) -> None:
    listener = asked.workers.only("AWS::ElasticLoadBalancingV2::Listener")
    first, then = sorted(listener["DefaultActions"], key=lambda action: action["Order"])
    assert (first["Type"], then["Type"], listener["Protocol"]) == ("authenticate-oidc", "forward", "HTTPS")
    login = first["AuthenticateOidcConfig"]
    assert (login["Issuer"], login["OnUnauthenticatedRequest"]) == ("https://login.example.org", "authenticate")
    assert login["ClientSecret"].startswith("{{resolve:secretsmanager:"), "the secret itself is in no template"
    [rule] = asked.workers.of_type("AWS::ElasticLoadBalancingV2::ListenerRule").values()
    assert [one["PathPatternConfig"]["Values"] for one in rule["Conditions"]] == [["/hooks/*"]]


def test_the_task_is_reached_by_its_load_balancer_alone(asked: StackTemplates) -> None:
    groups = asked.workers.of_type("AWS::EC2::SecurityGroup")
    [inside] = [name for name, one in groups.items() if "load balancer alone" in one["GroupDescription"]]
    [outside] = [name for name, one in groups.items() if one["GroupDescription"] == "Console: its load balancer"]
    assert "SecurityGroupIngress" not in groups[inside]
    ways = asked.workers.of_type("AWS::EC2::SecurityGroupIngress").values()
    assert [(plain(way["GroupId"]), plain(way["SourceSecurityGroupId"]), way["FromPort"]) for way in ways] == [
        (f"<{inside}.GroupId>", f"<{outside}.GroupId>", 8080)
    ]
    assert [way["FromPort"] for way in groups[outside]["SecurityGroupIngress"]] == [443]
    service = asked.workers.named("AWS::ECS::Service", "ServiceName")[names.CONSOLE]
    network = service["NetworkConfiguration"]["AwsvpcConfiguration"]
    assert (network["AssignPublicIp"], service["DesiredCount"]) == ("DISABLED", 1)


def test_the_task_understands_what_it_is_told_and_asks_for_the_proof(asked: StackTemplates) -> None:
    task = asked.workers.named("AWS::ECS::TaskDefinition", "Family")[names.CONSOLE]
    assert (task["Cpu"], task["Memory"]) == (str(CONSOLE_CPU), str(CONSOLE_MEMORY))
    [container] = task["ContainerDefinitions"]
    assert (container["Command"][:2], container["User"]) == (["webordinary", "up"], "10001:10001")
    told = {one["Name"]: plain(one["Value"]) for one in container["Environment"]}
    literal = {"AWS_REGION": "eu-west-1", "AWS_ACCOUNT_ID": "111122223333", "WEBORDINARY_ALB_ARN": BALANCER}
    config = Config.load(env={**told, **literal})
    assert (config.public_url, config.host, config.port) == ("https://console.example.com", "0.0.0.0", 8080)
    assert balancer_login(config)
    assert config.console_operators == ("olga@example.org", "otto@example.org")


@pytest.mark.parametrize("part", [name for name in CONSOLE if name not in ("console", "console_viewers")])
def test_without_a_part_of_its_login_it_is_refused_in_words(part: str) -> None:
    ready()
    from infra.settings import Settings

    Settings.read(CONSOLE.get)
    given = {**CONSOLE, part: ""} if part != "console_operators" else {**CONSOLE, part: "", "console_viewers": ""}
    with pytest.raises(ValueError, match=part):
        Settings.read(given.get)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("console", "", "name its host"),
        ("console", "https://console.example.com", "no host name"),
        ("console_token", "http://login.example.org/token", "with https"),
        ("console_certificate", "console", "by its ARN"),
        ("console_claim", "name", "take email or sub"),
        ("console_operators", 'olga@example.org" x', "with blanks"),
    ],
)
def test_a_wrong_setting_of_it_is_answered_with_what_is_right(name: str, value: str, words: str) -> None:
    ready()
    from infra.settings import Settings

    with pytest.raises(ValueError, match=words):
        Settings.read({**CONSOLE, name: value}.get)


def test_it_costs_what_preflight_and_simulate_say() -> None:
    assert price(CONSOLE_MONTH) == pytest.approx({COMPUTE: 8.51, NETWORK: 23.73}, abs=0.02)
    assert sum(price(CONSOLE_MONTH).values()) == pytest.approx(CONSOLE_USD, abs=0.02)
    assert CONSOLE_MONTH["fargate.vcpu-hour"] == CONSOLE_CPU / 1024 * MONTH_HOURS
    assert CONSOLE_MONTH["fargate.gb-hour"] == CONSOLE_MEMORY / 1024 * MONTH_HOURS


@dataclass(frozen=True)
class ConsoleAccount:
    """An account after a few mails, its console, and every call that this made."""

    harness: RightsHarness
    services: AwsContainer
    page: TestClient

    def act(self, path: str, **form: str) -> tuple[int, str]:
        """Press a button."""
        answer = self.page.post(path, data=form)
        return answer.status_code, answer.text

    @property
    def used(self) -> set[Right]:
        return self.harness.recorder.used["console"]


@pytest.fixture(scope="module")
def account(ministack: RunningEmulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleAccount]:
    with pytest.MonkeyPatch.context() as patch:
        harness = RightsHarness(ministack.endpoint, tmp_path_factory.mktemp("house"), patch)
        walk(harness)
        harness.directory.add_sender(Sender(SCOTT, KEY), datetime.now(UTC))
        through(harness, harness.mail("Set the title to Second Sale."))
        harness.work()
        harness.recorder.others = "console"
        services = AwsContainer(harness.config, scratch=tmp_path_factory.mktemp("scratch"))
        app = create_app(dashboard_of(services, EventFeed()))
        origin = f"http://127.0.0.1:{harness.config.port}"
        with TestClient(app, base_url=origin, headers={"Origin": origin}, follow_redirects=False) as page:
            yield ConsoleAccount(harness, services, page)


ME = WorkerSummary("container-9", "w9", 7, 1, datetime(2026, 5, 1, tzinfo=UTC))
SITE = "/sites/amelia"
MARKUP = re.compile(r"(<[^>]*>|\s)+")
ROLLBACK = re.compile(r"/sites/amelia/(?:edit|public)/releases/[^/]+/rollbacks")


@pytest.fixture(scope="module")
def surprises(account: ConsoleAccount) -> list[str]:
    """Press every button, then look at every page: what did not answer as it should."""
    done, _, _, _, given_up, _, refused = account.harness.recorder.started[:7]
    harness, table = account.harness, names.OWNERSHIP
    open_mail = harness.mail("Set the title to Autumn Sale.")
    through(harness, open_mail)
    harness.recorder.actor = ""
    started = account.services.pool.claims.claim_and_start(KEY, ME.worker, datetime.now(UTC))
    assert isinstance(started, StartedJob)
    presence = Presence(account.services.dynamo, table)
    assert not presence.renew(ME, datetime.now(UTC))
    shown = ROLLBACK.search(account.page.get(SITE).text)
    assert shown, "an earlier release can be brought back"
    person = {"address": "ann@example.com", "user": "ann"}
    acts: list[tuple[str, str, dict[str, str], int, str]] = [
        ("/mails/{email_id}/interrupts", f"/mails/{started.job.email_id}/interrupts", {}, 303, ""),
        ("/workers/{worker}/drains", f"/workers/{ME.worker}/drains", {}, 303, ""),
        ("/mails/{email_id}/cancellations", f"/mails/{open_mail}/cancellations", {}, 303, ""),
        ("/mails/{email_id}/replays", f"/mails/{done}/replays", {}, 303, ""),
        ("/mails/{email_id}/answers", f"/mails/{done}/answers", {"text": "Hello"}, 303, ""),
        ("/mails/{email_id}/closings", f"/mails/{given_up}/closings", {}, 409, "needs no person"),
        ("/mails/{email_id}/retries", f"/mails/{open_mail}/retries", {}, 409, "ended without success"),
        (
            "/mails/{email_id}/admissions",
            f"/mails/{refused}/admissions",
            {"key": "amelia#scott"},
            409,
            "only a refused mail",
        ),
        ("/mails/{email_id}/releases", f"/mails/{done}/releases", {}, 409, "held"),
        ("/mails/{email_id}/drops", f"/mails/{done}/drops", {}, 409, "held"),
        ("/mails/{email_id}/replies", f"/mails/{done}/replies", {}, 409, "undelivered"),
        ("/dead-letters/{letter_id:int}/redrives", "/dead-letters/1/redrives", {}, 303, ""),
        ("/dead-letters/{letter_id:int}/drops", "/dead-letters/1/drops", {}, 409, "gone"),
        ("/claims/{key}/releases", "/claims/amelia%23scott/releases", {}, 409, "works for"),
        ("/mails", "/mails", {"from": SCOTT, "subject": "A", "text": "Set the title to Hi"}, 303, ""),
        ("/sites/{project_id}/builds", f"{SITE}/builds", {}, 303, ""),
        ("/sites/{project_id}/settings", f"{SITE}/settings", {"title": "Pots"}, 303, ""),
        ("/sites/{project_id}/people", f"{SITE}/people", person, 303, ""),
        ("/sites/{project_id}/people/roles", f"{SITE}/people/roles", {**person, "role": "publisher"}, 303, ""),
        ("/sites/{project_id}/people/removals", f"{SITE}/people/removals", person, 303, ""),
        ("/sites/{project_id}/domains", f"{SITE}/domains", {"domain": "www.pottery.example"}, 200, ""),
        (
            "/sites/{project_id}/domains/removals",
            f"{SITE}/domains/removals",
            {"domain": "www.pottery.example"},
            303,
            "",
        ),
        ("/sites/{project_id}/hooks", f"{SITE}/hooks", {}, 200, ""),
        ("/sites/{project_id}/hooks/removals", f"{SITE}/hooks/removals", {}, 303, ""),
        ("/sites/{project_id}/credentials", f"{SITE}/credentials", {"credential": "x"}, 409, "needs no credential"),
        ("/sites/{project_id}/credentials/removals", f"{SITE}/credentials/removals", {}, 303, ""),
        ("/sites/{project_id}/pauses", f"{SITE}/pauses", {}, 303, ""),
        ("/sites/{project_id}/resumes", f"{SITE}/resumes", {}, 303, ""),
        ("/sites/{project_id}/{stage}/releases/{release}/rollbacks", shown.group(), {}, 303, ""),
        (
            "/sites",
            "/sites",
            {"name": "baker", "repo": "https://127.0.0.1:1/x.git", "user": "ann", "sender": "a@b.example"},
            303,
            "",
        ),
        ("/sites/{project_id}/removals", f"{SITE}/removals", {"name": "amelia", "force": "yes"}, 303, ""),
    ]
    assert {route for route, *_ in acts} == set(COMMANDS)
    found = list[str]()
    for _, path, form, status, words in acts:
        answered, text = account.act(path, **form)
        if answered != status or words not in text:
            found.append(f"{path} {answered} {MARKUP.sub(' ', text)[-300:]}")
    if not presence.renew(ME, datetime.now(UTC)):
        found.append("the worker does not hear that it shall end")
    pages = ["/", "/mails", "/attention", "/pool", "/sites", "/write", "/metrics", "/api/status", f"/mails/{done}"]
    found += [path for path in pages if account.page.get(path).status_code != 200]
    return found


def test_every_action_of_the_console_acts_on_aws_or_says_why_not(surprises: list[str]) -> None:
    assert not surprises, "\n".join(surprises)


@pytest.mark.usefixtures("surprises")
def test_the_consoles_role_may_do_all_that_it_does_and_not_much_more(
    asked: StackTemplates, account: ConsoleAccount
) -> None:
    roles = asked.workers.of_type("AWS::IAM::Role").items()
    granted = asked.workers.rights(next(name for name, role in roles if role.get("RoleName") == names.CONSOLE))
    used = account.used
    assert {"cloudwatch:GetMetricData", "states:StartExecution", "s3:DeleteObjectVersion"} <= {one for one, _ in used}
    beyond = {right for right in used if not allowed(right, granted)}
    emulated = {(action, resource) for action, resource in beyond if "webordinary-mail-" in resource}
    assert {action for action, _ in emulated} == {"s3:PutObject"}, "a mail that SES itself brings on AWS"
    assert sorted(beyond - emulated) == []
    services = {action.partition(":")[0] for action, _ in granted}
    expected = {"dynamodb", "s3", "sqs", "states", "ses", "ssm", "cloudwatch", "cloudfront", "cloudformation", "acm"}
    assert services == expected, "no right to machines, roles, secrets or lambdas"
    assert {action for action, resource in granted if resource == "*"} == {"cloudwatch:GetMetricData"}


def test_a_worker_that_is_asked_to_end_ends_and_gives_its_claim_up(
    ministack: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness, output, stop = RightsHarness(ministack.endpoint, tmp_path, monkeypatch), Listening(), threading.Event()
    through(harness, harness.mail("Set the title to Spring Sale."))
    monkeypatch.setattr(sys, "stdout", output)
    worker = threading.Thread(target=run_cloud_worker, args=(harness.config, 1, stop))
    worker.start()
    try:
        assert output.settled.wait(TIMEOUT_SECONDS)
        services = AwsContainer(harness.config, scratch=tmp_path / "scratch")
        [found] = services.overview.pool(datetime.now(UTC)).workers
        drain_worker(services, found.name, "olga")
        worker.join(TIMEOUT_SECONDS)
        assert not worker.is_alive()
    finally:
        stop.set()
        worker.join(TIMEOUT_SECONDS)
    assert services.overview.pool(datetime.now(UTC)).claims == ()
    with pytest.raises(Permanent, match="there is no worker"):
        drain_worker(services, found.name, "olga")
