"""Mails as SES would store them, for emulators of AWS, which receive no mail.

Every writer to the bucket is trusted like SES; on a real account only SES may write there.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from webordinary.adapters.aws.clients import translated
from webordinary.mail.parsing.headers import with_crlf

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


def new_ses_id() -> str:
    """A name as SES gives them: 40 of 0-9 and a-v."""
    return "".join(secrets.choice("0123456789abcdefghijklmnopqrstuv") for _ in range(40))


@dataclass(frozen=True, slots=True)
class Reception:
    """A delivery as SES received it, with SES's verdicts."""

    mail_from: str
    recipient: str
    """Empty: SES names none."""
    ses_id: str = field(default_factory=new_ses_id)
    peer: str = "192.0.2.1"
    helo: str = "mx.example.com"
    region: str = "us-east-1"
    domain: str = ""
    """The domain in From; that of `mail_from` where it is not said."""
    spf: str = "pass"
    dkim: str = "pass"
    dmarc: str = "pass"
    spam: str = "PASS"
    virus: str = "PASS"


def as_received(raw: bytes, seen: Reception) -> bytes:
    """The mail with SES's block before it."""
    domain = seen.domain or seen.mail_from.rpartition("@")[2]
    spf = (
        f"{seen.spf} (spfCheck: domain of {domain} designates {seen.peer} as permitted sender) "
        f"client-ip={seen.peer}; envelope-from={seen.mail_from}; helo={seen.helo};"
    )
    lines = (
        f"Return-Path: <{seen.mail_from}>",
        f"Received: from {seen.helo} ({seen.helo} [{seen.peer}])",
        f" by inbound-smtp.{seen.region}.amazonaws.com with SMTP id {seen.ses_id}"
        + (f"\r\n for {seen.recipient};" if seen.recipient else ";"),
        " Fri, 01 May 2026 12:00:00 +0000 (UTC)",
        f"X-SES-Spam-Verdict: {seen.spam}",
        f"X-SES-Virus-Verdict: {seen.virus}",
        f"Received-SPF: {spf}",
        "Authentication-Results: amazonses.com;",
        f" spf={spf}",
        f" dkim={seen.dkim} header.i=@{domain};",
        f" dmarc={seen.dmarc} header.from={domain};",
        "X-SES-RECEIPT: AEFBQUFBQUFBQUFGUlFCYlk3bnlBZVdKcy9H",
        "X-SES-DKIM-SIGNATURE: a=rsa-sha256; q=dns/txt; b=AAAA; c=relaxed/simple; s=x; d=amazonses.com; v=1;",
    )
    return "".join(f"{line}\r\n" for line in lines).encode() + raw


def put_emulated_mail(s3: S3Client, bucket: str, raw: bytes, mail_from: str, recipient: str) -> str:
    """Store a mail and return the object's key. The bucket's policy decides which writers are trusted."""
    seen = Reception(mail_from, recipient)
    key = f"raw/{seen.ses_id}"
    with translated(f"putting the mail into {bucket}"):
        s3.put_object(Bucket=bucket, Key=key, Body=as_received(with_crlf(raw), seen))
    return key
