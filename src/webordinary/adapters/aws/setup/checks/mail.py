"""Does SES take and send our mail?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import Clients, code_of, translated
from webordinary.model.findings import Check, Finding, broken, doubtful, good


class MailChecks:
    """`receiving` is the client of the older SES, the only one that knows what is done with received mail."""

    def __init__(self, clients: Clients, receiving: Any, mailbox: str, *, emulated: bool) -> None:  # noqa: ANN401
        self._ses, self._receiving, self._mailbox, self._emulated = clients.ses, receiving, mailbox, emulated

    def checks(self) -> Iterator[Check]:
        """An emulator receives nothing and is no sandbox."""
        yield Check("sender", self.identity)
        if not self._emulated:
            yield Check("sandbox", self.sandbox)
            yield Check("receiving", self.receiving)

    def identity(self) -> Finding:
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

    def sandbox(self) -> Finding:
        """May we write to everybody?"""
        with translated("asking SES about our account"):
            account = self._ses.get_account()
        if not account.get("SendingEnabled", True):
            return broken("SES has stopped our sending", "read its reputation page and write to AWS's support")
        if not account.get("ProductionAccessEnabled"):
            return doubtful("SES sends to verified addresses only", "ask AWS for production access of SES")
        return good("SES sends to everybody")

    def receiving(self) -> Finding:
        """Are our receipt rules the active ones?"""
        with translated("asking SES for its receipt rules"):
            active = self._receiving.describe_active_receipt_rule_set().get("Metadata", {}).get("Name", "")
        if active != names.RECEIPT_RULES:
            return broken(
                f"the active receipt rules are {active or 'none'}, not {names.RECEIPT_RULES}",
                f"aws ses set-active-receipt-rule-set --rule-set-name {names.RECEIPT_RULES}",
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
