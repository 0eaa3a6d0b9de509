"""Checks of the AWS account: identity, clock, permissions, SES and DNS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

import dns.resolver
from botocore.exceptions import BotoCoreError, ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import CREDENTIALS, Clients, code_of, outage_behind, translated
from webordinary.model.checks import Check, CheckResult, broken, doubtful, good

ANSWER_SECONDS = 5.0
SES_SPF = "include:amazonses.com"
BOUNCE = "bounce"
"""Below our domain: where bounces of what SES sends go; infra names it so."""


class DnsChecks:
    """`resolver` asks the name servers of this machine by default."""

    def __init__(
        self,
        domain: str,
        region: str,
        tokens: Callable[[], Sequence[str]],
        resolver: dns.resolver.Resolver | None = None,
    ) -> None:
        self._domain, self._tokens, self._resolver = domain, tokens, resolver or dns.resolver.Resolver()
        self._inbound = f"inbound-smtp.{region}.amazonaws.com"

    def checks(self) -> Iterator[Check]:
        """One check for each DNS record."""
        yield Check("dns mx", self.mx)
        yield Check("dns dkim", self.dkim)
        yield Check("dns spf", self.spf)
        yield Check("dns dmarc", self.dmarc)

    def mx(self) -> CheckResult:
        """Does mail to us go to SES?"""
        expected = f"{self._domain} MX 10 {self._inbound}"
        found = self._ask(self._domain, "MX")
        if not any(self._inbound in one.lower() for one in found):
            return broken(
                f"mail to {self._domain} goes to {', '.join(found) or 'no host'}", f"set the record {expected}"
            )
        others = [one for one in found if self._inbound not in one.lower()]
        if others:
            return doubtful(f"mail to {self._domain} also goes to {', '.join(others)}", "leave SES's MX record alone")
        return good(f"mail to {self._domain} goes to SES")

    def dkim(self) -> CheckResult:
        """Is what we send signed by our domain?"""
        tokens = self._tokens()
        if not tokens:
            return broken(f"SES knows no keys for {self._domain}", "`webordinary aws deploy` makes the identity")
        for token in tokens:
            name, target = f"{token}._domainkey.{self._domain}", f"{token}.dkim.amazonses.com"
            if not any(target in one.lower() for one in self._ask(name, "CNAME")):
                return broken(f"the DKIM record {name} is missing", f"set {name} CNAME {target}")
        return good(f"{len(tokens)} DKIM records of {self._domain}")

    def spf(self) -> CheckResult:
        """May SES send for us?"""
        for name in (f"{BOUNCE}.{self._domain}", self._domain):
            if any(SES_SPF in one for one in self._ask(name, "TXT") if "v=spf1" in one):
                return good(f"SPF of {name} allows SES")
        name = f"{BOUNCE}.{self._domain}"
        return doubtful(f"no SPF record allows SES to send for {name}", f'set {name} TXT "v=spf1 {SES_SPF} ~all"')

    def dmarc(self) -> CheckResult:
        """Do receivers know what to do with forgeries?"""
        name = f"_dmarc.{self._domain}"
        if not any("v=DMARC1" in one for one in self._ask(name, "TXT")):
            return doubtful(f"{self._domain} has no DMARC policy", f'set {name} TXT "v=DMARC1; p=quarantine"')
        return good(f"DMARC policy of {self._domain}")

    def _ask(self, name: str, kind: str) -> list[str]:
        return ask(self._resolver, name, kind)


def ask(resolver: dns.resolver.Resolver, name: str, kind: str) -> list[str]:
    """The records of this kind; none where the name or the kind is not there."""
    try:
        answer = resolver.resolve(name, kind, lifetime=ANSWER_SECONDS, search=False)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return []
    return [one.to_text() for one in answer]


CLOCKS_APART_SECONDS, CLOCKS_REFUSED_SECONDS = 30, 240
"""AWS refuses what was signed more than five minutes ago, or will be."""
OPERATING = (
    "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Scan", "s3:PutObject", "sqs:CreateQueue", "sqs:GetQueueUrl",
    "states:StartExecution", "states:GetExecutionHistory", "lambda:GetFunctionConfiguration", "ses:GetEmailIdentity",
    "ssm:PutParameter",
)  # fmt: skip
"""What an operator's commands do, one of each kind."""


class AccountChecks:
    """`session` is boto3's; `account` is the one that the settings name, or empty."""

    def __init__(self, session: Any, config: Any, endpoint: str | None, account: str) -> None:  # noqa: ANN401
        self._session, self._config, self._endpoint, self._account = session, config, endpoint, account

    def checks(self) -> Iterator[Check]:
        """All of them."""
        yield Check("identity", self.identity)
        yield Check("clock", self.clock)
        if not self._endpoint:  # an emulator allows everything
            yield Check("permissions", self.permissions)

    def identity(self) -> CheckResult:
        """Do our credentials belong to the account that is meant?"""
        try:
            who = self._client("sts").get_caller_identity()
        except (ClientError, BotoCoreError) as problem:
            if outage := outage_behind(problem):
                return broken(outage.what, outage.todo)
            return broken(f"AWS does not know us: {problem}", CREDENTIALS)
        if self._account and who["Account"] != self._account:
            return broken(
                f"these are credentials of account {who['Account']}, the settings name {self._account}",
                "use the other credentials, or correct aws_account",
            )
        return good(f"{who['Arn']} in account {who['Account']}")

    def clock(self) -> CheckResult:
        """Is our clock AWS's?"""
        answer = self._client("sts").get_caller_identity()
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        if not date:
            return doubtful("AWS did not say what time it is", "compare this machine's clock by hand: `date -u`")
        apart = abs((datetime.now(UTC) - parsedate_to_datetime(date)).total_seconds())
        words = f"this machine's clock and AWS's are {apart:.0f} s apart"
        if apart > CLOCKS_REFUSED_SECONDS:
            return broken(words, "let it follow a time server; AWS refuses requests of another time")
        return doubtful(words, "let it follow a time server") if apart > CLOCKS_APART_SECONDS else good(words)

    def permissions(self) -> CheckResult:
        """May we do what an operator does? Simulated, where we may simulate."""
        arn = self._client("sts").get_caller_identity()["Arn"]
        if arn.endswith(":root"):
            return doubtful("these are the root user's credentials", "make a user or role of your own for this")
        try:
            found = self._client("iam").simulate_principal_policy(
                PolicySourceArn=principal_of(arn), ActionNames=list(OPERATING)
            )
        except ClientError as problem:
            words = f"what {arn} may do cannot be asked ({code_of(problem)})"
            return doubtful(words, "allow it iam:SimulatePrincipalPolicy, or rely on the checks of each service here")
        missing = [one["EvalActionName"] for one in found["EvaluationResults"] if one["EvalDecision"] != "allowed"]
        if missing:
            return doubtful(f"not allowed on every resource: {', '.join(missing)}", "fine if allowed on ours by name")
        return good("allowed to operate")

    def _client(self, service: str) -> Any:  # noqa: ANN401
        return self._session.client(service, config=self._config, endpoint_url=self._endpoint)


def principal_of(arn: str) -> str:
    """The role behind an assumed role's session; policies are the role's."""
    head, _, rest = arn.partition(":assumed-role/")
    if not rest:
        return arn
    return f"{head.replace(':sts:', ':iam:')}:role/{rest.split('/')[0]}"


class MailChecks:
    """`receiving` is the client of SES version 1, the only one with receipt rules."""

    def __init__(self, clients: Clients, receiving: Any, mailbox: str, *, emulated: bool) -> None:  # noqa: ANN401
        self._ses, self._receiving, self._mailbox, self._emulated = clients.ses, receiving, mailbox, emulated

    def checks(self) -> Iterator[Check]:
        """An emulator receives nothing and is no sandbox."""
        yield Check("sender", self.identity)
        if not self._emulated:
            yield Check("sandbox", self.sandbox)
            yield Check("receiving", self.receiving)

    def identity(self) -> CheckResult:
        """May we send as our mailbox, or as its domain?"""
        domain = self._mailbox.rpartition("@")[2]
        for name in (domain, self._mailbox):
            found = self._identity(name)
            if found and found.get("VerifiedForSendingStatus"):
                return good(f"SES sends as {name}")
        return broken(
            f"SES does not send as {domain} yet",
            f"`webordinary aws deploy` makes the identity; set the DKIM records that SES shows for {domain}",
        )

    def dkim_tokens(self) -> Sequence[str]:
        """What the DKIM records of our domain are called; none where there is no identity."""
        found = self._identity(self._mailbox.rpartition("@")[2])
        return found.get("DkimAttributes", {}).get("Tokens", []) if found else []

    def sandbox(self) -> CheckResult:
        """May we write to everybody?"""
        with translated("asking SES about our account"):
            account = self._ses.get_account()
        if not account.get("SendingEnabled", True):
            return broken("SES has stopped our sending", "read its reputation page and write to AWS's support")
        if not account.get("ProductionAccessEnabled"):
            return broken("SES sends to verified addresses only", "ask AWS for production access of SES")
        return good("SES sends to everybody")

    def receiving(self) -> CheckResult:
        """Is there a rule for our domain among the active ones?"""
        domain = self._mailbox.rpartition("@")[2]
        with translated("asking SES for its receipt rules"):
            found = self._receiving.describe_active_receipt_rule_set()
        active = found.get("Metadata", {}).get("Name", "")
        taken = [
            rule for rule in found.get("Rules", []) if rule.get("Enabled") and domain in rule.get("Recipients", [])
        ]
        if not taken:
            return broken(
                f"the active receipt rules ({active or 'none'}) take no mail of {domain}",
                f"aws ses set-active-receipt-rule-set --rule-set-name {names.RECEIPT_RULES}, or deploy with "
                f"`-c receipt_rules={active or names.RECEIPT_RULES}`",
            )
        return good(f"SES receives by the rules {active}")

    def _identity(self, name: str) -> Any:  # noqa: ANN401
        with translated(f"asking SES about {name}"):
            try:
                return self._ses.get_email_identity(EmailIdentity=name)
            except ClientError as problem:
                if code_of(problem) != "NotFoundException":
                    raise
                return None


NO_DOMAIN = "localhost"
_POINT_IT = "deploy with `-c hosted_zone=…` or `-c certificate=…`: docs/aws.md, A customer"


def site_name_checks(
    hosts: Sequence[str], domain: str, resolver: dns.resolver.Resolver | None = None
) -> Iterator[Check]:
    """One per host name, or a single one where no domain is set."""
    if domain == NO_DOMAIN:
        yield Check("site names", _no_domain)
        return
    resolver = resolver or dns.resolver.Resolver()
    for host in hosts:
        yield Check(f"site name {host}", partial(_site_name, resolver, host))


def _no_domain() -> CheckResult:
    return doubtful(
        f"no domain is set, so links in replies lead to {NO_DOMAIN}",
        "set domain, or WEBORDINARY_DOMAIN, to what was deployed with `-c domain=…`",
    )


def _site_name(resolver: dns.resolver.Resolver, host: str) -> CheckResult:
    if not any(ask(resolver, host, kind) for kind in ("A", "AAAA")):
        return doubtful(f"{host} has no address, so links in replies lead nowhere", _POINT_IT)
    return good(f"{host} has an address")
