"""What an operator does on AWS beside looking: on an emulator, writing mails as SES would store them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import boto3

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import config_of, translated
from webordinary.adapters.aws.mail.posting import post
from webordinary.adapters.aws.mail.raw_mails import ses_id_of
from webordinary.adapters.aws.site.shown_copies import ShownCopies
from webordinary.app.cloud import Cloud
from webordinary.config import Config
from webordinary.mail.intake import emails_of
from webordinary.mail.ses_inbound import envelopes_of
from webordinary.model.errors import Permanent
from webordinary.site.releases import Stage

SEEN_SECONDS = 10.0


def post_mail(services: Cloud, raw: bytes, mail_from: str, recipient: str) -> str:
    """Put a mail where SES puts those that it receives; the name that it will go by."""
    if not services.config.aws_endpoint:
        raise Permanent(f"on AWS itself a mail comes through SES: write one to {services.config.mailbox}")
    now, ports = services.clock.now(), services.ports
    key = post(ports.clients.s3, ports.raw_bucket, raw, mail_from, recipient)
    stored = ports.raw_mails.read(key)
    emails = emails_of(stored, envelopes_of(stored, ses_id_of(key), services.mailroom.mailbox, now))
    if not emails:
        raise Permanent(f"{recipient} is none of our addresses: write to {services.config.mailbox}")
    return emails[0].email_id


def post_and_see(services: Cloud, raw: bytes, mail_from: str, recipient: str) -> str:
    """The same, and wait a moment until the intake has taken it: somebody wants to look at it now."""
    email_id = post_mail(services, raw, mail_from, recipient)
    deadline = services.clock.monotonic() + SEEN_SECONDS
    while services.clock.monotonic() < deadline and services.overview.mail(email_id) is None:
        time.sleep(SEEN_SECONDS / 50)
    return email_id


def shown_sites(services: Cloud, folder: Path) -> Callable[[str, Stage], Path | None]:
    """What the site buckets show, as folders below this one."""

    def bucket_of(project_id: str, stage: Stage) -> str:
        return names.site_bucket(project_id, stage.value, services.config.domain)

    return ShownCopies(services.ports.clients.s3, bucket_of, folder).current


def activate_receipt_rules(config: Config) -> str:
    """Let SES receive by our rules, unless others are active; what was done, or is left to do, in words."""
    endpoint = config.aws_endpoint or None
    if endpoint:
        return "an emulator receives no mail: `webordinary send` puts mails where SES would"
    ses = boto3.client("ses", config=config_of(config.aws_region))
    with translated("making our receipt rules the active ones"):
        active = ses.describe_active_receipt_rule_set().get("Metadata", {}).get("Name", "")
        if active and active != names.RECEIPT_RULES:
            return (
                f"SES receives by the rules {active}; if ours shall take their place: "
                f"aws ses set-active-receipt-rule-set --rule-set-name {names.RECEIPT_RULES}"
            )
        ses.set_active_receipt_rule_set(RuleSetName=names.RECEIPT_RULES)
    return f"SES receives by the rules {names.RECEIPT_RULES}"
