"""What an operator chooses for a deployment: `cdk deploy -c domain=example.com -c operator=you@example.com …`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from aws_cdk import Aws

from webordinary.adapters.aws import names
from webordinary.adapters.aws.names import MIN_RETENTION_DAYS

MOST_TARGETS = 5
"""Of a rule of EventBridge (EventBridge quotas, "Targets per rule")."""
_DOMAIN = re.compile(r"([a-z0-9-]{1,63}\.)+[a-z0-9-]{2,63}")
_MODEL = re.compile(r"([a-z-]{1,16}\.)?anthropic\.[a-z0-9.:-]{1,100}")


CONSOLE_SETTINGS = tuple(
    f"console_{name}" for name in ("certificate", "issuer", "authorization", "token", "userinfo", "client_id", "secret")
)
_NUMBERS = {"max_workers", "reconcilers", "worker_cpu", "worker_memory", "retention_days", "unadmitted_mail_mb"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every choice there is; docs/aws.md has a row for each."""

    account: str = ""
    domain: str = "example.com"
    mailbox: str = ""
    identity: str = "made"
    receipt_rules: str = names.RECEIPT_RULES
    operator: str = ""
    hosted_zone: str = ""
    certificate: str = ""
    own_domains: bool = True
    lambda_code: str = "build/lambda/aws.zip"
    capacity: str = "ec2"
    spot: bool = False
    nat: str = "gateway"
    instance_types: tuple[str, ...] = ("m7g.large", "m6g.large")
    max_workers: int = 10
    reconcilers: int = 1
    worker_cpu: int = 2048
    worker_memory: int = 7168
    image_tag: str = ""
    agent_secret: str = ""
    bedrock_model: str = ""
    retention_days: int = 30
    unadmitted_mail_mb: int = 500
    acknowledge_seconds: float = 90
    runbook: str = "docs/aws.md"
    keep: bool = True
    console: str = ""
    console_certificate: str = ""
    console_issuer: str = ""
    console_authorization: str = ""
    console_token: str = ""
    console_userinfo: str = ""
    console_client_id: str = ""
    console_secret: str = ""
    console_claim: str = "email"
    console_operators: str = ""
    console_viewers: str = ""

    def __post_init__(self) -> None:
        _one_of("capacity", self.capacity, ("ec2", "fargate"))
        _one_of("nat", self.nat, ("gateway", "instance"))
        _one_of("identity", self.identity, ("made", "existing"))
        if not _DOMAIN.fullmatch(self.domain):
            raise ValueError(f"domain: {self.domain!r} is no domain: write it like example.com")
        if self.certificate and ":acm:us-east-1:" not in self.certificate:
            raise ValueError("certificate: CloudFront takes certificates of us-east-1 only; name one by its ARN")
        if self.bedrock_model and not _MODEL.fullmatch(self.bedrock_model):
            todo = "take an id that `aws bedrock list-inference-profiles` shows, such as eu.anthropic.claude-…"
            raise ValueError(f"bedrock_model: {self.bedrock_model!r} is no model of Anthropic's on Bedrock: {todo}")
        if self.bedrock_model and self.agent_secret:
            raise ValueError("agent_secret and bedrock_model are two ways to the model: take one of them")
        if not 1 <= self.reconcilers <= MOST_TARGETS:
            raise ValueError(f"reconcilers is {self.reconcilers}: take 1 to {MOST_TARGETS}")
        if self.retention_days < MIN_RETENTION_DAYS:
            why = f"a mail may wait for a week: take {MIN_RETENTION_DAYS} or more"
            raise ValueError(f"retention_days is {self.retention_days}, and {why}")
        if self.console:
            self._check_console()
        elif given := [name for name in CONSOLE_SETTINGS if getattr(self, name)]:
            raise ValueError(f"{given[0]} is for a console behind a load balancer: name its host, console=…")
        if not self.mailbox:
            object.__setattr__(self, "mailbox", names.mailbox_of(self.domain))
        if self.operator.rpartition("@")[2].lower() == self.mail_domain:
            why = f"mail to {self.mail_domain} comes to WebOrdinary: alarms and their confirmation would never arrive"
            raise ValueError(f"operator is {self.operator}, but {why}. Take an address of another domain")

    def _check_console(self) -> None:
        """A console with any part of its login missing is not made: others could get in, or none."""
        if not _DOMAIN.fullmatch(self.console):
            raise ValueError(f"console: {self.console!r} is no host name: write it like console.example.com")
        if missing := [name for name in CONSOLE_SETTINGS if not getattr(self, name)]:
            raise ValueError(f"console needs {', '.join(missing)}, too: its load balancer signs users in with them")
        if ":acm:" not in self.console_certificate or ":certificate/" not in self.console_certificate:
            raise ValueError("console_certificate: name a certificate of the deployment's region by its ARN")
        for name in ("issuer", "authorization", "token", "userinfo"):
            if not getattr(self, f"console_{name}").startswith("https://"):
                raise ValueError(f"console_{name}: take the address that the provider publishes, with https")
        _one_of("console_claim", self.console_claim, ("email", "sub"))
        people = (self.console_operators + " " + self.console_viewers).split()
        if not people or any(sign in person for person in people for sign in "\"'\\,"):
            raise ValueError("console_operators and console_viewers: name people, with blanks between them")

    @property
    def account_id(self) -> str:
        """The account, as a literal where it is known: CloudFormation adopts a bucket only by a literal name."""
        return self.account or Aws.ACCOUNT_ID

    @property
    def mail_domain(self) -> str:
        """The domain that SES receives mail for and signs mail of."""
        return self.mailbox.rpartition("@")[2]

    @classmethod
    def read(cls, context: Callable[[str], str | None]) -> Settings:
        """From CDK's context; what is not said there has its default."""
        said = {name: str(value) for name in cls.__slots__ if (value := context(name)) is not None}
        given: dict[str, object] = dict(said)
        if "instance_types" in said:
            given["instance_types"] = tuple(filter(None, (name.strip() for name in said["instance_types"].split(","))))
        for flag in ("own_domains", "spot", "keep"):
            if flag in said:
                _one_of(flag, said[flag].lower(), ("true", "false"))
                given[flag] = said[flag].lower() == "true"
        for number in _NUMBERS & said.keys():
            given[number] = int(said[number])
        if "acknowledge_seconds" in said:
            given["acknowledge_seconds"] = float(said["acknowledge_seconds"])
        return cls(**given)  # type: ignore[arg-type]


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}: take {' or '.join(allowed)}")
