"""Replies leave through SES: as they were written, once, and under a name that comes back."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from email import message_from_string
from typing import Any

import pytest

from tests.aws.emulator import REGION, RunningEmulator, running_moto
from tests.extras import needs_extra

needs_extra("boto3", "aws")

from botocore.awsrequest import AWSPreparedRequest  # noqa: E402
from botocore.stub import ANY, Stubber  # noqa: E402

from tests.aws.faulty_proxy import BROKEN, DROP_REQUEST, DROP_RESPONSE, Fault, FaultyProxy, faulty_proxy  # noqa: E402
from tests.aws.mail_tables import MailTables, clients_of  # noqa: E402
from tests.fakes.events import EventRecorder  # noqa: E402
from tests.unit.mail.letters import parsed  # noqa: E402
from webordinary.adapters.aws.mail.ses import SesTransport  # noqa: E402
from webordinary.mail.outbox import (  # noqa: E402
    PromptOutbox,
    deliver_due,
)
from webordinary.mail.ports import PerhapsSent  # noqa: E402
from webordinary.mail.replies.answers import gave_up  # noqa: E402
from webordinary.mail.replies.compose import compose  # noqa: E402
from webordinary.model.errors import Permanent, Transient  # noqa: E402
from webordinary.model.mail import Reply  # noqa: E402
from webordinary.model.names import ProjectUser  # noqa: E402
from webordinary.model.projects import Thread  # noqa: E402

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SENDER = "edit@example.org"


def written(email_id: str = "e1", sender: str = "scott@example.com") -> Reply:
    mail = parsed(sender=sender, subject="Größe", references=("<r@x>",))
    return compose(gave_up(mail), email_id=email_id, mail=mail, mailbox=SENDER, sent_at=NOON, thread_id="0" * 16)


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEmulator]:
    with running_moto(tmp_path_factory.mktemp("moto")) as emulator:
        clients_of(emulator.endpoint).ses.create_email_identity(EmailIdentity=SENDER)
        yield emulator


def sent(moto: RunningEmulator) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{moto.endpoint}/moto-api/data.json", timeout=60) as answer:
        return list(json.load(answer)["ses"].get("RawMessage", []))


@pytest.fixture
def proxy(moto: RunningEmulator) -> Iterator[FaultyProxy]:
    with faulty_proxy(moto.endpoint) as proxy:
        yield proxy


def transport(endpoint: str, region: str = REGION) -> SesTransport:
    return SesTransport(clients_of(endpoint).ses, SENDER, region, "webordinary")


def test_ses_gets_the_reply_byte_for_byte(moto: RunningEmulator) -> None:
    reply = written("bytes")
    name = transport(moto.endpoint).send(reply)
    mail = next(mail for mail in sent(moto) if mail["raw_data"] == reply.raw.decode())
    assert name == f"<{mail['id']}@email.amazonses.com>"
    assert mail["source"] == SENDER
    assert set(mail["destinations"]) == {"scott@example.com"}
    read = message_from_string(mail["raw_data"])
    assert (read["In-Reply-To"], read["References"].split()) == ("<1@example.com>", ["<r@x>", "<1@example.com>"])
    assert read["Reply-To"] == f"WebOrdinary <edit+{'0' * 16}@example.org>"
    assert read["Auto-Submitted"] == "auto-replied"


def test_an_international_domain_is_written_as_the_dns_knows_it(moto: RunningEmulator) -> None:
    transport(moto.endpoint).send(written("idn", "ann@bücher.example"))
    assert {"ann@xn--bcher-kva.example"} in [set(mail["destinations"]) for mail in sent(moto)]
    with pytest.raises(Permanent, match="plain letters"):
        transport(moto.endpoint).send(written("idn", "jörg@example.com"))


@pytest.mark.parametrize("fault", [DROP_RESPONSE, DROP_REQUEST, BROKEN])
def test_a_silent_ses_is_asked_once_and_leaves_a_doubt(moto: RunningEmulator, proxy: FaultyProxy, fault: Fault) -> None:
    before = len(sent(moto))
    proxy.inject(fault, "ses:POST")
    with pytest.raises(PerhapsSent, match="may have left"):
        transport(proxy.endpoint).send(written("silent"))
    assert sum(proxy.calls.values()) == 1
    assert len(sent(moto)) == before + (fault is DROP_RESPONSE)


def test_a_lost_answer_does_not_send_a_second_copy_at_once(
    moto: RunningEmulator, proxy: FaultyProxy, ministack: RunningEmulator
) -> None:
    world, events, before = MailTables(ministack.endpoint), EventRecorder(), len(sent(moto))
    world.threads().record(Thread("0" * 16, ProjectUser("amelia", "scott"), "Title"), "<1@example.com>", NOON)
    outbox, ses = world.outbox(), transport(proxy.endpoint)
    proxy.inject(DROP_RESPONSE, "ses:POST")
    prompt = PromptOutbox(outbox, ses, events, lambda: NOON)
    prompt.put(written("lost"), NOON)
    prompt.deliver_written()
    assert deliver_due(outbox, ses, NOON, events) == 0
    assert len(sent(moto)) == before + 1
    assert "may have left" in (outbox.of("lost")[0].last_error or "")


def test_an_answer_to_what_ses_sent_is_recognised(moto: RunningEmulator, ministack: RunningEmulator) -> None:
    world, events = MailTables(ministack.endpoint), EventRecorder()
    thread = world.threads().record(Thread("0" * 16, ProjectUser("amelia", "scott"), "Title"), "<1@example.com>", NOON)
    outbox = world.outbox()
    outbox.put(written("e1"), NOON)
    assert deliver_due(outbox, transport(moto.endpoint), NOON, events) == 1
    name = outbox.of("e1")[0].sent_as
    assert name
    assert name.endswith("@email.amazonses.com>")
    assert world.threads().find((name,)) == thread
    assert [event.kind for event in events] == ["ReplySent"]


def test_no_reply_is_given_to_a_connection_that_may_have_died(proxy: FaultyProxy) -> None:
    ses, asked = transport(proxy.endpoint), list[str]()

    def look(request: AWSPreparedRequest, **_: object) -> None:
        asked.append(request.headers["Connection"])

    clients_of(proxy.endpoint).ses.meta.events.register_last("before-send.sesv2.SendEmail", look)
    for number in range(2):
        ses.send(written(f"own{number}"))
    assert asked == ["close", "close"]


@pytest.mark.parametrize(
    ("code", "words", "family"),
    [
        ("MessageRejected", "Address is on the suppression list", Permanent),
        ("BadRequestException", "Invalid header", Permanent),
        ("MessageRejected", "Email address is not verified. scott@example.com", Transient),
        ("AccountSuspendedException", "suspended", Transient),
        ("SendingPausedException", "paused", Transient),
        ("MailFromDomainNotVerifiedException", "no MX", Transient),
        ("NotFoundException", "no configuration set", Transient),
        ("TooManyRequestsException", "slow down", Transient),
        ("LimitExceededException", "daily quota", Transient),
        ("ExpiredTokenException", "expired", Transient),
    ],
)
def test_what_ses_refuses_is_given_up_and_what_can_be_mended_waits(
    ministack: RunningEmulator, code: str, words: str, family: type[Exception]
) -> None:
    client = clients_of(ministack.endpoint).ses
    with Stubber(client) as stub:
        stub.add_client_error("send_email", code, words, http_status_code=400)
        with pytest.raises(family) as problem:
            SesTransport(client, SENDER, REGION).send(written())
    assert not isinstance(problem.value, PerhapsSent)


def test_a_reply_is_tagged_so_that_bounces_find_it(ministack: RunningEmulator) -> None:
    client = clients_of(ministack.endpoint).ses
    expected = {
        "FromEmailAddress": SENDER,
        "Destination": {"ToAddresses": ["scott@example.com"]},
        "Content": {"Raw": {"Data": ANY}},
        "EmailTags": [{"Name": "email", "Value": "e1"}, {"Name": "kind", "Value": "answer"}],
        "ConfigurationSetName": "webordinary",
    }
    with Stubber(client) as stub:
        stub.add_response("send_email", {"MessageId": "0100017d"}, expected)
        name = SesTransport(client, SENDER, "eu-west-1", "webordinary").send(written())
    assert name == "<0100017d@eu-west-1.amazonses.com>"
