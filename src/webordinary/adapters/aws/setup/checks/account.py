"""Who we are on AWS, whether our clocks agree, and what we may do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from webordinary.adapters.aws.clients import code_of
from webordinary.adapters.aws.outages import CREDENTIALS, outage_behind
from webordinary.model.findings import Check, Finding, broken, doubtful, good

CLOCKS_APART_SECONDS, CLOCKS_REFUSED_SECONDS = 30, 240
"""AWS refuses what was signed more than five minutes ago, or will be."""
OPERATING = (
    "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Scan", "s3:PutObject", "sqs:CreateQueue", "sqs:GetQueueUrl",
    "states:StartExecution", "states:GetExecutionHistory", "lambda:GetFunctionConfiguration", "ses:GetEmailIdentity",
    "secretsmanager:PutSecretValue",
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

    def identity(self) -> Finding:
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

    def clock(self) -> Finding:
        """Is our clock AWS's?"""
        answer = self._client("sts").get_caller_identity()
        said = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        if not said:
            return doubtful("AWS did not say what time it is", "compare this machine's clock by hand: `date -u`")
        apart = abs((datetime.now(UTC) - parsedate_to_datetime(said)).total_seconds())
        words = f"this machine's clock and AWS's are {apart:.0f} s apart"
        if apart > CLOCKS_REFUSED_SECONDS:
            return broken(words, "let it follow a time server; AWS refuses requests of another time")
        return doubtful(words, "let it follow a time server") if apart > CLOCKS_APART_SECONDS else good(words)

    def permissions(self) -> Finding:
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
