"""SES as transport. It gives a reply a Message-ID of its own and remembers no request: asked twice, it sends twice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError, HTTPClientError

from webordinary.adapters.aws.clients import code_of, translated
from webordinary.mail.addresses import ascii_address
from webordinary.mail.outbox import EMAIL_TAG, KIND_TAG, ses_message_id
from webordinary.mail.ports import PerhapsSent
from webordinary.model.errors import Permanent, Transient
from webordinary.model.mail import Reply

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
