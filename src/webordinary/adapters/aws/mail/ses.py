"""SES as transport. It gives a reply a Message-ID of its own and remembers no request: asked twice, it sends twice.

For emulators, which receive no mail, put_emulated_mail stores one in the bucket as SES would, with its header block.
Every writer to the bucket is trusted like SES; on a real account only SES may write there.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError, HTTPClientError

from webordinary.adapters.aws.clients import code_of, translated
from webordinary.mail.addresses import ascii_address
from webordinary.mail.outbox import EMAIL_TAG, KIND_TAG, ses_message_id
from webordinary.mail.parsing.headers import with_crlf
from webordinary.mail.ports import PerhapsSent
from webordinary.model.errors import Permanent, Transient
from webordinary.model.mail import Reply

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest
    from types_boto3_sesv2 import SESV2Client
    from types_boto3_sesv2.type_defs import MessageTagTypeDef, SendEmailRequestTypeDef

_REFUSED = frozenset({"BadRequestException", "MessageRejected"})
_FOR_THE_OPERATOR = frozenset(
    {
        "AccountSuspendedException",
        "MailFromDomainNotVerifiedException",
        "NotFoundException",
        "SendingPausedException",
    }
)
_NOT_FOR_NOW = ("not verified", "paused", "suspended", "quota", "rate exceeded")
"""Words of an account in the sandbox, beyond its limits or stopped: they say nothing about the reply."""
_TAG = re.compile(r"[A-Za-z0-9_-]{1,256}")


class SesTransport:
    """See Transport. Its client must not try again on its own (`connect` sees to that): the outbox does, and knows
    what is doubtful. Every send has a connection of its own, for a kept one that died looks like an answer lost.
    """

    def __init__(self, ses: SESV2Client, sender: str, region: str, configuration_set: str = "") -> None:
        self._ses, self._sender, self._region = ses, sender, region
        self._configuration_set = configuration_set
        ses.meta.events.register("before-send.sesv2.SendEmail", _alone, unique_id="webordinary-alone")

    def send(self, reply: Reply) -> str:
        recipient = ascii_address(reply.recipient)
        if not recipient.isascii():
            raise Permanent(f"SES cannot write to {reply.recipient}: what stands before the @ must be plain letters")
        try:
            answer = self._ses.send_email(**self._request(reply, recipient))
        except ClientError as problem:
            raise _failure(problem, recipient) from problem
        except HTTPClientError as problem:
            raise PerhapsSent(f"SES fell silent while it was given a reply ({problem}): it may have left") from problem
        return ses_message_id(answer["MessageId"], self._region)

    def _request(self, reply: Reply, recipient: str) -> SendEmailRequestTypeDef:
        request: SendEmailRequestTypeDef = {
            "FromEmailAddress": self._sender,
            "Destination": {"ToAddresses": [recipient]},
            "Content": {"Raw": {"Data": reply.raw}},
            "EmailTags": _tags(reply),
        }
        if self._configuration_set:
            request["ConfigurationSetName"] = self._configuration_set
        return request


def _tags(reply: Reply) -> list[MessageTagTypeDef]:
    """They come back with every notification about this reply."""
    named = {EMAIL_TAG: reply.email_id, KIND_TAG: reply.kind}
    if not all(_TAG.fullmatch(value) for value in named.values()):
        return []
    return [{"Name": name, "Value": value} for name, value in named.items()]


def _alone(request: AWSPreparedRequest, **_: object) -> None:
    request.headers["Connection"] = "close"


def _failure(problem: ClientError, recipient: str) -> Transient | Permanent:
    code, words = code_of(problem), problem.response.get("Error", {}).get("Message", "")
    if code in _FOR_THE_OPERATOR or any(said in words.lower() for said in _NOT_FOR_NOW):
        return Transient(f"SES does not send for us now ({code}: {words}): run `webordinary doctor`")
    if code in _REFUSED:
        return Permanent(f"SES refused the reply to {recipient}: {words}")
    if problem.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500:
        return PerhapsSent(f"SES failed while it was given a reply ({code} {words}): it may have left")
    return _translated(problem)


def _translated(problem: ClientError) -> Transient | Permanent:
    try:
        with translated("sending a reply through SES"):
            raise problem
    except (Transient, Permanent) as ours:
        return ours


def new_ses_id() -> str:
    """A name as SES gives them: 40 of 0-9 and a-v."""
    return "".join(secrets.choice("0123456789abcdefghijklmnopqrstuv") for _ in range(40))


@dataclass(frozen=True, slots=True)
class Reception:
    """What SES saw of a delivery and what it found."""

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
